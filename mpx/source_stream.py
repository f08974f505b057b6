"""Reading a local source of unknown size once, in order, to its end: a pipe, or a file of /proc."""

import os
import select
import threading
from collections.abc import Callable

from mpx.errors import Interrupted, SourceError
from mpx.local import local_error
from mpx.move import Move

STOP_INTERVAL_MS = 200


class SourceStream:
    """The bytes of a streamed file, handed out in order to whoever asks next. Safe for several threads.

    `fd` is that of `move.open`; a file is read from its beginning, a pipe cannot be read once more. When
    its end is met the move is told.
    """

    def __init__(self, move: Move, fd: int, stop: Callable[[], bool]) -> None:
        """Begin; raises SourceError for a pipe of which something was read before."""
        self._move = move
        self._fd = fd
        self._stop = stop
        self._position = 0
        self._is_ended = False
        self._reading = threading.Lock()
        try:
            os.lseek(fd, 0, os.SEEK_SET)
        except OSError:
            if move.was_read:
                raise SourceError(
                    f"{move.source} is a pipe and cannot be read a second time; run the command again"
                ) from None

    def read(self, buffer: memoryview) -> tuple[int, int] | None:
        """Fill the buffer with what comes next; return where that begins and ends, None after the end.

        Less is returned only before the end. Raises SourceError, and Interrupted when stopped.
        """
        with self._reading:
            start = self._position
            while not self._is_ended and (room := start + len(buffer) - self._position):
                try:
                    got = self._read_some(buffer[-room:])
                except OSError as error:
                    raise local_error(error, self._move.source, writing=False) from None
                self._position += got
                self._is_ended = got == 0
            if self._is_ended and self._move.is_streamed:
                self._move.ended(self._position)
            if self._position == start:
                return None
            self._move.passed(start, buffer[: self._position - start])  # in order, as some hashes need it
            return start, self._position

    def _read_some(self, view: memoryview) -> int:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while True:
            if self._stop():
                raise Interrupted("stopped")
            if not poll.poll(STOP_INTERVAL_MS):
                continue  # of a pipe nobody has written to yet, the end must not be taken for its end
            self._move.was_read = True
            try:
                return os.readv(self._fd, [view])
            except BlockingIOError:
                continue
