"""A server that goes away is no server that admits few sessions: it is waited for, as --retries says."""

import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_command import command
from random_bytes import random_bytes

import mpx
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.errors import ConnectionLost
from mpx.gridftp import GridFtpEndpoint
from mpx.location import parse_location
from mpx.serve import Server
from mpx.transfer.registry import session_options

pytestmark = pytest.mark.peers
CONTENT = random_bytes(20_000_003)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    served = tmp_path / "served"
    served.mkdir()
    return served


def test_refused_connections_are_no_limit_where_no_session_lives(root: Path) -> None:
    """Although nobody has closed those that there were."""
    notes: list[str] = []
    pool = SessionPool(lambda text, *_: notes.append(text))
    options = replace(session_options(mpx.CopyOptions(), lambda: False, pool=pool), waits_for_turn=False)
    with StockServer(root) as server:
        location = parse_location(server.url).absolute()
        with pool.open(location, options), pool.open(location, options):
            server.kill()
            with pytest.raises(ConnectionLost, match="refused"):
                pool.open(location, options)
            assert (pool.limit, notes) == (None, [])
            server.start()
            pool.open(location, options).close()


def test_what_a_server_can_is_known_when_it_is_gone(root: Path) -> None:
    with Server(root) as server:
        location = parse_location(server.url).absolute()
        options = session_options(mpx.CopyOptions(), lambda: False)
        end = GridFtpEndpoint(location, options, writing=False)
        told = end.find_out()
        assert end.stat(location.name) is not None
        end.close()
    assert end.find_out() == told


class OwnServer:
    """`mpx serve` as a process of its own, which can be killed, and started again on the same port."""

    def __init__(self, root: Path, *more: str) -> None:
        self._root, self._more, self._port = root, more, 0
        self.start()

    def start(self) -> None:
        words = ("serve", self._root, "--port", self._port, *self._more)
        self._process = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout
        self.url = next(word for word in self._process.stdout.readline().decode().split() if "://" in word)
        self._port = parse_location(self.url).port

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        with self._process as process:
            process.kill()


@pytest.mark.parametrize("direction", ["up", "down"])
def test_progress_says_that_nothing_arrives_and_what_is_done(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    monkeypatch.setattr("mpx.transfer.timeline.QUIET_S", 1.0)
    here, there = tmp_path / "near", root / "file"
    (here if direction == "up" else there).write_bytes(CONTENT[:4_000_000])
    said: list[str] = []
    steps = iter(("stopped", "killed", "back", "ended"))
    is_at = next(steps)

    def watch(progress: mpx.Progress) -> None:
        nonlocal is_at
        said.append(progress.outage)
        if is_at == "stopped" and progress.bytes_done > 500_000:
            server.stop()
        elif is_at == "killed" and "; waiting, for 1 min 00 s at most (--timeout)" in progress.outage:
            server.kill()
        elif is_at == "back" and "; reconnecting, attempt " in progress.outage:
            server.start()
        else:
            return
        is_at = next(steps)

    server = OwnServer(root, "--writable")
    names = f"{server.url}file", str(here)
    try:
        mpx.copy(
            *(names if direction == "down" else names[::-1]), mpx.CopyOptions(rate_bps=8e6), on_progress=watch
        )
    finally:
        server.kill()
    assert here.read_bytes() == there.read_bytes()
    assert is_at == "ended"
    assert all(not each or each.startswith("no new data for ") for each in said)
    assert said[-1] == ""


def test_a_download_waits_for_its_server(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone just when the control loop begins to read the background."""
    monkeypatch.setattr("mpx.transfer.background.LONG_S", float("inf"))
    monkeypatch.setattr("mpx.transfer.background.WORTH_A_SWITCH_S", 0.0)
    monkeypatch.setattr("mpx.endpoints.ftp.session_pool.STALE_S", 0.0)
    monkeypatch.setattr(SessionPool, "is_wanted", True)  # so that the session of the listing is given back
    (root / "file").write_bytes(CONTENT)
    reports: list[mpx.Report] = []
    steps = iter(("killed", "looked", "back"))

    def lose(progress: mpx.Progress) -> None:
        """Called once in each round of the control loop, before it looks at the background."""
        nonlocal is_at
        if is_at == "" and progress.bytes_done > len(CONTENT) // 8:
            server.kill()
        elif is_at == "killed" and any("trying again after" in note for note in reports[0].notes):
            monkeypatch.setattr("mpx.transfer.background.LONG_S", 0.0)
        elif is_at == "looked":
            server.start()
        else:
            return
        is_at = next(steps)

    is_at, server = "", OwnServer(root)
    try:
        report = mpx.copy(
            server.url,
            str(tmp_path / "near"),
            mpx.CopyOptions(recursive=True, rate_bps=20e6, retries=100),  # for a busy machine
            on_progress=lose,
            on_begun=reports.append,
        )
    finally:
        server.kill()
    assert is_at == "back"
    assert (tmp_path / "near" / "file").read_bytes() == CONTENT
    assert not any("refused a further" in note for note in report.notes), report.notes
