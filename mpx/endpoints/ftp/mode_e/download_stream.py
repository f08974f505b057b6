"""Downloads in MODE E, one connection: what it brings goes straight to its place in the file.

Each call of the kernel lets another thread of Python run, and waits for its turn afterwards. So a stream
asks for as much at once as is sure to come, also beyond the end of a block, and writes blocks that follow one
another in one call.
"""

import contextlib
import os
import select
import socket
import struct
from collections.abc import Sequence
from typing import Protocol

from mpx.endpoints.ftp.framing import HEADER_BYTES, unpack_header
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve, SentTooMuch
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.receiving import ReceivingCounters
from mpx.engine.stream import BUFFER_BYTES, Stream
from mpx.errors import ConnectionLost, DestinationError, MpxError
from mpx.files.local_error import local_error

BLOCKS_AT_ONCE = {True: 4, False: 2}  # of a Globus server, by whether the connection is alone
MOST_VIEWS = 64  # written at once; a kernel takes 1024, and blocks may be of single bytes
_TICK = struct.pack("ll", 0, 50_000)  # a receive hands over what has come after 50 ms


class Feeding(Protocol):
    """What a stream asks of its channel (download_channel.py)."""

    context: CarrierContext
    limiter: RateLimiter
    parallelism: int

    def retrieve_at(self, index: int) -> PartialRetrieve | None:
        """Return the retrieve number `index`, waiting for it; None when the channel is closed."""
        ...

    def fail(self, error: MpxError, spoiled: FileTransfer | None = None) -> None:
        """Say that the retrieves under way cannot be completed."""
        ...

    def left(self, stream: "DownloadStream") -> None:
        """Forget a stream that has ended."""
        ...


