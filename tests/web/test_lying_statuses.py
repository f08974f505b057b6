"""Refusals, and servers that are busy: the right error, or patience and fewer connections."""

import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, Outcome, copied, down, exact, first, up
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp

DOWN = {400: 3, 401: 5, 403: 3, 404: 3, 409: 3, 410: 3, 412: 8, 429: 6, 500: 6, 502: 6, 503: 6, 507: 6}
UP = {400: 4, 401: 5, 403: 4, 404: 4, 409: 4, 412: 4, 413: 4, 423: 4, 429: 6, 500: 6, 503: 6, 507: 9}


@pytest.mark.parametrize("status", DOWN)
def test_a_download_is_refused(status: int, tmp_path: Path) -> None:
    script: dict[str, Scripted] = {"GET": lambda _: Answer(status, {}, b"<html>no</html>")}
    with ScriptedHttp(script, {NAME: LARGE}) as server:
        outcome = down(server, tmp_path, f"?sig=s3cr3t&n={status}", retries=0)
        assert outcome.code == DOWN[status], outcome
        assert NAME in outcome.text
        assert str(status) in outcome.text


@pytest.mark.parametrize(
    ("asked", "told"),
    [("Negotiate", "Negotiate; mpx"), ('Digest realm="a"', "Digest; mpx"), ("Bearer", "token")],
)
def test_a_login_of_another_kind(asked: str, told: str, tmp_path: Path) -> None:
    """No token would help where that is not asked for."""
    refusal = Answer(401, {"WWW-Authenticate": asked})
    with ScriptedHttp({"GET": lambda _: refusal}, {NAME: SMALL}, tls=True) as server:
        outcome = down(server, tmp_path, retries=0)
    assert outcome.code == 5, outcome
    assert told in outcome.text


def test_a_part_is_refused(tmp_path: Path) -> None:
    """416 for a part of what is there: the file is read whole in place of that."""

    def refuses(exchange: Exchange) -> Answer:
        start = (exchange.asked.range or (0, 0))[0]
        return Answer(416, {"Content-Range": "bytes */5"}) if start else exchange.usual()

    with ScriptedHttp({"GET": refuses}, {NAME: LARGE}) as server:
        assert down(server, tmp_path).code == 0
        assert exact(server, tmp_path)


