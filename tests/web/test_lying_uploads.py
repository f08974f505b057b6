"""Servers that take files and do not keep them, or give no names: nothing wrong has the final name."""

from pathlib import Path

import pytest
from web.keeping import PROBE, is_probe
from web.lying import LARGE, NAME, SMALL, Outcome, copied, first, up
from web.scripted_http import Answer, Exchange, Script, ScriptedHttp

SIZES = pytest.mark.parametrize("size", [5, len(LARGE)], ids=["small", "large"])
OLDER = b"what was there before"


def uploaded(
    script: Script, size: int, tmp_path: Path, *, older: bytes | None = None, **options: float
) -> tuple[Outcome, ScriptedHttp]:
    """Upload; what has the name afterwards is right, or what was there before."""
    (tmp_path / "src").write_bytes(LARGE[:size])
    files = {"/folder/other": b""} | ({NAME: older} if older is not None else {})
    with ScriptedHttp(script, files) as server:
        outcome = up(server, tmp_path / "src", **options)
        assert server.files.get(NAME) == (older if outcome.code else LARGE[:size]), outcome
    return outcome, server


def stored(exchange: Exchange, content: bytes) -> Answer:
    exchange.server.files[exchange.asked.path] = content
    return Answer(201)


@SIZES
def test_100_continue_never_comes(size: int, tmp_path: Path) -> None:
    """The data are sent all the same (RFC 9110, 10.1.1)."""

    def silent(exchange: Exchange) -> Answer:
        if "expect" not in exchange.asked.headers:  # of the small file that shows whether parts are stored
            return Answer(501, ends=True)
        return stored(exchange, exchange.read(exchange.length))

    assert uploaded({"PUT": silent}, size, tmp_path, retries=0)[0].code == 0


@SIZES
@pytest.mark.parametrize("ends", [True, False])
def test_expectations_fail(ends: bool, size: int, tmp_path: Path) -> None:
    """After 417 no server is asked first."""

    def refuses(exchange: Exchange) -> Answer:
        if exchange.asked.headers.get("expect"):
            return Answer(417, ends=ends)
        return stored(exchange, exchange.body())

    assert uploaded({"PUT": refuses}, size, tmp_path, retries=0)[0].code == 0


LOSES = {
    "nothing": None,
    "empty": lambda body: b"",
    "truncated": lambda body: body[:-1],
    "longer": lambda body: body + b"x",
}


@SIZES
@pytest.mark.parametrize("older", [None, OLDER], ids=["new", "replaced"])
@pytest.mark.parametrize("kind", LOSES)
def test_it_says_that_all_is_stored(kind: str, older: bytes | None, size: int, tmp_path: Path) -> None:
    def loses(exchange: Exchange) -> Answer:
        body, what = exchange.body(), LOSES[kind]
        return stored(exchange, what(body)) if what else Answer(201)

    outcome, server = uploaded({"PUT": loses}, size, tmp_path, older=older)
    assert outcome.code == 8, outcome
    assert "sent twice" in outcome.text
    assert not [name for name in server.files if name.endswith(".part")]


@SIZES
def test_it_loses_data_once(size: int, tmp_path: Path) -> None:
    script = {"PUT": first(1, lambda exchange: stored(exchange, exchange.body()[:-1]))}
    assert uploaded(script, size, tmp_path, older=OLDER)[0].code == 0


