"""Sending: blocks of a file leave over whichever data connection is free next; listings line by line."""

import errno
import os
import time
from collections.abc import Iterable

from mpx.endpoints.ftp.framing import HEADER_BYTES, BlockHeader, end_of_data
from mpx.engine.ranges import RangeSet
from mpx.serve.connection import Connection
from mpx.serve.progress import TransferCounters
from mpx.serve.turns import Turn, in_turns

LAST_BYTES = 16 * 1024  # towards the end of a transfer blocks become smaller, down to this
PORTION_BYTES = 64 * 1024  # of a listing, sent at once


class BlockSender:
    """Sends parts of a file as MODE E blocks over `streams` connections that share one cursor.

    `todo` holds what is to be sent, in bytes from `base` of the file; so do the offsets on the wire.
    """

    accepts_more = False
    complete = False

    def __init__(self, fd: int, base: int, todo: RangeSet, streams: int, progress: TransferCounters) -> None:
        self._fd = fd
        self._base = base
        self._todo = todo
        self._left_bytes = todo.size
        self._streams = streams
        self._progress = progress
        self._announced = False

    def serve(self, connection: Connection) -> None:
        """Send blocks until none is left, then end of data. Raises DataChannelError and OSError."""
        view = connection.buffer
        while block := self._take(connection.next_bytes):
            offset, end = block
            size = end - offset
            read_all(self._fd, view[HEADER_BYTES : HEADER_BYTES + size], self._base + offset)
            BlockHeader(0, size, offset).pack_into(view)
            began_s = time.monotonic()
            send_all(connection, view[: HEADER_BYTES + size])
            connection.took(size, time.monotonic() - began_s)
            self._progress.moved(size)
        with self._progress.lock:
            announce, self._announced = not self._announced, True
        # One connection also says how many there are in all.
        end_of_data(self._streams if announce else None).pack_into(view)
        send_all(connection, view[:HEADER_BYTES])
        connection.reusable = True

    def _take(self, most_bytes: int) -> tuple[int, int] | None:
        """Take what is sent next. No connection takes much of the last bytes, which others would wait for."""
        with self._progress.lock:
            share_bytes = max(LAST_BYTES, self._left_bytes // (2 * self._streams))
            taken = self._todo.take_first(min(most_bytes, share_bytes))
            if taken:
                self._left_bytes -= taken[1] - taken[0]
            return taken


class StreamSender:
    """Sends bytes `start` to `end` of a file as a MODE S stream."""

    accepts_more = False
    complete = False

    def __init__(self, fd: int, start: int, end: int, progress: TransferCounters) -> None:
        self._fd = fd
        self._start = start
        self._end = end
        self._progress = progress

    def serve(self, connection: Connection) -> None:
        """Send everything, then end the stream. Raises DataChannelError and OSError."""
        most_bytes = connection.block_bytes
        for offset in range(self._start, self._end, most_bytes):
            view = connection.buffer[: min(most_bytes, self._end - offset)]
            read_all(self._fd, view, offset)
            send_all(connection, view)
            self._progress.moved(len(view))
        connection.finish_sending()


class LineSender:
    """Sends lines as a MODE S stream while they are still being made: a long listing does not keep silent."""

    accepts_more = False
    complete = False

    def __init__(self, lines: Iterable[bytes], progress: TransferCounters, turn: Turn) -> None:
        self._lines = lines
        self._progress = progress
        self._turn = turn

    def serve(self, connection: Connection) -> None:
        """Send every line, then end the stream. Raises DataChannelError, and OSError of who makes them."""
        portion = bytearray()
        for lines in in_turns(self._turn, self._lines):
            portion += b"".join(lines)
            if len(portion) >= PORTION_BYTES:
                self._send(connection, portion)
                portion = bytearray()
        self._send(connection, portion)
        connection.finish_sending()

    def _send(self, connection: Connection, portion: bytearray) -> None:
        send_all(connection, memoryview(portion))
        self._progress.moved(len(portion))


def read_all(fd: int, view: memoryview, offset: int) -> None:
    """Fill `view` from `offset` of the file. Raises OSError, also if the file has become shorter."""
    while view:
        size = os.preadv(fd, [view], offset)
        if not size:
            raise OSError(errno.EIO, "The file became shorter while it was sent")
        view = view[size:]
        offset += size


def send_all(connection: Connection, view: memoryview) -> None:
    """Send all of `view`."""
    while view:
        view = view[connection.send(view) :]
