"""The body of a PUT, whole or in chunks, and the local file that is sent as one."""

import os
from collections.abc import Callable

from mpx.endpoints.web.lanes import WebLane
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.source_change import AGAIN
from mpx.engine.source_stream import SourceStream
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import ConnectionLost, IntegrityError
from mpx.files.local_error import local_error

RECORD_BYTES = 16 * 1024  # the longest of TLS


class BodyLost(ConnectionLost):
    """The connection ended while a body was sent: the server may have answered before."""


class BodyCut(ConnectionLost):
    """Fewer bytes, or more, were to be sent than the head has told: what was sent is no file."""


class Body:
    """The body of one PUT, sent in order; `size_bytes` as its head tells, None: in chunks, to its end."""

    def __init__(self, lane: WebLane, size_bytes: int | None) -> None:
        self._lane = lane
        self._size_bytes = size_bytes
        self._came_bytes = 0
        self._kept = bytearray()  # less than a record

    def send(self, data: memoryview) -> None:
        """Send some bytes, none beyond the size; raises BodyLost, TransferTimeout, Interrupted."""
        self._came_bytes += len(data)
        if self._size_bytes is None:
            self._send(memoryview(b"".join((b"%X\r\n" % len(data), data, b"\r\n"))))
            self._lane.passed_bytes += len(data)
        elif self._came_bytes <= self._size_bytes:
            self._send_records(data)

    def end(self) -> None:
        """Send the end; raises BodyCut where it is not the one that was told, and as `send`."""
        if self._size_bytes is None:
            self._send(memoryview(b"0\r\n\r\n"))
        elif self._came_bytes != self._size_bytes:
            raise BodyCut(f"{self._came_bytes} bytes came where {self._size_bytes} were to be sent")
        else:
            self._send_kept()

    def _send_records(self, data: memoryview) -> None:
        """Send whole records of TLS only: XRootD may wait for ever for the rest of one that it has got."""
        if self._kept:
            taken = data[: RECORD_BYTES - len(self._kept)]
            self._kept += taken
            data = data[len(taken) :]
            if len(self._kept) < RECORD_BYTES:
                return
            self._send_kept()
        whole = len(data) // RECORD_BYTES * RECORD_BYTES
        self._send(data[:whole])
        self._lane.passed_bytes += whole
        self._kept += data[whole:]

    def _send_kept(self) -> None:
        kept, self._kept = self._kept, bytearray()
        self._send(memoryview(kept))
        self._lane.passed_bytes += len(kept)

    def _send(self, data: memoryview) -> None:
        self._lane.offered_bytes += len(data)
        try:
            self._lane.http.send_all(data)
        except ConnectionLost as lost:
            raise BodyLost(str(lost)) from None


class FileBody:
    """Sends local files as bodies. For one worker's thread; `stop` tells whether the copy is stopped."""

    def __init__(self, limiter: RateLimiter, stop: Callable[[], bool]) -> None:
        self._limiter, self._stop = limiter, stop
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def send(self, file: FileTransfer, fd: int, body: Body) -> None:
        """Send a file, from its first byte; raises as `send_part`."""
        if file.is_streamed:
            source = SourceStream(file, fd, self._stop)
            while came := source.read(self._buffer[: self._limiter.piece(BUFFER_BYTES)]):
                self._pass_on(body, self._buffer[: came[1] - came[0]])
            return
        self.send_part(file, fd, body, 0, file.size_bytes)

    def send_part(self, file: FileTransfer, fd: int, body: Body, start: int, end: int) -> None:
        """Send [start, end) of a file.

        Raises as Body.send, SourceError, and IntegrityError where it has become shorter.
        """
        position = start
        while position < end:
            view = self._buffer[: min(end - position, self._limiter.piece(BUFFER_BYTES))]
            try:
                size = os.preadv(fd, [view], position)
            except OSError as error:
                raise local_error(error, file.source, writing=False) from None
            if not size:
                raise IntegrityError(f"{file.source} became shorter while it was copied; {AGAIN}")
            file.sums.passed(position, view[:size])
            self._pass_on(body, view[:size])
            position += size

    def _pass_on(self, body: Body, data: memoryview) -> None:
        self._limiter.wait(len(data))
        body.send(data)
