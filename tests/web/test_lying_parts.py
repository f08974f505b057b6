"""Servers that store parts of a small file, or seem to, and then do otherwise: no wrong file looks whole."""

import itertools
import select
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from web.keeping import PROBE, Keeping, is_probe, left_over, part_of, parts_sent, telling
from web.lying import LARGE, NAME, Outcome, up
from web.scripted_http import SOON_S, Answer, Exchange, Script, ScriptedHttp

import mpx

STORED = "files are stored in parts"
ONE_STREAM = "one stream for each file: "
OTHER = {"/folder/other": b""}
GONE = "is sent again, in one stream: parts that were stored are not there any more"
Spoil = Callable[[Exchange, Answer | None], Answer | None]


def sent(script: Script, tmp_path: Path, **options: object) -> tuple[Outcome, ScriptedHttp]:
    """Upload a large file; it has its name only where that succeeds, and then it is right."""
    (tmp_path / "src").write_bytes(LARGE)
    with ScriptedHttp(script, OTHER) as server:
        outcome = up(server, tmp_path / "src", **options)
    assert server.files.get(NAME) == (None if outcome.code else LARGE), outcome
    return outcome, server


def test_a_server_that_keeps_the_rest_gets_parts(tmp_path: Path) -> None:
    outcome, server = sent(Keeping().script(), tmp_path, streams=3)
    assert outcome.code == 0
    assert STORED in outcome.notes
    assert parts_sent(server) > 3
    assert len({each.connection for each in server.asked("PUT") if PROBE not in each.path}) == 3
    assert sorted(server.files) == [NAME, "/folder/other"]


# --- the probe -----------------------------------------------------------------------------------------


def truncates(exchange: Exchange) -> Answer:
    exchange.server.files[exchange.asked.path] = exchange.body()
    return Answer(204)


def of_probe(bent: Callable[[Exchange], Answer | None]) -> Callable[[Exchange], Answer | None]:
    return lambda exchange: bent(exchange) if is_probe(exchange) else exchange.usual()


def of_parts(answer: Callable[[Exchange], Answer | None]) -> Script:
    """Have the parts of the probe answered so, and all else as is right."""
    keeping = Keeping()

    def put(exchange: Exchange) -> Answer | None:
        is_bent = part_of(exchange) is not None and is_probe(exchange)
        return answer(exchange) if is_bent else keeping.put(exchange)

    return {"PUT": put}


def refuses(status: int) -> Script:
    def refusing(exchange: Exchange) -> Answer:
        exchange.body()
        return Answer(status)

    return of_parts(refusing)


def resets(exchange: Exchange) -> None:
    exchange.body()
    exchange.reset()


def shortened(exchange: Exchange) -> Answer:
    answer = exchange.usual()
    return Answer(200, {}, answer.body[:-1])


def damaged(exchange: Exchange) -> Answer:
    answer = exchange.usual()
    return Answer(200, {}, bytes([answer.body[0] ^ 1]) + answer.body[1:])


NOT_PROVEN: dict[str, Script] = {
    **{str(status): refuses(status) for status in (400, 403, 405, 411, 416, 429, 500, 501, 503, 307)},
    "truncates": of_parts(truncates),
    "makes a new one": {},  # 201, and the part is the file
    "resets": of_parts(resets),
    "no whole file": {"PUT": lambda e: (e.body(), Answer(403))[1] if is_probe(e) else Keeping().put(e)},
    "shortened": Keeping().script(GET=of_probe(shortened)),
    "damaged": Keeping().script(GET=of_probe(damaged)),
    "not read": Keeping().script(GET=of_probe(lambda _: Answer(404))),
    "ends": Keeping().script(GET=of_probe(lambda exchange: exchange.bye())),
}


@pytest.mark.parametrize("kind", NOT_PROVEN)
def test_a_server_that_fails_the_probe_gets_whole_files(kind: str, tmp_path: Path) -> None:
    outcome, server = sent(NOT_PROVEN[kind], tmp_path, retries=0)
    assert outcome.code == 0, outcome
    assert any(note.startswith(ONE_STREAM) for note in outcome.notes), outcome
    assert parts_sent(server) == 0
    assert sorted(server.files) == [NAME, "/folder/other"]


