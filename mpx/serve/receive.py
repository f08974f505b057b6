"""Receiving: what arrives on data connections goes straight to its place in the file.

EOD (end of data) ends one connection's part in a MODE E transfer, EOF (end of file) says how many EODs
make the transfer whole.
"""

import os

from mpx.gridftp_wire import CLOSE, EOF, HEADER_BYTES, unpack_header
from mpx.serve.data import BLOCK_BYTES, Connection
from mpx.serve.progress import Progress
from mpx.serve.replies import DataChannelError

_FARTHEST_BYTE = 1 << 63  # file offsets end here


class EndOfData:
    """Whether a MODE E transfer is whole. EOF may come before, between or after the EODs."""

    def __init__(self) -> None:
        self._seen = 0
        self._announced: int | None = None

    def end_of_data(self) -> None:
        """One connection has delivered all of its part."""
        self._seen += 1

    def end_of_file(self, streams: int) -> None:
        """The sender says how many connections it used in this transfer."""
        self._announced = streams

    @property
    def complete(self) -> bool:
        """Whether every connection the sender used has ended."""
        return self._announced is not None and self._seen >= self._announced


class BlockReceiver:
    """Writes MODE E blocks from any number of connections into one file; offsets count from `base`."""

    accepts_more = True

    def __init__(self, fd: int, base: int, progress: Progress) -> None:
        self._fd = fd
        self._base = base
        self._progress = progress
        self._end = EndOfData()

    @property
    def complete(self) -> bool:
        """Whether the transfer is whole, though connections may still be open."""
        return self._end.complete

    def serve(self, connection: Connection) -> None:
        """Receive until this connection ends its part. Raises DataChannelError and OSError."""
        view = connection.buffer
        header, body = view[:HEADER_BYTES], view[HEADER_BYTES:]
        carried = False
        while True:
            if not _fill(connection, header):
                if carried:
                    raise DataChannelError("a data connection was closed without end of data (EOD)")
                return  # a connection that never carried anything is not part of the transfer
            try:
                block = unpack_header(header)
            except ValueError as error:
                raise DataChannelError(str(error)) from error
            if block.descriptor & CLOSE and not block.ends_data:
                if connection.cached and not carried and not block.descriptor & EOF:
                    return  # how a sender drops a cached connection that it does not want again
                raise DataChannelError("a data connection said CLOSE before end of data (EOD)")
            carried = True
            if block.count:
                self._write(connection, body, block.offset, block.count)
            if block.total_streams is not None:
                with self._progress.lock:
                    self._end.end_of_file(block.total_streams)
            if block.ends_data:
                connection.reusable = not block.descriptor & CLOSE
                with self._progress.lock:
                    self._end.end_of_data()
                return

    def _write(self, connection: Connection, body: memoryview, offset: int, count: int) -> None:
        if self._base + offset + count >= _FARTHEST_BYTE:
            raise DataChannelError(f"a block beyond the end of any file, at {offset}")
        while count:
            size = connection.receive(body[: min(count, BLOCK_BYTES)])
            if not size:
                raise DataChannelError("a data connection was closed inside a block")
            write_all(self._fd, body[:size], self._base + offset)
            self._progress.arrived(offset, offset + size)
            offset += size
            count -= size


class StreamReceiver:
    """Writes a MODE S stream into a file from `offset` on; the end of the connection ends the file."""

    accepts_more = False
    complete = False

    def __init__(self, fd: int, offset: int, progress: Progress) -> None:
        self._fd = fd
        self._offset = offset
        self._progress = progress

    def serve(self, connection: Connection) -> None:
        """Receive to the end of the stream. Raises DataChannelError and OSError."""
        body = connection.buffer[:BLOCK_BYTES]
        offset = self._offset
        while size := connection.receive(body):
            if offset + size >= _FARTHEST_BYTE:
                raise DataChannelError("a stream beyond the end of any file")
            write_all(self._fd, body[:size], offset)
            offset += size
            self._progress.moved(size)


def write_all(fd: int, view: memoryview, offset: int) -> None:
    """Write all of `view` at `offset`. Raises OSError; a full disk often takes a part first."""
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written


def _fill(connection: Connection, view: memoryview) -> bool:
    """Fill `view`; return False if the stream ends before its first byte."""
    have = 0
    while have < len(view):
        size = connection.receive(view[have:])
        if not size:
            if have:
                raise DataChannelError("a data connection was closed inside a block header")
            return False
        have += size
    return True