def uploaded(
    tmp_path: Path, script: dict[str, Scripted], size: int, **options: float
) -> tuple[Outcome, ScriptedHttp]:
    (tmp_path / "src").write_bytes(LARGE[:size])
    with ScriptedHttp(script, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", **options)
        assert (server.files.get(NAME) == LARGE[:size]) == (outcome.code == 0), outcome
    return outcome, server


@pytest.mark.parametrize("status", UP)
def test_an_upload_is_refused_before_the_body(status: int, tmp_path: Path) -> None:
    """Which is then not sent."""

    def refuses(exchange: Exchange) -> Answer:
        if exchange.asked.headers.get("expect") != "100-continue":
            return Answer(501, ends=True)  # as to the file that shows whether parts are stored
        return Answer(status, ends=True)

    outcome, server = uploaded(tmp_path, {"PUT": refuses}, len(LARGE), retries=0)
    assert outcome.code == UP[status], outcome
    assert ("see the server's log, and whether it has room" in outcome.text) == (status == 500)
    assert NAME not in server.files
    assert str(status) in outcome.text


def test_a_server_that_always_fails_to_store(tmp_path: Path) -> None:
    """The last message says how often that was, and what to look at; those before it do not."""
    outcome, _ = uploaded(tmp_path, {"PUT": lambda _: Answer(500, ends=True)}, 5, retries=2)
    assert outcome.code == 6 and ", 3 times in turn; see the server's log" in outcome.text, outcome
    assert not [note for note in outcome.notes if "in turn" in note]


def within(status: int, how: str) -> Scripted:
    """Refuse in the middle of a body."""

    def refuse(exchange: Exchange) -> None:
        exchange.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.read(10_000)
        answer = Answer(status, {"Connection": "close"}).packed()
        if how == "reset":
            exchange.reset(answer)
            return
        exchange.say(answer)
        if how == "stuck":
            exchange.wait_for_end()
        else:
            exchange.read(exchange.length - 10_000)

    return refuse


@pytest.mark.parametrize("how", ["reset", "stuck", "goes on"])
@pytest.mark.parametrize("status", [403, 413, 503, 507])
def test_an_upload_is_refused_within_the_body(status: int, how: str, tmp_path: Path) -> None:
    """Whether the rest is read, left in the connection, or cut off: the answer tells why."""
    outcome, _ = uploaded(tmp_path, {"PUT": within(status, how)}, len(LARGE), retries=0, timeout_s=0.3)
    assert outcome.code == UP[status] or (how == "reset" and outcome.code == 6), outcome


@pytest.mark.parametrize("status", [403, 413, 503, 507])
@pytest.mark.parametrize("size", [5, len(LARGE)])
def test_an_upload_is_refused_after_the_body(status: int, size: int, tmp_path: Path) -> None:
    def refuses(exchange: Exchange) -> Answer:
        exchange.body()
        return Answer(status)

    outcome, _ = uploaded(tmp_path, {"PUT": refuses}, size, retries=0)
    assert outcome.code == UP[status], outcome


# --- busy ----------------------------------------------------------------------------------------------


class BusyFor:
    """Is busy for a second from its first request on, and counts how often it is asked meanwhile."""

    def __init__(self, status: int) -> None:
        self._status, self._until_s = status, math.inf
        self.refused = 0

    def __call__(self, exchange: Exchange) -> Answer:
        if self._until_s == math.inf:
            self._until_s = time.monotonic() + 1.0
        if time.monotonic() >= self._until_s:
            return exchange.usual()
        self.refused += 1
        return Answer(self._status, {"Retry-After": "1"}, ends=True)


@pytest.mark.parametrize(("method", "status"), [("GET", 429), ("HEAD", 503)])
def test_a_time_to_wait(method: str, status: int, tmp_path: Path) -> None:
    """It is not asked again before that."""
    busy = BusyFor(status)
    with ScriptedHttp(
        {"GET": first(1, lambda _: Answer(404)), method: busy}, {NAME: SMALL}, is_dav=False
    ) as server:
        assert down(server, tmp_path, retries=5, streams=1).code == 0
        assert exact(server, tmp_path)
    assert busy.refused <= (2 if method == "GET" else 1)  # GET goes together with OPTIONS first


@pytest.mark.parametrize("method", ["OPTIONS", "PUT"])
def test_a_time_to_wait_before_an_upload(method: str, tmp_path: Path) -> None:
    busy = BusyFor(503)
    outcome, _ = uploaded(tmp_path, {method: busy}, 5, retries=5)
    assert outcome.code == 0
    assert busy.refused == 1
    assert not any("not atomic" in note for note in outcome.notes)


class BusyBut:
    """Serves so many connections at once, and tells the others that it is busy.

    With `at_first` it serves all until so many have come, and then those that came last.
    """

    def __init__(self, most: int, headers: Mapping[str, str], at_first: int = 0) -> None:
        self._most, self._headers = most, headers
        self._lock = threading.Lock()
        self._served: list[int] = []
        self._at_first, self._came = at_first, set[int]()
        self.refused = 0

    def __call__(self, exchange: Exchange) -> Answer:
        number = exchange.asked.connection
        with self._lock:
            self._served = [each for each in self._served if each not in exchange.server.ended]
            if len(self._came) < self._at_first:
                self._came.add(number)
            elif number not in self._served and len(self._served) >= self._most:
                self.refused += 1
                return Answer(503, self._headers, ends=True)
            if number not in self._served:
                self._served = [*self._served, number][-self._most :]
        return exchange.usual()


@pytest.mark.parametrize(
    ("most", "headers", "at_first"),
    [(1, {"Retry-After": "0"}, 4), (1, {}, 4), (2, {}, 4), (2, {"Retry-After": "0"}, 0)],
)
def test_busy_for_all_but_some_connections(
    most: int, headers: Mapping[str, str], at_first: int, tmp_path: Path
) -> None:
    """The copy goes on over those, whichever of ours they are."""
    busy = BusyBut(most, headers, at_first)
    with ScriptedHttp({"GET": busy}, {NAME: LARGE}) as server:
        outcome = down(server, tmp_path, streams=6, retries=1, rate_bps=72e6)  # which takes a second
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)
    assert busy.refused


def test_uploads_to_a_busy_server(tmp_path: Path) -> None:
    """No file is given up because others were stored meanwhile."""
    (tmp_path / "from").mkdir()
    for number in range(12):
        (tmp_path / f"from/{number}").write_bytes(LARGE[: 200_000 + number])
    busy = BusyBut(2, {})
    with ScriptedHttp({"PUT": busy}, {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "from", f"{server.dav}/folder/to", recursive=True, streams=6, retries=0)
        assert outcome.code == 0, outcome
        assert all(server.files[f"/folder/to/{n}"] == LARGE[: 200_000 + n] for n in range(12))


@pytest.mark.parametrize("tls", [True, False], ids=["in TLS", "in the clear"])
@pytest.mark.parametrize("asks", [True, False], ids=["asks", "does not ask"])
def test_a_server_that_forbids_without_asking_who_we_are(asks: bool, tls: bool, tmp_path: Path) -> None:
    """It may do so to all: a token need not help; but some that want one do not say so."""
    headers = {"WWW-Authenticate": "Bearer"} if asks else {}
    (tmp_path / "from").mkdir()
    (tmp_path / "from/file").write_bytes(SMALL)
    script: dict[str, Scripted] = {"MKCOL": lambda _: Answer(403, headers)}
    with ScriptedHttp(script, {"/folder/other": b""}, tls=tls) as server:
        outcome = copied(tmp_path / "from", f"{server.dav}/folder/to", recursive=True, retries=0)
    assert outcome.code == 4, outcome
    assert ("the server does not let that be made there: it asks for no login" in outcome.text) != asks
    assert ("get a token for localhost" in outcome.text) == tls  # which is not sent in the clear