@pytest.mark.parametrize("ends", [True, False])
def test_a_probe_file_that_stays_is_told(ends: bool, tmp_path: Path) -> None:
    """Who may store may not remove, say."""
    forbidden = of_probe(lambda _: Answer(403))
    script: Script = {"GET": of_probe(lambda exchange: exchange.bye())} if ends else {}
    (tmp_path / "src").write_bytes(LARGE)
    with ScriptedHttp(Keeping().script(DELETE=forbidden, **script), OTHER) as server:
        outcome = up(server, tmp_path / "src")
        left = left_over(server)
    assert outcome.code == 0, outcome
    told = [
        note for note in outcome.notes if "on which this was tried, stays: the server answers 403" in note
    ]
    assert left and len(told) == len(left)
    assert all(any(name in note for note in told) for name in left)


def test_what_asks_for_no_parts_makes_no_probe(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(LARGE[:4_000_000])
    (tmp_path / "large").write_bytes(LARGE)
    with ScriptedHttp(Keeping().script(), OTHER) as server:
        assert up(server, tmp_path / "small").code == 0
        assert up(server, tmp_path / "large", in_place=True, overwrite="always").code == 0
        assert {each.path for each in server.asked("PUT")} == {*_partials(server), NAME}
        assert parts_sent(server) == 0


def test_what_has_nothing_to_do_makes_no_probe(tmp_path: Path) -> None:
    """Nor changes anything else at the server."""
    (tmp_path / "large").write_bytes(LARGE)
    with ScriptedHttp(Keeping().script(), OTHER) as server:
        assert up(server, tmp_path / "large").code == 0
        before = len(server.heard)
        assert up(server, tmp_path / "large").code == 0
        assert {each.method for each in server.heard[before:]} <= {"HEAD", "GET", "OPTIONS", "PROPFIND"}


def _partials(server: ScriptedHttp) -> set[str]:
    return {each.path for each in server.asked("PUT") if each.path.startswith("/folder/.file.mpx-")}


def test_each_folder_is_tried_once(tmp_path: Path) -> None:
    """Only those with large files: another one may be served by another module."""
    for name in ("a/1", "a/2", "b/1", "b/2"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(LARGE)
    (tmp_path / "tree/small").write_bytes(b"small")
    keeping = Keeping()

    def put(exchange: Exchange) -> Answer | None:
        is_refused = "/b/" in exchange.asked.path and part_of(exchange)
        return Answer(501, ends=True) if is_refused else keeping.put(exchange)

    with ScriptedHttp({"PUT": put}, OTHER) as server:
        report = mpx.copy(f"{tmp_path}/tree", f"{server.dav}/folder/to", mpx.CopyOptions(recursive=True))
        probes = [each.path for each in server.asked("PUT") if PROBE in each.path]
        assert {path.rpartition("/")[0] for path in probes} == {"/folder/to/a", "/folder/to/b"}
        assert len(set(probes)) == 2
    assert report.status == "done"
    for name in ("a/1", "a/2", "b/1", "b/2"):
        assert server.files[f"/folder/to/{name}"] == LARGE
    assert left_over(server) == []


# --- real parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_digests", [True, False], ids=["digests", "read back"])
def test_a_mangled_part_is_found(has_digests: bool, tmp_path: Path) -> None:
    """By the digest that the server tells, or by reading back; then the file is sent whole."""
    keeping = Keeping()

    def mangle(exchange: Exchange) -> Answer:
        body = exchange.body()
        return keeping.store(exchange, bytes([body[0] ^ 1]) + body[1:])

    keeping.bend = mangle
    script = keeping.script(HEAD=telling) if has_digests else keeping.script()
    outcome, server = sent(script, tmp_path, checksum="auto" if has_digests else "adler32")
    assert outcome.code == 0, outcome
    assert parts_sent(server) > 1
    assert any("arrived damaged" in note for note in outcome.notes)


LOSES: dict[str, Callable[[Keeping, Exchange], Answer]] = {
    "truncates": lambda _, exchange: truncates(exchange),
    "nothing": lambda _, exchange: (exchange.body(), Answer(204))[1],
    "longer": lambda keeping, exchange: keeping.store(exchange, exchange.body() + b"x"),
}


@pytest.mark.parametrize("kind", LOSES)
def test_parts_that_are_lost_show(kind: str, tmp_path: Path) -> None:
    keeping = Keeping()
    keeping.bend = lambda exchange: LOSES[kind](keeping, exchange)
    outcome, server = sent(keeping.script(), tmp_path)
    assert outcome.code == 0, outcome
    assert parts_sent(server) > 1
    shows = "were stored; sent again" if kind == "longer" else GONE  # by the size, or by what is read back
    assert any(shows in note for note in outcome.notes)


def test_a_part_that_is_taken_for_the_file_shows(tmp_path: Path) -> None:
    """A proxy loses the header of one part; later ones give the file its size, but not its data."""
    keeping, is_replaced, lock = Keeping(), threading.Event(), threading.Lock()

    def lose(exchange: Exchange) -> Answer:
        part, body = part_of(exchange), exchange.body()
        assert part is not None
        if part[1] == len(LARGE):
            is_replaced.wait(SOON_S)
        with lock:
            if part[0] > 0 and part[1] < len(LARGE) and not is_replaced.is_set():
                exchange.server.files[exchange.asked.path] = body
                is_replaced.set()
                return Answer(204)
        return keeping.store(exchange, body)

    keeping.bend = lose
    outcome, _ = sent(keeping.script(), tmp_path, streams=2, timeout_s=2 * SOON_S)
    assert (outcome.code, is_replaced.is_set()) == (0, True), outcome
    assert any(GONE in note for note in outcome.notes)


def test_a_server_that_shows_no_parts_is_sent_them_once(tmp_path: Path) -> None:
    """It answers a GET for a part with the whole file."""

    def whole(exchange: Exchange) -> Answer:
        return Answer(200, {}, exchange.server.files[exchange.asked.path])

    outcome, server = sent(Keeping().script(GET=whole), tmp_path)
    assert outcome.code == 0, outcome
    bodies = [int(each.headers["content-length"]) for each in server.asked("PUT") if PROBE not in each.path]
    assert sum(bodies) == len(LARGE)


def test_a_server_that_shows_some_parts_only_and_is_busy_then(tmp_path: Path) -> None:
    """Some proxies admit so many requests a second."""
    numbers = itertools.count()

    def limited(exchange: Exchange) -> Answer:
        return exchange.usual() if is_probe(exchange) or next(numbers) < 6 else Answer(503)

    outcome, server = sent(Keeping().script(GET=limited), tmp_path, retries=0)
    assert outcome.code == 0, outcome
    assert next(numbers) > 7
    assert parts_sent(server) > 1


@pytest.mark.parametrize("files", [1, None])
@pytest.mark.parametrize("is_first", [True, False], ids=["the empty file", "a part"])
def test_a_server_that_leads_elsewhere_after_all(is_first: bool, files: int | None, tmp_path: Path) -> None:
    """One of several behind one name, say: what it leads to gets the file whole."""
    keeping, times = Keeping(), itertools.count()

    def put(exchange: Exchange) -> Answer | None:
        is_part = part_of(exchange) is not None
        is_meant = not is_probe(exchange) and is_part != is_first and (is_part or not exchange.length)
        if is_meant and next(times) == 0:
            exchange.body()
            return Answer(307, {"Location": f"{exchange.server.origin}{exchange.asked.path}"})
        return keeping.put(exchange)

    outcome, _ = sent({"PUT": put}, tmp_path, retries=0, files=files)
    assert outcome.code == 0, outcome
    assert next(times) > 0


@pytest.mark.parametrize("status", [400, 405, 411, 416, 501])
def test_a_server_that_takes_no_parts_after_all_gets_the_file_whole(status: int, tmp_path: Path) -> None:
    def refuse(exchange: Exchange) -> Answer:
        exchange.body()
        return Answer(status)

    outcome, _ = sent(Keeping(refuse).script(), tmp_path, retries=0)
    assert outcome.code == 0, outcome
    assert any("is sent again, in one stream" in note for note in outcome.notes)


@pytest.mark.parametrize(("status", "code"), [(403, 4), (404, 4), (409, 4), (412, 4), (507, 9), (423, 4)])
def test_refusals_of_parts(status: int, code: int, tmp_path: Path) -> None:
    def refuse(exchange: Exchange) -> Answer:
        exchange.body()
        return Answer(status)

    outcome, _ = sent(Keeping(refuse).script(), tmp_path, retries=2)
    assert outcome.code == code, outcome
    assert str(status) in outcome.text or "does not exist" in outcome.text


@pytest.mark.parametrize("status", [429, 500, 503])
def test_parts_that_are_refused_for_now_are_sent_again(status: int, tmp_path: Path) -> None:
    keeping = Keeping()

    def refuse(exchange: Exchange) -> Answer:
        exchange.body()
        return Answer(status)

    numbers = itertools.count()
    keeping.bend = lambda exchange: refuse(exchange) if next(numbers) < 2 else keeping.put(exchange)
    outcome, _ = sent(keeping.script(), tmp_path, retries=3)
    assert outcome.code == 0, outcome
    assert sent(Keeping(refuse).script(), tmp_path, retries=1)[0].code == 6


def test_a_connection_that_is_reset_costs_the_parts_that_were_under_way(tmp_path: Path) -> None:
    keeping, numbers = Keeping(), itertools.count(1)

    def reset(exchange: Exchange) -> Answer | None:
        if next(numbers) not in (3, 9):
            return keeping.put(exchange)
        exchange.read(1000)
        exchange.reset()
        return None

    keeping.bend = reset
    outcome, server = sent(keeping.script(), tmp_path, retries=3)
    assert outcome.code == 0, outcome
    carried = sum(int(each.headers["content-length"]) for each in server.asked("PUT"))
    assert carried < 2 * len(LARGE)


def test_a_server_that_ends_connections_behind_answers(tmp_path: Path) -> None:
    keeping = Keeping()

    def ends(exchange: Exchange) -> Answer:
        return Answer(keeping.store(exchange, exchange.body()).status, {"Connection": "close"}, ends=True)

    keeping.bend = ends
    assert sent(keeping.script(), tmp_path, retries=3)[0].code == 0


def test_a_server_that_says_how_many_requests_it_takes(tmp_path: Path) -> None:
    """It ends the connection behind the last: nothing is sent then that has to be sent again."""
    keeping, lock, taken = Keeping(), threading.Lock(), dict[int, int]()
    ahead: list[int] = []  # connections over which more was sent than they take

    def put(exchange: Exchange) -> Answer:
        with lock:
            number = exchange.asked.connection
            left = 14 - taken.setdefault(number, 0)
            taken[number] += 1
        answer = keeping.store(exchange, exchange.body())
        if left == 0:
            if select.select([exchange.connection], [], [], SOON_S)[0]:
                ahead.append(number)
            return Answer(answer.status, {"Connection": "close"}, ends=True)
        return Answer(answer.status, {"Keep-Alive": f"timeout=5, max={left}"})

    outcome, _ = sent({"PUT": put}, tmp_path, retries=0, streams=2)
    assert outcome.code == 0, outcome
    assert max(taken.values()) == 15
    assert ahead == []


def test_a_partial_file_that_is_removed_is_sent_whole(tmp_path: Path) -> None:
    """A part that makes the file new (201) shows that what came before is gone."""
    keeping = Keeping()

    numbers = itertools.count(1)

    def bend(exchange: Exchange) -> Answer | None:
        if next(numbers) == 3:
            keeping.remove(exchange)
        return keeping.put(exchange)

    keeping.bend = bend
    outcome, _ = sent(keeping.script(), tmp_path)
    assert outcome.code == 0, outcome
    assert any("was removed while it was stored" in note for note in outcome.notes)


def test_a_part_is_stored_before_it_was_sent(tmp_path: Path) -> None:
    """An answer that comes too soon is not believed."""

    def early(exchange: Exchange) -> Answer:
        exchange.read(100)
        return Answer(204, ends=True)

    assert sent(Keeping(early).script(), tmp_path, retries=0)[0].code in (0, 6)
