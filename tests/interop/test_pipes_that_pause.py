"""Pipes whose writer pauses, stays away, or loses the server meanwhile: the server is not taken for slow."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from interop.foreign_servers import PyFtpdLib
from interop.stock_server import StockServer
from random_bytes import random_bytes
from sites import partials

import mpx
from mpx.endpoints.ftp.mode_e import upload_watch
from mpx.serve import Server
from mpx.serve.session import Limits

pytestmark = pytest.mark.peers
CONTENT = random_bytes(3_000_001)
PAUSE_TICKS = 40  # of the control loop, which takes 0.1 s or longer for each: more than ...
QUICKER = 20  # ... the 60 s of a time-out by the clock of the watch

ONCE_MORE = mpx.CopyOptions(retries=1)

FarServer = StockServer | PyFtpdLib


@pytest.fixture(params=[StockServer, PyFtpdLib], ids=["MODE E", "MODE S"])
def far(request: pytest.FixtureRequest, tmp_path: Path, with_password: None) -> Iterator[FarServer]:
    root = tmp_path / "served"
    root.mkdir()
    with request.param(root) as server:
        yield server


@pytest.fixture
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch of uploads has a clock that runs fast; no other time-out does."""
    clock = SimpleNamespace(monotonic=lambda: QUICKER * time.monotonic())
    monkeypatch.setattr(upload_watch, "time", clock)
    monkeypatch.setattr(upload_watch, "TICK_S", 0.1)


class Writer(threading.Thread):
    """Writes the first half into a fifo, waits until it `may_go_on`, and writes the rest."""

    def __init__(self, fifo: Path) -> None:
        super().__init__()
        self._fifo = fifo
        self.may_go_on = threading.Event()
        os.mkfifo(fifo)
        self.start()

    def run(self) -> None:
        half = len(CONTENT) // 2
        with contextlib.suppress(BrokenPipeError), self._fifo.open("wb", buffering=0) as out:
            out.write(CONTENT[:half])
            self.may_go_on.wait()
            out.write(CONTENT[half:])


def test_a_pause_is_no_time_out(far: FarServer, here: Path, quick_watch: None) -> None:
    writer = Writer(here / "fifo")
    ticks = 0

    def count(_: mpx.Progress) -> None:
        nonlocal ticks
        ticks += 1
        if ticks > PAUSE_TICKS:
            writer.may_go_on.set()

    try:
        report = mpx.copy(str(here / "fifo"), f"{far.url}out", on_progress=count)
    finally:
        writer.may_go_on.set()
        writer.join()
    assert (far.root / "out").read_bytes() == CONTENT
    assert not any("trying again" in note for note in report.notes), report.notes


def test_a_server_that_is_lost_is_named(far: FarServer, here: Path) -> None:
    """With the pipe, which cannot be read again; nobody waits for the server for that."""
    writer = Writer(here / "fifo")
    is_lost = False

    def lose(_: mpx.Progress) -> None:
        nonlocal is_lost
        if not is_lost and any(part.stat().st_size for part in partials(far.root)):
            is_lost = True
            far.kill()
            writer.may_go_on.set()

    try:
        with pytest.raises(
            mpx.ConnectionLost, match=r"(closed|lost).*; .*/fifo is a pipe and cannot be read a"
        ) as lost:
            mpx.copy(str(here / "fifo"), f"{far.url}out", ONCE_MORE, on_progress=lose)
    finally:
        writer.may_go_on.set()
        writer.join()
    assert lost.value.report.files.failed == 1
    assert not any("cannot connect" in note for note in lost.value.report.notes)


def test_what_a_server_ends_is_named(here: Path) -> None:
    """As `mpx serve` does, where nothing moves for long enough."""
    writer = Writer(here / "fifo")
    root = here / "served"
    root.mkdir()
    try:
        with (
            Server(root, writable=True, limits=Limits(stall_s=0.5)) as server,
            pytest.raises(
                mpx.ConnectionLost,
                match=r"nothing moved for 0.5 s.*; .*/fifo is a pipe and cannot be read a second",
            ),
        ):
            mpx.copy(str(here / "fifo"), f"{server.url}out")
    finally:
        writer.may_go_on.set()
        writer.join()
    assert not (root / "out").exists()
    assert not partials(root)


def test_a_fifo_without_a_writer_is_no_slow_server(
    far: FarServer, here: Path, quick_watch: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short the time-out is."""
    monkeypatch.setattr("mpx.engine.source_stream.WRITER_WAIT_S", 60 / QUICKER + 1)
    os.mkfifo(here / "fifo")
    with pytest.raises(mpx.SourceError, match="nobody has opened the fifo"):
        mpx.copy(str(here / "fifo"), f"{far.url}out", ONCE_MORE)
