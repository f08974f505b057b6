"""Pieces of a download in MODE S: what counts, how soon, and what the rate is charged with."""

import random
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from unit.made_up_context import a_context, a_file

from mpx.endpoints.ftp.mode_s import download
from mpx.endpoints.ftp.mode_s.download import Incoming, Receive, StreamDownload
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_control import PathControl
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.rate_limiter import RateLimiter
from mpx.errors import ConnectionLost

SIZE = 1_000_000
CONTENT = random.Random(7).randbytes(SIZE)


class Told(RateLimiter):
    """Knows how much of the rate was taken."""

    def __init__(self) -> None:
        super().__init__(threading.Event())
        self.taken_bytes = 0

    def wait(self, size_bytes: int) -> None:
        self.taken_bytes += size_bytes


class Server:
    """Sends a file in small segments, as they come over a network, from any offset to its end."""

    def __init__(self) -> None:
        self.asked: list[int] = []  # offsets
        self.came_bytes = 0
        self.ends_at: int | None = None  # where it loses the connection

    def retrieve(self, file: FileTransfer, offset: int, expected: int | None, receive: Receive) -> Incoming:
        self.asked.append(offset)
        ends_at = self.ends_at if self.ends_at is not None and self.ends_at > offset else None
        ours, theirs = socket.socketpair()

        def send() -> None:
            with theirs:
                for start in range(offset, ends_at or SIZE, 1460):
                    try:
                        theirs.sendall(CONTENT[start : min(start + 1460, ends_at or SIZE)])
                    except OSError:  # cut by the client
                        return

        sender = threading.Thread(target=send)
        sender.start()
        try:
            came = receive(ours, self._count)
        finally:
            ours.close()
            sender.join()
        if ends_at and came.is_ended:
            raise ConnectionLost("lost")
        return came

    def _count(self, size_bytes: int) -> None:
        self.came_bytes += size_bytes


@pytest.fixture
def server() -> Server:
    return Server()


def brought(
    server: Server, tmp_path: Path, *pieces: tuple[int, int], limiter: RateLimiter | None = None
) -> tuple[FileTransfer, bytes]:
    """Bring pieces of the file over one session; return the file and what is on disk."""
    context = a_context()
    if limiter:
        context = replace(context, controls={DEFAULT_PATH: PathControl(limiter)})
    work = StreamDownload(context, RangeScheduler(context), server.retrieve, lambda _: None)
    file = a_file(SIZE)
    with (tmp_path / "part").open("w+b") as part:
        for start, end in pieces:
            try:
                work.bring(Piece(file, start, end), part.fileno())
            except ConnectionLost:
                break
        part.seek(0)
        return file, part.read()


def test_a_long_part_counts_as_soon_as_its_session_is_confirmed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So an interruption, here a loss, leaves what has come."""
    monkeypatch.setattr(download, "UNCONFIRMED_S", 0.0)
    server.ends_at = 600_000
    file, kept = brought(server, tmp_path, (200_000, 900_000))
    assert file.arrived_bytes == 400_000
    assert kept[200_000:600_000] == CONTENT[200_000:600_000]
    proven, part, confirmed, rest = server.asked
    assert (proven, part, confirmed) == (SIZE - 1, 200_000, SIZE - 1)
    assert 200_000 < rest < 600_000


def test_the_end_of_a_file_counts_once_it_has_ended_where_it_should(server: Server, tmp_path: Path) -> None:
    """Nothing but its length shows that it is what was asked for, also over a session that is confirmed."""
    server.ends_at = 800_000
    file, _ = brought(server, tmp_path, (200_000, 600_000), (600_000, SIZE))
    assert server.asked[-1] == 600_000
    assert file.arrived_bytes == 400_000


@pytest.mark.parametrize("unconfirmed_s", [0.0, 1000.0])
def test_the_end_of_a_file_and_its_parts(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unconfirmed_s: float
) -> None:
    monkeypatch.setattr(download, "UNCONFIRMED_S", unconfirmed_s)
    pieces = (700_000, SIZE), (300_000, 700_000), (0, 300_000)
    file, kept = brought(server, tmp_path, *pieces)
    assert file.arrived_bytes == SIZE
    assert kept == CONTENT


def test_the_rate_is_charged_with_what_came(server: Server, tmp_path: Path) -> None:
    """Not with what was wanted: segments are far smaller, and a copy would be as much slower than allowed."""
    limiter = Told()
    brought(server, tmp_path, (700_000, SIZE), (0, 700_000), limiter=limiter)
    assert limiter.taken_bytes == server.came_bytes
