"""Servers that lead elsewhere: to data servers, in loops, and where credentials must not go."""

import hashlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SECRET, SMALL, copied, down, exact, first, up
from web.scripted_http import Answer, Exchange, Script, Scripted, ScriptedHttp

import mpx

DATA = "/data"
USES = 4  # of a URL that expires: more than the one other worker takes before whoever was led there has asked
TLS = pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
Place = Callable[[ScriptedHttp, int], str]  # where the so-manieth redirect leads


@contextmanager
def led(
    place: Place, data_script: Script | None = None, *, tls: bool = False, content: bytes = LARGE
) -> Iterator[tuple[ScriptedHttp, ScriptedHttp]]:
    """A server that leads each GET to a data server, and that one."""
    numbers = itertools.count()
    with ScriptedHttp(data_script, {DATA: content}, tls=tls) as data:

        def lead(_: Exchange) -> Answer:
            return Answer(307, {"Location": place(data, next(numbers))})

        with ScriptedHttp({"GET": lead}, {NAME: content}, tls=tls) as server:
            yield server, data


def there(data: ScriptedHttp, number: int) -> str:
    return f"{data.origin}{DATA}?sig={SECRET}{number}"


@TLS
def test_data_come_from_another_server(tls: bool, tmp_path: Path) -> None:
    with led(there, tls=tls) as (server, data):
        assert down(server, tmp_path, streams=3).code == 0
        assert exact(server, tmp_path)
        asked = data.asked("GET")
        assert all(each.target.startswith(f"{DATA}?sig={SECRET}") for each in asked)
        assert len(server.asked("GET")) < len(asked)  # where it leads to is remembered


def test_a_url_that_expires(tmp_path: Path) -> None:
    """The first URL is asked again, and no worker gives the file up."""
    counts: dict[str, int] = {}

    def expires(exchange: Exchange) -> Answer:
        target = exchange.asked.target
        counts[target] = counts.get(target, 0) + 1
        return Answer(403) if counts[target] > USES else exchange.usual()

    with led(there, {"GET": expires}) as (server, _):
        assert down(server, tmp_path, streams=2, retries=0).code == 0
        assert exact(server, tmp_path)
    assert any(count > USES for count in counts.values())


@pytest.mark.parametrize(("status", "code"), [(403, 3), (404, 3), (500, 6), (503, 6)])
def test_a_data_server_that_refuses(status: int, code: int, tmp_path: Path) -> None:
    with led(there, {"GET": lambda _: Answer(status)}) as (server, _):
        outcome = down(server, tmp_path, retries=0)
        assert outcome.code == code, outcome
        assert str(status) in outcome.text


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_data_server_that_refuses_once(status: int, tmp_path: Path) -> None:
    with led(there, {"GET": first(1, lambda _: Answer(status))}) as (server, _):
        assert down(server, tmp_path, streams=1, retries=0).code == 0
        assert exact(server, tmp_path)


@TLS
def test_a_port_that_is_closed(tls: bool, tmp_path: Path) -> None:
    with led(lambda data, _: f"{data.origin.rpartition(':')[0]}:1{DATA}", tls=tls) as (server, _):
        outcome = down(server, tmp_path)
    assert outcome.code == 6
    assert "127.0.0.1:1" in outcome.text


@TLS
def test_a_port_that_is_closed_at_first(tls: bool, tmp_path: Path) -> None:
    """Where the server leads now counts, not where it did when that failed."""

    def place(data: ScriptedHttp, number: int) -> str:
        return f"{data.origin.rpartition(':')[0]}:1{DATA}" if number < 2 else there(data, number)

    with led(place, tls=tls) as (server, _):
        assert down(server, tmp_path, streams=1).code == 0
        assert exact(server, tmp_path)


