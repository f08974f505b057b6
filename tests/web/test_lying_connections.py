"""Servers that stall, break connections, end them early, or do not speak HTTP/1.1."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, copied, down, exact, first, up
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp

INTERIM = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n"


def stalls(exchange: Exchange) -> None:
    exchange.hold()


def stalls_within(exchange: Exchange) -> None:
    exchange.say(exchange.usual().packed()[:1000])
    exchange.hold()


def resets(exchange: Exchange) -> None:
    exchange.reset()


def resets_within(exchange: Exchange) -> None:
    exchange.reset(exchange.usual().packed()[:20_000])


def closes(exchange: Exchange) -> None:
    exchange.is_over = True


BREAKS: dict[Scripted, int] = {stalls: 7, stalls_within: 7, resets: 6, resets_within: 6, closes: 6}


@pytest.mark.parametrize("how", BREAKS, ids=lambda how: how.__name__)
def test_it_breaks(how: Scripted, tmp_path: Path) -> None:
    with ScriptedHttp({"GET": how}, {NAME: LARGE}) as server:
        outcome = down(server, tmp_path, timeout_s=0.3, retries=0, streams=1)
        assert outcome.code == BREAKS[how], outcome
        assert str(server.port) in outcome.text


@pytest.mark.parametrize("how", BREAKS, ids=lambda how: how.__name__)
def test_it_breaks_once(how: Scripted, tmp_path: Path) -> None:
    with ScriptedHttp({"GET": first(2, how)}, {NAME: LARGE}) as server:
        assert down(server, tmp_path, timeout_s=0.3, streams=2).code == 0
        assert exact(server, tmp_path)


@pytest.mark.parametrize("method", ["OPTIONS", "PROPFIND", "HEAD"])
@pytest.mark.parametrize("how", [stalls, resets], ids=lambda how: how.__name__)
def test_it_breaks_where_it_is_asked_what_it_has(how: Scripted, method: str, tmp_path: Path) -> None:
    script = {method: first(1, how)}
    if method != "OPTIONS":  # which goes together with the first GET, and that would do
        script["GET"] = first(1, lambda _: Answer(404))
    with ScriptedHttp(script, {NAME: SMALL}) as server:
        outcome = down(server, tmp_path, timeout_s=0.3)
        assert outcome.code in (0, 6, 7), outcome
        assert outcome.code or exact(server, tmp_path)


@pytest.mark.parametrize("after", [1, 3])
def test_connections_that_end_after_some_answers(after: int, tmp_path: Path) -> None:
    """With requests behind them that were sent already."""
    counts: dict[int, int] = {}

    def ends(exchange: Exchange) -> Answer:
        number = exchange.asked.connection
        counts[number] = counts.get(number, 0) + 1
        return replace(exchange.usual(), ends=counts[number] >= after)

    with ScriptedHttp(dict.fromkeys(("GET", "HEAD", "PROPFIND"), ends), {NAME: LARGE}) as server:
        outcome = down(server, tmp_path, streams=1)
        assert outcome.code == 0
        assert exact(server, tmp_path)
    assert sum("trying again" in note for note in outcome.notes) <= 1  # then nothing is sent ahead


class ClosedWhenReused:
    """Answers one request of each connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: set[int] = set()

    def __call__(self, exchange: Exchange) -> Answer | None:
        with self._lock:
            if exchange.asked.connection in self._used:
                exchange.is_over = True
                return None
            self._used.add(exchange.asked.connection)
        return exchange.usual()


def test_connections_that_end_when_they_are_reused(tmp_path: Path) -> None:
    with ScriptedHttp({"GET": ClosedWhenReused()}, {NAME: LARGE}) as server:
        assert down(server, tmp_path, streams=2).code == 0
        assert exact(server, tmp_path)


