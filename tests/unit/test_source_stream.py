"""Local sources of unknown size: all of their bytes, in order, whoever asks; a pipe is read once."""

import os
import random
import threading
from pathlib import Path

import pytest

from mpx.errors import Interrupted, SourceError
from mpx.move import Move
from mpx.source_stream import SourceStream

CONTENT = random.Random(3).randbytes(3_000_001)


def a_move(name: Path | str) -> Move:
    return Move(str(name), "final", "part", None, None, None)


def opened(move: Move) -> SourceStream:
    return SourceStream(move, move.open(move.source, os.O_RDONLY | os.O_NONBLOCK), lambda: False)


def all_of(stream: SourceStream) -> dict[int, bytes]:
    """Read with several threads at once; return what came by where it belongs."""
    came: dict[int, bytes] = {}

    def read() -> None:
        buffer = memoryview(bytearray(100_000))
        while piece := stream.read(buffer):
            came[piece[0]] = bytes(buffer[: piece[1] - piece[0]])

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return came


def joined(came: dict[int, bytes]) -> bytes:
    content = b""
    for start in sorted(came):
        assert start == len(content)
        content += came[start]
    return content


def test_a_file_is_read_to_its_end_and_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    move = a_move(tmp_path / "file")
    for _ in range(2):
        move.take_all()
        assert joined(all_of(opened(move))) == CONTENT
        assert (move.size_bytes, move.is_streamed) == (len(CONTENT), False)
    move.close()
    move.close()


def test_a_file_of_proc(tmp_path: Path) -> None:
    move = a_move("/proc/version")
    assert joined(all_of(opened(move))) == Path("/proc/version").read_bytes()
    move.close()


def test_a_pipe_is_waited_for_and_cannot_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    move = a_move(tmp_path / "pipe")
    stream = opened(move)  # nobody writes yet: that is not its end
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(CONTENT,))
    writer.start()
    assert joined(all_of(stream)) == CONTENT
    writer.join()
    move.take_all()
    with pytest.raises(SourceError, match="second time"):
        opened(move)
    move.close()
    move.close()


def test_a_pipe_that_nobody_writes_to_is_left_when_the_copy_stops(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    move = a_move(tmp_path / "pipe")
    asked = iter([False, True])
    stream = SourceStream(move, move.open(move.source, os.O_RDONLY | os.O_NONBLOCK), lambda: next(asked))
    with pytest.raises(Interrupted):
        stream.read(memoryview(bytearray(10)))
    move.close()


def test_a_file_that_waits_for_what_is_to_come_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /proc/kmsg does, which calls itself a regular file; to read that would take it from others."""
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("mpx.source_stream.stat.S_ISREG", lambda _: True)
    move = a_move(tmp_path / "pipe")
    with pytest.raises(SourceError, match="has no end"):
        opened(move).read(memoryview(bytearray(10)))
    move.close()