def test_out_of_tls(tmp_path: Path) -> None:
    with ScriptedHttp({}, {DATA: SMALL}) as data:
        script: dict[str, Scripted] = {"GET": lambda _: Answer(302, {"Location": there(data, 0)})}
        with ScriptedHttp(script, {NAME: SMALL}, tls=True) as server:
            outcome = down(server, tmp_path)
        assert outcome.code == 5
        assert "in the clear" in outcome.text
        assert not data.heard


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (301, NAME),
        (302, "?again"),
        (307, ""),
        (308, "ftp://localhost/file"),
        (302, f"http://user:{SECRET}@localhost/"),
        (302, "http://localhost:99999/"),
        (302, "//"),
        (302, "/x\x1b[2J"),
        (302, "/" + "x" * 60_000),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_redirects_to_nowhere(method: str, status: int, location: str, tmp_path: Path) -> None:
    def lead(_: Exchange) -> Answer:
        return Answer(status, {"Location": location} if location else {})

    script: Script = {"GET": first(1, lambda _: Answer(404)), method: lead}
    with ScriptedHttp(script, {NAME: SMALL}, is_dav=False) as server:
        outcome = down(server, tmp_path, retries=0)
        assert outcome.code in (3, 6), outcome
        assert NAME in outcome.text
        assert len(server.heard) < 100


def test_a_redirect_that_is_cut_off(tmp_path: Path) -> None:
    """Nothing of what was asked for with it is forgotten."""

    def cut(_: Exchange) -> Answer:
        return Answer(307, {"Location": "/x", "Content-Length": "100"}, b"x", ends=True)

    with ScriptedHttp({"GET": first(3, cut)}, {NAME: LARGE}) as server:
        assert down(server, tmp_path, streams=1, retries=3).code == 0
        assert exact(server, tmp_path)


# --- credentials ---------------------------------------------------------------------------------------


def shown(server: ScriptedHttp) -> set[str]:
    """The credentials that a server was shown."""
    carrying = [each for each in server.heard if each.method in ("GET", "PUT", "MOVE")]
    return {each.headers.get("authorization", "") for each in carrying}