@pytest.mark.parametrize("size", [5, len(LARGE)])
def test_uploads_over_connections_that_end(size: int, tmp_path: Path) -> None:
    """Not even one retry is needed: what a kept connection did not carry goes over another."""
    (tmp_path / "from/a/b").mkdir(parents=True)
    for number in range(3):
        (tmp_path / f"from/a/b/{number}").write_bytes(LARGE[:size])

    def ends(exchange: Exchange) -> Answer:
        return replace(exchange.usual(), ends=True)

    script = dict.fromkeys(("OPTIONS", "PROPFIND", "MKCOL", "PUT", "MOVE"), ends)
    with ScriptedHttp(script, {"/folder/other": b""}) as server:
        to = f"{server.dav}/folder/to"
        outcome = copied(tmp_path / "from", to, recursive=True, retries=0, streams=1)
        assert outcome.code == 0, outcome
        assert [server.files[f"/folder/to/a/b/{n}"] == LARGE[:size] for n in range(3)] == [True] * 3


def test_short_uploads_over_connections_that_end_when_they_are_reused(tmp_path: Path) -> None:
    """What was sent is lost with them; it is sent again, and that is no failure."""
    (tmp_path / "from").mkdir()
    for number in range(4):
        (tmp_path / f"from/{number}").write_bytes(b"12345")
    once_each = ClosedWhenReused()

    def reads(exchange: Exchange) -> Answer | None:
        exchange.body()
        return once_each(exchange)

    with ScriptedHttp({"PUT": reads}, {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "from", f"{server.dav}/folder/to", recursive=True, retries=0, streams=1)
        assert outcome.code == 0, outcome
        assert all(server.files[f"/folder/to/{n}"] == b"12345" for n in range(4))


@pytest.mark.parametrize("interim", [INTERIM, b"HTTP/1.1 100 Continue\r\n\r\n" * 20], ids=["102", "100"])
def test_interim_answers(interim: bytes, tmp_path: Path) -> None:
    def slow(exchange: Exchange) -> Answer:
        exchange.say(interim)
        return exchange.usual()

    script = dict.fromkeys(("GET", "HEAD", "PROPFIND", "PUT", "MOVE"), slow)
    with ScriptedHttp(script, {NAME: LARGE}) as server:
        assert down(server, tmp_path).code == 0
        assert exact(server, tmp_path)
        server.files.clear()
        assert up(server, tmp_path / "file").code == 0
        assert server.files[NAME] == LARGE


NO_HTTP = {
    "interim answers without end": b"HTTP/1.1 102 Processing\r\n\r\n" * 300,
    "another protocol": b"220 ready\r\n",
    "HTTP/0.9": b"<html>",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    "a status that is none": b"HTTP/1.1 2000 OK\r\n\r\n",
    "a version that is none": b"HTTP/2 200\r\n\r\n",
    "a header of a megabyte": b"HTTP/1.1 200 OK\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n",
    "a header without end": b"HTTP/1.1 200 OK\r\nX: y",
    "a status line without end": b"HTTP/1.1 200 " + b"y" * (1 << 17),
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000,
    "a line that is no header": b"HTTP/1.1 200 OK\r\nnone \x1b[2J\r\nContent-Length: 1\r\n\r\nx",
    "a name with a blank": b"HTTP/1.1 200 OK\r\nContent-Length : 300000\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
    "an encoding nobody asked for": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two encodings": b"HTTP/1.1 200 OK\r\n%b\r\n0\r\n\r\n"
    % b"".join(b"Transfer-Encoding: %b\r\n" % each for each in (b"chunked", b"gzip")),
}


@pytest.mark.parametrize("kind", NO_HTTP)
def test_what_is_no_answer(kind: str, tmp_path: Path) -> None:
    script: dict[str, Scripted] = {"GET": lambda exchange: exchange.bye(NO_HTTP[kind])}
    with ScriptedHttp(script, {NAME: SMALL}) as server:
        outcome = down(server, tmp_path, retries=0)
        assert outcome.code == 6, outcome
        assert str(server.port) in outcome.text
        assert ("is no header" in outcome.text) == ("that is no header" in kind or "name with" in kind)