class DownloadStream(ReceivingCounters, Stream):
    """One connection of a channel."""

    def __init__(self, channel: Feeding, connection: socket.socket, *, first: int) -> None:
        Stream.__init__(
            self,
            "mpx-download-stream",
            channel.context.supervisor.stream_ended if channel.context.streams.over_mptcp else None,
        )
        self._channel = channel
        self._first = first  # number of the retrieve that its first block is part of
        self._is_alone = channel.parallelism == 1  # so it brings all of each retrieve
        size = BLOCKS_AT_ONCE[self._is_alone] * (BUFFER_BYTES + HEADER_BYTES)
        self._buffer = memoryview(bytearray(size))
        self._begin = self._end = 0  # what of it has come and was not looked at
        self._views: list[memoryview] = []  # of it, that belong behind one another in the file ...
        self._place = self._place_end = 0  # ... from here to there
        self._is_over = False  # the connection has ended
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TICK)
        self.opened(connection)

    def run(self) -> None:
        """Receive one retrieve after the other."""
        channel, index, retrieve = self._channel, self._first, None
        try:
            while (retrieve := channel.retrieve_at(index)) is not None and self._receive(retrieve):
                index += 1
        except DestinationError as error:
            channel.fail(error, retrieve.file if retrieve else None)
        except MpxError as error:
            channel.fail(error)
        except (OSError, ValueError) as error:
            channel.fail(ConnectionLost(f"a data connection was lost: {error}"))
        except Exception as error:
            channel.fail(MpxError(f"unexpected: {type(error).__name__}: {error}"))
        finally:
            self.closed(clean=False)
            channel.left(self)

    # --- receiving -----------------------------------------------------------------------------------

    def _receive(self, retrieve: PartialRetrieve) -> bool:
        """Receive this connection's share of a retrieve; False when the server closed it in between."""
        to_come = retrieve.size_bytes if self._is_alone else 0
        is_first, received, reached = True, 0, 0
        while True:
            if not self._has_header(retrieve, HEADER_BYTES + max(0, to_come)):
                if is_first and self._begin == self._end:
                    return False
                raise ConnectionLost("the server closed a data connection in the middle of a transfer")
            header = unpack_header(self._buffer[self._begin : self._begin + HEADER_BYTES])
            self._begin += HEADER_BYTES
            if not retrieve.fits(header):
                raise SentTooMuch(retrieve)
            offset, left = retrieve.start + header.offset, header.count
            behind = 0 if header.ends_data else HEADER_BYTES  # another header follows this block
            while left:
                if self._begin == self._end and not self._more(retrieve, max(left, to_come) + behind):
                    raise ConnectionLost("the server closed a data connection in the middle of a block")
                size = min(left, self._end - self._begin)
                self._take(retrieve, offset, size)
                offset, left, to_come = offset + size, left - size, to_come - size
            is_first = False
            received += header.count
            reached = max(reached, header.offset + header.count if header.count else 0)
            if header.ends_data:
                self._write(retrieve)
                retrieve.ended(header.total_streams, received, reached)
                return True

    def _has_header(self, retrieve: PartialRetrieve, sure: int) -> bool:
        """Have a header in the buffer; False if the connection ends before."""
        while self._end - self._begin < HEADER_BYTES:
            if not self._more(retrieve, sure):
                return False
        return True

    def _more(self, retrieve: PartialRetrieve, sure: int) -> bool:
        """Receive up to `sure` bytes, with those that are there already; False at the end of the connection.

        What was taken before is written, as its place in the buffer is used anew.
        """
        connection, limiter = self.connection, self._channel.limiter
        assert connection is not None
        self._write(retrieve)
        have = self._end - self._begin
        self._buffer[:have] = self._buffer[self._begin : self._end]
        self._begin, self._end = 0, have
        want = min(sure, len(self._buffer)) - have
        want = min(want, limiter.piece(want))
        got = self._come(want, socket.MSG_WAITALL)
        while not got and not self._is_over:  # who looks again and again for nothing costs others
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            poll.poll()
            got = self._come(want, socket.MSG_WAITALL)
        if got == want and not self._is_alone and limiter.is_unlimited:
            with contextlib.suppress(OSError):  # what has come is taken first
                got += self._come(len(self._buffer) - self._end, socket.MSG_DONTWAIT)
        limiter.wait(got)
        return got > 0

    def _come(self, most: int, flag: int) -> int:
        """Receive behind what is there; return how many bytes came."""
        assert self.connection is not None
        try:
            got = self.connection.recv_into(self._buffer[self._end :], most, flag)
        except BlockingIOError:
            return 0
        self._is_over = got == 0 and most > 0
        self._end += got
        return got

    def _take(self, retrieve: PartialRetrieve, offset: int, size: int) -> None:
        """Take bytes of the buffer that belong at an offset of the file."""
        if self._views and (offset != self._place_end or len(self._views) == MOST_VIEWS):
            self._write(retrieve)
        if not self._views:
            self._place = offset
        self._place_end = offset + size
        self._views.append(self._buffer[self._begin : self._begin + size])
        self._begin += size

    # --- writing -------------------------------------------------------------------------------------

    def _write(self, retrieve: PartialRetrieve) -> None:
        """Write what was taken, as far as there is use for it, and count it."""
        views, self._views = self._views, []
        if not views:
            return
        start, size = self._place, self._place_end - self._place
        kept = retrieve.within(start, self._place_end)
        # What comes late must touch neither a finished file nor what was summed already.
        for first, last in retrieve.to_write(start, start + kept) if kept else ():
            is_all = last - first == size
            self._write_at(
                retrieve, first, last, views if is_all else cut(views, first - start, last - start)
            )
        self.passed_bytes += size

    def _write_at(
        self, retrieve: PartialRetrieve, start: int, stop: int, views: Sequence[memoryview]
    ) -> None:
        file, at = retrieve.file, start
        try:
            while at < stop:  # a disk that fills up takes what fits, then says why
                at += os.pwritev(
                    retrieve.fd, cut(views, at - start, stop - start) if at > start else views, at
                )
        except OSError as error:
            raise local_error(error, file.final, writing=True) from None
        self.new_bytes += stop - start
        for view in views:
            file.sums.passed(start, view)
            start += len(view)


def cut(views: Sequence[memoryview], first: int, last: int) -> list[memoryview]:
    """Return the bytes [first, last) of what `views` hold together."""
    found, at = [], 0
    for view in views:
        piece = view[max(0, first - at) : max(0, last - at)]
        if len(piece):
            found.append(piece)
        at += len(view)
    return found
