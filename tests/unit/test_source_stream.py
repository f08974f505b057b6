"""Local sources of unknown size: all of their bytes, in order, whoever asks; a pipe is read once."""

import os
import random
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_stream import SourceStream
from mpx.errors import Interrupted, SourceError
from mpx.files.fifo_writer import FifoWriter

CONTENT = random.Random(3).randbytes(3_000_001)


def a_file(name: Path | str) -> FileTransfer:
    return FileTransfer(str(name), "final", "part", FileInfo(Kind.FILE, None))


def opened(file: FileTransfer) -> SourceStream:
    return SourceStream(file, file.open(file.source, os.O_RDONLY | os.O_NONBLOCK), lambda: False)


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
    file = a_file(tmp_path / "file")
    for _ in range(2):
        file.take_all()
        assert joined(all_of(opened(file))) == CONTENT
        assert (file.size_bytes, file.is_streamed) == (len(CONTENT), False)
    file.close()
    file.close()


def test_a_file_of_proc(tmp_path: Path) -> None:
    file = a_file("/proc/version")
    assert joined(all_of(opened(file))) == Path("/proc/version").read_bytes()
    file.close()


def test_a_pipe_is_waited_for_and_cannot_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = a_file(tmp_path / "pipe")
    stream = opened(file)  # nobody writes yet: that is not its end
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(CONTENT,))
    writer.start()
    assert joined(all_of(stream)) == CONTENT
    writer.join()
    file.take_all()
    with pytest.raises(SourceError, match="second time"):
        opened(file)
    file.close()
    file.close()


def test_a_pipe_that_nobody_writes_to_is_left_when_the_copy_stops(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = a_file(tmp_path / "pipe")
    asked = iter([False, True])
    stream = SourceStream(
        file, file.open(file.source, os.O_RDONLY | os.O_NONBLOCK), lambda: next(asked, True)
    )
    with pytest.raises(Interrupted):
        stream.read(memoryview(bytearray(10)))
    file.close()


def test_a_file_that_waits_for_what_is_to_come_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /proc/kmsg does, which calls itself a regular file; to read that would take it from others."""
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("mpx.engine.source_stream.stat.S_ISREG", lambda _: True)
    monkeypatch.setattr("mpx.engine.source_stream.stat.S_ISFIFO", lambda _: False)
    file = a_file(tmp_path / "pipe")
    with pytest.raises(SourceError, match="has no end"):
        opened(file).read(memoryview(bytearray(10)))
    file.close()


def test_a_fifo_that_nobody_opens_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("mpx.engine.source_stream.WRITER_WAIT_S", 0.1)
    file = a_file(tmp_path / "pipe")
    with pytest.raises(SourceError, match=r"nobody has opened the fifo .*/pipe for writing in 0.1 s; start"):
        opened(file).read(memoryview(bytearray(10)))
    file.close()
    assert all(thread.name != "mpx-fifo" for thread in threading.enumerate())


def test_a_fifo_that_cannot_be_waited_for_is_an_error(tmp_path: Path) -> None:
    """Where a process has no descriptor left nobody can tell whether somebody writes."""
    os.mkfifo(tmp_path / "pipe")
    file = a_file(tmp_path / "pipe")
    stream = opened(file)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)  # the lowest number that is free
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, limits[1]))  # one is left, which waits
    try:
        with pytest.raises(SourceError, match="pipe: Too many open files"):
            stream.read(memoryview(bytearray(10)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    file.close()
    assert all(thread.name != "mpx-fifo" for thread in threading.enumerate())


def test_a_fifo_where_no_thread_is_left_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    os.mkfifo(tmp_path / "pipe")
    file = a_file(tmp_path / "pipe")
    stream = opened(file)
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(SourceError, match="pipe: can't start new thread"):
        stream.read(memoryview(bytearray(10)))
    assert len(os.listdir("/proc/self/fd")) == before
    file.close()


def test_a_writer_who_has_come_may_take_his_time(
    tmp_path: Path, eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = a_file(tmp_path / "pipe")
    stream = opened(file)
    came: dict[int, bytes] = {}
    reading = threading.Thread(target=lambda: came.update(all_of(stream)))
    seen = threading.Event()
    has_come = FifoWriter.has_come

    def looked(writer: FifoWriter) -> bool:
        if has_come.__get__(writer):
            seen.set()
        return bool(has_come.__get__(writer))

    monkeypatch.setattr(FifoWriter, "has_come", property(looked))
    with (tmp_path / "pipe").open("wb") as out:
        reading.start()
        eventually(seen.is_set)
        monkeypatch.setattr("mpx.engine.source_stream.WRITER_WAIT_S", 0.0)
        out.write(CONTENT)
    reading.join()
    assert joined(came) == CONTENT
    file.close()


def test_why_nobody_can_be_waited_for_is_told_once_the_waiting_has_ended(tmp_path: Path) -> None:
    """Before, it could be that the thread was not waited for then, and its descriptor stayed open."""
    os.mkfifo(tmp_path / "pipe")
    fd = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = FifoWriter(fd)
    writer._error = OSError(24, "Too many open files")
    assert not writer.has_come
    before = len(os.listdir("/proc/self/fd"))
    writer.end()
    with pytest.raises(OSError, match="Too many"):
        assert writer.has_come
    os.close(fd)
    assert len(os.listdir("/proc/self/fd")) == before - 2