@SIZES
def test_it_loses_data_and_has_no_names_for_a_time(size: int, tmp_path: Path) -> None:
    """Without renames the file has its name at once; that it is not whole is said, at least."""
    (tmp_path / "src").write_bytes(LARGE[:size])

    def truncates(exchange: Exchange) -> Answer:
        return stored(exchange, exchange.body()[:-1])

    script: Script = {"PUT": truncates, "OPTIONS": lambda _: Answer(405), "MOVE": lambda _: Answer(405)}
    with ScriptedHttp(script, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src")
    assert outcome.code == 8
    assert any("not atomic" in note for note in outcome.notes)


def test_a_server_that_has_said_what_it_can_do_is_not_asked_again(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(LARGE)
    with ScriptedHttp({}, {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "src", f"{server.origin}{NAME}")
        assert outcome.code == 0 and not any("not atomic" in note for note in outcome.notes)
        assert server.files[NAME] == LARGE
        assert len(server.asked("OPTIONS")) == 1


@pytest.mark.parametrize("status", [404, 409, 412, 403, 405, 501, 400, 500, 201])
def test_what_renaming_nothing_tells(status: int, tmp_path: Path) -> None:
    """A server that does not say what it can do is asked to rename what is not there."""
    tries = 3 if status == 400 else 1  # 400: see test_behind_proxies.py
    first_is = first(tries, lambda _: Answer(status))
    outcome, server = uploaded({"OPTIONS": lambda _: Answer(405), "MOVE": first_is}, 5, tmp_path)
    assert outcome.code == 0
    assert any("not atomic" in note for note in outcome.notes) == (status not in (404, 409, 412))
    assert len(server.asked("OPTIONS")) == 1
    assert len(server.asked("MOVE")) == (2 if status in (404, 409, 412) else tries)


@SIZES
def test_the_answer_is_lost(size: int, tmp_path: Path) -> None:
    """It is stored, but who knows: it is sent again."""

    def lost(exchange: Exchange) -> None:
        exchange.usual()
        exchange.reset()

    once = first(1, lost)

    def put(exchange: Exchange) -> Answer | None:
        return exchange.usual() if is_probe(exchange) else once(exchange)

    outcome, server = uploaded({"PUT": put}, size, tmp_path)
    assert outcome.code == 0
    assert len([each for each in server.asked("PUT") if PROBE not in each.path]) == 2
    assert uploaded({"PUT": lost}, size, tmp_path)[0].code == 6


@pytest.mark.parametrize("older", [None, OLDER], ids=["new", "replaced"])
@pytest.mark.parametrize(
    ("status", "code"), [(403, 4), (404, 4), (409, 4), (412, 4), (423, 4), (501, 4), (503, 6), (207, 4)]
)
def test_no_name_is_given(status: int, code: int, older: bytes | None, tmp_path: Path) -> None:
    script: Script = {"MOVE": lambda _: Answer(status)}
    outcome, _ = uploaded(script, len(SMALL), tmp_path, older=older, retries=0)
    assert outcome.code == code, outcome
    assert NAME in outcome.text


def test_what_to_do_where_no_name_can_be_given(tmp_path: Path) -> None:
    script: Script = {"MOVE": lambda _: Answer(501)}
    assert "--in-place" in uploaded(script, 5, tmp_path)[0].text
    assert uploaded(script, 5, tmp_path, in_place=True)[0].code == 0


@pytest.mark.parametrize("older", [None, OLDER], ids=["new", "replaced"])
def test_it_says_that_a_name_was_given(older: bytes | None, tmp_path: Path) -> None:
    outcome, _ = uploaded({"MOVE": lambda _: Answer(201)}, len(SMALL), tmp_path, older=older)
    assert outcome.code == 4, outcome
    assert "it has not" in outcome.text


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("older", [None, OLDER], ids=["new", "replaced"])
def test_the_answer_to_a_rename_is_lost(older: bytes | None, is_done: bool, tmp_path: Path) -> None:
    def lost(exchange: Exchange) -> None:
        if is_done:
            exchange.usual()
        exchange.reset()

    assert uploaded({"MOVE": first(1, lost)}, len(SMALL), tmp_path, older=older)[0].code == 0


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_options_refused(status: int, tmp_path: Path) -> None:
    """The URL says that it is WebDAV: files have another name until they are whole."""
    outcome, server = uploaded({"OPTIONS": first(1, lambda _: Answer(status))}, 5, tmp_path)
    assert outcome.code == 0, outcome
    assert server.asked("MOVE")


@pytest.mark.parametrize("scheme", ["dav", "http"])
def test_a_body_of_options_that_never_comes(scheme: str, tmp_path: Path) -> None:
    """As lighttpd 1.4.69 announces one, in chunks; nobody waits for it."""

    def announces(exchange: Exchange) -> None:
        headers = {**exchange.usual().headers, "Transfer-Encoding": "chunked"}
        exchange.say(Answer(200, headers).packed(is_head=True))

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"OPTIONS": announces}, {"/folder/other": SMALL}) as server:
        to = f"{scheme}://localhost:{server.port}"
        assert copied(tmp_path / "src", f"{to}{NAME}", retries=0).code == 0
        assert server.files[NAME] == SMALL
        assert copied(f"{to}{NAME}", tmp_path / "back", retries=0).code == 0
        assert server.asked("PROPFIND")
    assert (tmp_path / "back").read_bytes() == SMALL


def test_options_are_busy_once(tmp_path: Path) -> None:
    """Whether files can be renamed is asked again, where the URL does not tell."""
    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"OPTIONS": first(1, lambda _: Answer(503))}, {"/folder/other": b""}) as server:
        assert copied(tmp_path / "src", f"{server.origin}{NAME}").code == 0
        assert server.asked("MOVE")


# --- folders -------------------------------------------------------------------------------------------


def tree_uploaded(script: Script, tmp_path: Path, *folders: str) -> tuple[Outcome, ScriptedHttp]:
    (tmp_path / "from/a/b").mkdir(parents=True)
    (tmp_path / "from/a/b/file").write_bytes(b"12345")
    with ScriptedHttp(script, {"/folder/other": b""}) as server:
        server.folders.update(folders)
        outcome = copied(tmp_path / "from", f"{server.dav}/folder/to", recursive=True, retries=0)
        assert ("/folder/to/a/b/file" in server.files) == (outcome.code == 0), outcome
    return outcome, server


def test_folders_that_are_there(tmp_path: Path) -> None:
    """405 is no error then."""
    assert tree_uploaded({}, tmp_path, "/folder/to", "/folder/to/a")[0].code == 0


@pytest.mark.parametrize("status", [403, 405, 409, 501, 507])
def test_folders_that_cannot_be_made(status: int, tmp_path: Path) -> None:
    outcome, _ = tree_uploaded({"MKCOL": lambda _: Answer(status)}, tmp_path)
    assert outcome.code in (4, 9, 10), outcome
    assert str(status) in outcome.text
    assert "/folder/to" in outcome.text


def test_it_says_that_a_folder_was_made(tmp_path: Path) -> None:
    def stores_where_it_can(exchange: Exchange) -> Answer:
        folder = exchange.asked.path.rpartition("/")[0]
        exchange.body()
        return exchange.usual() if folder in exchange.server.folders else Answer(409)

    outcome, _ = tree_uploaded({"MKCOL": lambda _: Answer(201), "PUT": stores_where_it_can}, tmp_path)
    assert outcome.code in (4, 10), outcome
    assert "409" in outcome.text


def test_it_says_that_all_is_stored_before_any_was_sent(tmp_path: Path) -> None:
    """What was there before has the right size, and is not taken for what was not sent."""
    script: Script = {"PUT": lambda _: Answer(201)}
    outcome, _ = uploaded(script, len(LARGE), tmp_path, older=bytes(len(LARGE)), in_place=True)
    assert outcome.code == 6, outcome
    assert "before it was sent" in outcome.text
