"""The bytes of a file as the body of a request, whole or in chunks."""

import os

from mpx.endpoints.web.lanes import WebLane
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.source_change import AGAIN
from mpx.engine.source_stream import SourceStream
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import IntegrityError
from mpx.files.local_error import local_error

_HEAD_BYTES, _TAIL = 10, b"\r\n"  # of a chunk: its size in hexadecimal digits, a line end, and one after it


class BodySender:
    """For one worker's thread."""

    def __init__(self, context: CarrierContext, limiter: RateLimiter) -> None:
        self._context, self._limiter = context, limiter
        self._buffer = memoryview(bytearray(_HEAD_BYTES + BUFFER_BYTES + len(_TAIL)))
        self._data = self._buffer[_HEAD_BYTES : _HEAD_BYTES + BUFFER_BYTES]

    def send(self, lane: WebLane, file: FileTransfer, fd: int, *, is_chunked: bool) -> None:
        """Send a file, from its first byte.

        Raises ConnectionLost, TransferTimeout, Interrupted, SourceError, and IntegrityError where it has
        become shorter.
        """
        if is_chunked:
            self._send_chunks(lane, file, fd)
            return
        position = 0
        while position < file.size_bytes:
            view = self._data[: min(file.size_bytes - position, self._limiter.piece(BUFFER_BYTES))]
            try:
                size = os.preadv(fd, [view], position)
            except OSError as error:
                raise local_error(error, file.source, writing=False) from None
            if not size:
                raise IntegrityError(f"{file.source} became shorter while it was copied; {AGAIN}")
            file.sums.passed(position, view[:size])
            self._send(lane, view[:size], size)
            position += size

    def _send_chunks(self, lane: WebLane, file: FileTransfer, fd: int) -> None:
        """Send what is read in order to its end, which ends the body."""
        source = SourceStream(file, fd, self._context.failure.cancel.is_set)
        while came := source.read(self._data[: self._limiter.piece(BUFFER_BYTES)]):
            size = came[1] - came[0]
            end = _HEAD_BYTES + size
            self._buffer[:_HEAD_BYTES] = b"%08X\r\n" % size
            self._buffer[end : end + len(_TAIL)] = _TAIL
            self._send(lane, self._buffer[: end + len(_TAIL)], size)
        lane.http.send_all(memoryview(b"0\r\n\r\n"))

    def _send(self, lane: WebLane, data: memoryview, size: int) -> None:
        self._limiter.wait(size)
        lane.offered_bytes += len(data)
        lane.http.send_all(data)
        lane.passed_bytes += size
