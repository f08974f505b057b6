"""Receiving: what arrives on data connections goes straight to its place in the file."""

import os
import threading

from mpx.endpoints.ftp.framing import CLOSE, EOF, HEADER_BYTES, BlockHeader, ReceivedEnds, unpack_header
from mpx.serve.connection import Connection
from mpx.serve.progress import TransferCounters
from mpx.serve.replies import DataChannelError
from mpx.serve.turns import LONG_PATIENCE_S, Share, Turn, Turns

_RECEIVED_AHEAD_BYTES = 16 * 1024
_SMALL_BYTES = 8 * 1024  # a block that is done in a turn, once it is there
_BLOCKS_OF_A_TURN = 32
_FARTHEST_BYTE = 1 << 63  # file offsets end here


class BlockReceiver:
    """Writes MODE E blocks from any number of connections into one file; offsets count from `base`."""

    accepts_more = True

    def __init__(self, fd: int, base: int, progress: TransferCounters, turns: Turns, share: Share) -> None:
        self._fd = fd
        self._base = base
        self._progress = progress
        self._received = ReceivedEnds()
        self._turns = turns
        self._share = share
        self._small = threading.Lock()  # one connection of a transfer at a time does small blocks

    @property
    def complete(self) -> bool:
        """Whether the transfer is whole, though connections may still be open."""
        return self._received.is_complete

    def serve(self, connection: Connection) -> None:
        """Receive until this connection ends its part. Raises DataChannelError and OSError."""
        turn = Turn(self._turns, self._share, alone=self._small)
        carried, done = False, 0
        try:
            turn.take(LONG_PATIENCE_S)
            arrived = Arrived(connection)
            while True:
                if len(arrived) < HEADER_BYTES:
                    turn.end()
                    if not arrived.receive(HEADER_BYTES, "a block header"):
                        if carried:
                            raise DataChannelError("a data connection was closed without end of data (EOD)")
                        return  # a connection that never carried anything is not part of the transfer
                try:
                    block = unpack_header(arrived.take(HEADER_BYTES))
                except ValueError as error:
                    raise DataChannelError(str(error)) from error
                if block.descriptor & CLOSE and not block.ends_data:
                    if connection.cached and not carried and not block.descriptor & EOF:
                        return  # how a sender drops a cached connection that it does not want again
                    raise DataChannelError("a data connection said CLOSE before end of data (EOD)")
                carried = True
                is_large = block.count > _SMALL_BYTES  # then its bytes cost more than the turn would spare
                waits = not is_large and block.count > len(arrived)
                done += 1
                if is_large or waits or done % _BLOCKS_OF_A_TURN == 0:
                    turn.end()
                if waits and not arrived.receive(block.count, "a block"):
                    raise DataChannelError("a data connection was closed inside a block")
                if not is_large:
                    turn.take(LONG_PATIENCE_S)
                if block.count:
                    self._write(arrived, block.offset, block.count)
                if self._ends(block):
                    connection.reusable = not block.descriptor & CLOSE
                    connection.ahead = bytes(arrived.take(len(arrived)))
                    return
        finally:
            turn.end()

    def _ends(self, block: BlockHeader) -> bool:
        """Note what a block says about ends; tell whether it is the last one of its connection."""
        with self._progress.lock:
            if block.total_streams is not None:
                self._received.end_of_file(block.total_streams)
            if block.ends_data:
                self._received.end_of_data()
        return block.ends_data

    def _write(self, arrived: "Arrived", offset: int, count: int) -> None:
        if self._base + offset + count >= _FARTHEST_BYTE:
            raise DataChannelError(f"a block beyond the end of any file, at {offset}")
        while count:
            data = arrived.take_or_receive(count)
            if not data:
                raise DataChannelError("a data connection was closed inside a block")
            write_all(self._fd, data, self._base + offset)
            self._progress.arrived(offset, offset + len(data))
            offset += len(data)
            count -= len(data)


class Arrived:
    """What has arrived on a connection and is still to be looked at, in the connection's own buffer.

    Some is received ahead of what is known to come: a call of the kernel for each of many small blocks
    would cost more than the blocks.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._view = connection.buffer
        self._start, self._end = 0, len(connection.ahead)
        self._view[: self._end] = connection.ahead
        connection.ahead = b""

    def __len__(self) -> int:
        return self._end - self._start

    def take(self, count: int) -> memoryview:
        """Return the next bytes, which are there; valid until more is received."""
        start, self._start = self._start, self._start + count
        return self._view[start : self._start]

    def receive(self, wanted: int, what: str) -> bool:
        """Have so many bytes there; return False if the stream ends before the first of all.

        Raises DataChannelError if it ends within `what`.
        """
        while len(self) < wanted:
            have = len(self)
            self._view[:have] = self._view[self._start : self._end]
            self._start, self._end = 0, have
            size = self._connection.receive(self._view[have:_RECEIVED_AHEAD_BYTES], fill=False)
            if not size:
                if have:
                    raise DataChannelError(f"a data connection was closed inside {what}")
                return False
            self._end += size
        return True

    def take_or_receive(self, count: int) -> memoryview:
        """Return the next bytes, `count` at most and at least one; none at the end of the stream.

        They are as many as fit into the buffer, unless they are slow to come.
        """
        have = len(self)
        if not have:
            self._start = self._end = 0
        wanted = min(count, self._connection.block_bytes, len(self._view) - self._start)
        if have < wanted:
            self._end += self._connection.receive(self._view[self._end : self._start + wanted])
        return self.take(min(count, len(self)))


class StreamReceiver:
    """Writes a MODE S stream into a file from `offset` on; the end of the connection ends the file."""

    accepts_more = False
    complete = False

    def __init__(self, fd: int, offset: int, progress: TransferCounters) -> None:
        self._fd = fd
        self._offset = offset
        self._progress = progress

    def serve(self, connection: Connection) -> None:
        """Receive to the end of the stream. Raises DataChannelError and OSError."""
        body = connection.buffer[: connection.block_bytes]
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
