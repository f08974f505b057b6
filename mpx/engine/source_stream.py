"""Reading a local source of unknown size once, in order, to its end: a pipe, or a file of /proc."""

import os
import select
import stat
import threading
import time
from collections.abc import Callable

from mpx.engine.file_transfer import FileTransfer
from mpx.errors import Interrupted, SourceError
from mpx.files.fifo_writer import FifoWriter
from mpx.files.local_error import local_error

STOP_INTERVAL_MS = 200
WRITER_WAIT_S = 30.0  # for somebody to open a fifo; after that he may take his time
LARGEST_BYTES = 1 << 62  # of any file
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def is_made_up(status: os.stat_result) -> bool:
    """Tell whether the size of a file may be one that its file system makes up, as /sys says a page."""
    return 0 < status.st_size <= _PAGE_BYTES and status.st_blocks == 0


class SourceStream:
    """The bytes of a streamed file, handed out in order to whoever asks next. Safe for several threads.

    `fd` is that of `file.open`; what is a file is read from its first byte, a pipe cannot be read once more.
    At the end `file` is told its size.
    """

    def __init__(self, file: FileTransfer, fd: int, stop: Callable[[], bool]) -> None:
        """Begin; raises SourceError for a pipe of which something was read before."""
        self._file = file
        self._fd = fd
        self._stop = stop
        self._position = 0
        self._is_ended = False
        self.is_waiting = False  # for whoever writes into a pipe; replaced with `_reading` held
        self._reading = threading.Lock()
        file.sums.forget(0, LARGEST_BYTES)  # what was read before may have been something else
        mode = os.fstat(fd).st_mode
        self._is_regular, self._is_fifo = stat.S_ISREG(mode), stat.S_ISFIFO(mode)
        try:
            os.lseek(fd, 0, os.SEEK_SET)
        except OSError as error:
            if file.was_read:
                raise local_error(error, file.source, writing=False) from None
            file.is_read_once = True

    def read(self, buffer: memoryview) -> tuple[int, int] | None:
        """Fill the buffer with what comes next; return where that begins and ends, None after the end.

        Less is returned only before the end. Raises SourceError, and Interrupted when stopped.
        """
        with self._reading:
            start = self._position
            while not self._is_ended and (room := start + len(buffer) - self._position):
                self.is_waiting = True
                try:
                    got = self._read_some(buffer[-room:])
                except OSError as error:
                    raise local_error(error, self._file.source, writing=False) from None
                finally:
                    self.is_waiting = False
                self._position += got
                self._is_ended = got == 0
            if self._is_ended and self._file.is_streamed:
                self._file.ended(self._position)
            if self._position == start:
                return None
            self._file.sums.passed(
                start, buffer[: self._position - start]
            )  # in order, as some hashes need it
            return start, self._position

    def _read_some(self, view: memoryview) -> int:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        # Of a pipe nobody has written to yet, the end must not be taken for its end.
        if not self._file.was_read and not poll.poll(STOP_INTERVAL_MS) and self._is_fifo:
            self._await_writer(poll)
        while True:
            if self._stop():
                raise Interrupted("stopped")
            if not poll.poll(STOP_INTERVAL_MS):
                self._check_waits()
                continue
            self._file.was_read = True
            try:
                return os.readv(self._fd, [view])
            except BlockingIOError:
                self._check_waits()

    def _await_writer(self, poll: select.poll) -> None:
        """Wait until somebody writes to a fifo, or has it open for that; raises SourceError."""
        writer, until_s = FifoWriter(self._fd), time.monotonic() + WRITER_WAIT_S
        try:
            while not writer.has_come and not self._stop() and not poll.poll(STOP_INTERVAL_MS):
                if time.monotonic() > until_s:
                    raise SourceError(
                        f"nobody has opened the fifo {self._file.source} for writing in {WRITER_WAIT_S:g} s; "
                        "start what writes to it, then copy it"
                    )
        finally:
            writer.end()

    def _check_waits(self) -> None:
        """Raise SourceError for a file that has nothing to read just now and no end, as /proc/kmsg."""
        if self._is_regular:
            raise SourceError(
                f"cannot read {self._file.source}: it has no end, and reading it would wait for ever"
            )
