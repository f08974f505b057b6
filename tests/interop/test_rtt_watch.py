"""Round-trip times beside a copy, of real servers: on one clock with the copy, until told to end."""

import math
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sites import opened

from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.errors import ConnectionLost, Interrupted
from mpx.location import parse_location
from mpx.options import CopyOptions
from mpx.recognition.watch import RttWatch
from mpx.serve import Server
from mpx.transfer.registry import log_in_to_probe

Eventually = Callable[..., None]


def test_inside_tls_it_logs_in_with_the_token_and_uses_the_echo(
    tmp_path: Path, eventually: Eventually
) -> None:
    with opened("mpx serve with a token", tmp_path) as site:
        location, options = parse_location(site.url), CopyOptions()
        pool = SessionPool(remembers=False)
        log_in = log_in_to_probe(location, options, pool)
        watch = RttWatch("127.0.0.1", ("127.0.0.1", location.port), log_in=log_in)
        watch.start()
        eventually(lambda: len(watch.series(0.0)) >= 5)
        assert "echo of mpx serve" in watch.method and watch.trouble == ""
        watch.end()


def test_it_watches_until_it_is_told_to_end(tmp_path: Path, eventually: Eventually) -> None:
    with Server(tmp_path) as server:
        watch = RttWatch("127.0.0.1", ("127.0.0.1", server.port))
        assert watch.series(0.0) == [] and math.isinf(watch.base_s)
        began_s = time.monotonic()
        watch.start()
        eventually(lambda: len(watch.series(0.0)) >= 5)
        series = watch.series(0.0)
        watch.end()
        assert not watch.is_alive()
    assert "echo of mpx serve" in watch.method and watch.trouble == ""
    assert all(began_s < probe.t_s < time.monotonic() and probe.rtt_s for probe in series)
    assert watch.base_s == min(probe.rtt_s for probe in series if probe.rtt_s)
    assert watch.series(series[2].t_s)[:1] == [series[2]]


def test_where_nothing_answers_it_says_so() -> None:
    watch = RttWatch("nowhere", ("192.0.2.1", 2811))  # of an address that is nobody's
    watch.start()
    watch.end()
    assert watch.series(0.0) == []


def test_a_server_that_goes_away_is_looked_for_again(tmp_path: Path, eventually: Eventually) -> None:
    with Server(tmp_path) as server:
        watch = RttWatch("127.0.0.1", ("127.0.0.1", server.port))
        watch.start()
        eventually(lambda: len(watch.series(0.0)) >= 2)
    gone_s = time.monotonic()
    assert watch.base_s < 1 and watch.trouble == ""
    eventually(lambda: watch.series(0.0) == [])  # of the past: nobody is to decide by it
    with Server(tmp_path, port=server.port):
        eventually(lambda: len(watch.series(0.0)) >= 2)
        assert watch.series(0.0) == watch.series(gone_s)
        watch.end()
    assert watch.trouble == ""


def test_it_ends_at_once_though_the_other_side_says_nothing(eventually: Eventually) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        accepted = threading.Thread(target=mute.accept)
        accepted.start()
        watch = RttWatch("127.0.0.1", ("127.0.0.1", mute.getsockname()[1]))
        watch.start()
        eventually(lambda: not accepted.is_alive())
        watch.end()
    assert not watch.is_alive()


def test_a_server_that_has_no_session_to_spare_is_asked_again(tmp_path: Path, eventually: Eventually) -> None:
    with socket.create_server(("127.0.0.1", 0)) as full:
        address = full.getsockname()
        watch = RttWatch("127.0.0.1", address)
        watch.start()
        session, _ = full.accept()
        with session:
            session.sendall(b"421 Too many sessions.\r\n")
            eventually(lambda: watch.trouble)
    assert "no further session" in watch.trouble and "Too many sessions" in watch.trouble
    with Server(tmp_path, port=address[1]):
        eventually(lambda: watch.series(0.0))
        watch.end()
    assert watch.trouble == ""


def test_a_way_that_is_lost_for_good_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr("mpx.recognition.watch.AGAIN_S", 0.1)
    with Server(tmp_path) as server:
        watch = RttWatch("127.0.0.1", ("127.0.0.1", server.port))
        watch.start()
        eventually(lambda: watch.series(0.0))
    eventually(lambda: watch.trouble)
    assert watch.method == ""
    with Server(tmp_path, port=server.port):
        eventually(lambda: watch.series(0.0))
        assert watch.trouble == "" and watch.method
        watch.end()


def test_without_a_thread_to_probe_in_it_says_so_and_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    def none_left(_: object) -> None:
        raise RuntimeError("can't start new thread")

    with Server(tmp_path) as server:
        watch = RttWatch("127.0.0.1", ("127.0.0.1", server.port))
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", none_left)
            watch.begin()
        assert watch.trouble == "can't start new thread"
        watch.begin()
        eventually(lambda: watch.series(0.0))
        assert watch.trouble == ""
        watch.end()


class Scripted(RttWatch):
    """One whose ways are found and lost as a test says; it notes the trouble in between."""

    def __init__(self, finds: list[bool]) -> None:
        super().__init__("somewhere", ("192.0.2.1", 2811))
        self._finds = iter(finds)
        self.troubles: list[str] = []

    def _probe(self) -> None:
        self.troubles.append(self.trouble)
        finds = next(self._finds, None)
        if finds is None:
            raise Interrupted
        if finds:
            self.method, self.trouble = "a way", ""
        raise ConnectionLost("lost" if finds else "none")


def test_only_the_first_loss_of_a_way_is_no_trouble_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.recognition.watch.AGAIN_S", 0.001)
    watch = Scripted([True, False, True, True])
    watch.run()
    assert watch.troubles == ["", "", "none", "lost", "lost"]


@pytest.mark.parametrize("echoes", [True, False])
def test_only_the_echo_is_as_quick_as_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually, echoes: bool
) -> None:
    """What a session's program takes for its answer is no queue."""
    if not echoes:
        monkeypatch.setattr("mpx.serve.server.Echo", fails)
    with Server(tmp_path) as server:
        watch = RttWatch("127.0.0.1", ("127.0.0.1", server.port), asked_s=2e-9, kernel_s=1e-9)
        watch.start()
        eventually(lambda: watch.series(0.0))
        assert watch.base_s == (1e-9 if echoes else 2e-9)
        watch.end()


def fails(*_: object) -> None:
    raise OSError("no socket")