def test_a_proxy_is_shown_its_password(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where it passes on what is not inside TLS."""
    place = f"http://elsewhere.example{NAME}"

    def asks(exchange: Exchange) -> Answer:
        is_known = exchange.asked.headers.get("proxy-authorization") == "Basic dXNlcjpzM2NyM3Q="
        return exchange.usual() if is_known else Answer(407)

    methods = ("GET", "HEAD", "OPTIONS")
    with ScriptedHttp(dict.fromkeys(methods, asks), {place: SMALL}, is_dav=False) as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:{SECRET}@127.0.0.1:{proxy.port}")
        assert copied(place, tmp_path / "file").code == 0
        assert (tmp_path / "file").read_bytes() == SMALL
        monkeypatch.setenv("http_proxy", f"http://user:other@127.0.0.1:{proxy.port}")
        outcome = copied(place, tmp_path / "another")
    assert outcome.code == 5
    assert "http_proxy" in outcome.text


def test_credentials_stay_with_the_first_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    with led(there, tls=True) as (server, data):
        assert down(server, tmp_path).code == 0
        assert shown(server) == {f"Bearer {SECRET}"}
        assert shown(data) == {""}


def test_credentials_go_where_the_user_lets_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    with led(there, tls=True) as (server, data):
        to = (f"localhost:{data.port}",)
        assert down(server, tmp_path, send_token_to=to).code == 0
        assert shown(data) == {f"Bearer {SECRET}"}


def test_a_password_stays_with_the_first_server_also_where_tokens_may_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MPX_PASSWORD", SECRET)
    asks: Script = {"GET": lambda _: Answer(401)}
    for script, code in ((None, 0), (asks, 5)):
        with led(there, script, tls=True) as (server, data):
            to = (f"localhost:{data.port}",)
            url = f"https://alice@localhost:{server.port}{NAME}"
            outcome = copied(url, tmp_path / f"{code}", send_token_to=to)
        assert outcome.code == code, outcome
        assert all(each.startswith("Basic ") for each in shown(server))
        assert shown(data) == {""}
    assert "your password is shown to localhost alone" in outcome.text


def test_what_a_data_server_lacks_is_not_taken_for_a_lack_of_the_first(tmp_path: Path) -> None:
    """Which computes digests: they are asked for there."""

    def computes(exchange: Exchange) -> Answer:
        is_asked = exchange.asked.headers.get("want-digest") == "md5"
        digest = {"Digest": f"md5={hashlib.md5(SMALL).hexdigest()}"} if is_asked else {}
        return exchange.usual().having(Server="XrootD", **digest)

    with ScriptedHttp({"HEAD": lambda _: Answer(405)}, {DATA: SMALL}) as data:
        leads = Answer(302, {"Location": there(data, 0), "Server": "XrootD"})
        script: Script = {"HEAD": computes, "PROPFIND": computes, "GET": lambda _: leads}
        with ScriptedHttp(script, {NAME: SMALL}) as server:
            report = mpx.copy(f"{server.dav}{NAME}", str(tmp_path / "file"))
        assert data.asked("HEAD")
    assert report.checksum["bytes"] == {"md5": len(SMALL)}


def test_what_to_do_where_the_other_server_wants_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    with led(there, {"GET": lambda _: Answer(401)}, tls=True) as (server, _):
        outcome = down(server, tmp_path)
    assert outcome.code == 5
    assert "--send-token-to" in outcome.text


# --- uploads -------------------------------------------------------------------------------------------


def partial(data: ScriptedHttp, number: int) -> str:
    return f"{data.origin}/folder/.partial?sig={SECRET}{number}"


@pytest.mark.parametrize("size", [5, len(LARGE)])
def test_an_upload_is_led_on(size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before the body, as it is asked for; credentials are not sent on."""
    monkeypatch.setenv("BEARER_TOKEN", SECRET)

    def stores(exchange: Exchange) -> Answer:
        exchange.server.files.update(dict.fromkeys(names, exchange.body()))
        return Answer(201)

    names: list[str] = []
    with led(partial, {"PUT": stores}, tls=True) as (server, data):
        (tmp_path / "src").write_bytes(LARGE[:size])
        server.files.clear()
        data.files = server.files

        def lead(exchange: Exchange) -> Answer:
            if exchange.asked.headers.get("expect") != "100-continue":
                return Answer(501, ends=True)  # as to the file that shows whether parts are stored
            names.append(exchange.asked.path)
            return Answer(307, {"Location": partial(data, 0)}, ends=True)

        server.script = {"PUT": lead}
        assert up(server, tmp_path / "src", retries=0).code == 0
        assert server.files[NAME] == LARGE[:size]
        assert shown(data) == {""}
        assert shown(server) == {f"Bearer {SECRET}"}


def test_an_upload_is_led_on_by_one_that_reads_the_body(tmp_path: Path) -> None:
    """It is sent twice: who ignores Expect gets it before it says where it should go."""
    (tmp_path / "src").write_bytes(LARGE)
    with ScriptedHttp({}, {"/folder/other": b""}) as data:

        def lead(exchange: Exchange) -> Answer:
            exchange.body()
            return Answer(307, {"Location": f"{data.origin}{exchange.asked.target}"})

        with ScriptedHttp({"PUT": lead}, {"/folder/other": b""}) as server:
            data.files = server.files
            assert up(server, tmp_path / "src", retries=0).code == 0
            assert server.files[NAME] == LARGE


@pytest.mark.parametrize("location", ["/folder/.partial", "", "ftp://localhost/x", "http://localhost:1/x"])
def test_an_upload_is_led_nowhere(location: str, tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(SMALL)
    script: dict[str, Scripted] = {"PUT": lambda _: Answer(307, {"Location": location}, ends=True)}
    with ScriptedHttp(script, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", retries=0)
        assert outcome.code in (4, 6), outcome
        assert NAME not in server.files


def test_a_token_in_the_url_is_shown_there_and_no_further(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever is led on from there is shown nothing."""
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp(tls=True) as last, ScriptedHttp(tls=True) as data, ScriptedHttp(tls=True) as server:
        server.folders.add("/folder")
        last.files = server.files

        def leads(to: ScriptedHttp, query: str) -> Scripted:
            return lambda told: Answer(307, {"Location": f"{to.origin}{told.asked.path}{query}"})

        server.script = {"MOVE": leads(data, f"?authz=Bearer%20{SECRET}&more=1")}
        data.script = {"MOVE": leads(last, "")}
        assert up(server, tmp_path / "src", retries=0).code == 0 and server.files == {NAME: SMALL}
        assert shown(data) == {f"Bearer {SECRET}"} and shown(last) == {""}
        assert all(each.target.endswith("?more=1") for each in data.asked("MOVE"))
