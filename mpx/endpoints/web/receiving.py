"""What an answer brings goes to its place in the file."""

import os

from mpx.endpoints.web.fetch import WebFetch
from mpx.engine.carrier import Supervisor
from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.source_change import why_changed, why_elsewhere, why_too_short
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import ConnectionLost, MpxError
from mpx.files.local_error import local_error
from mpx.units import counted


class Receiver:
    """For one worker's thread."""

    def __init__(self, limiter: RateLimiter, scheduler: RangeScheduler, supervisor: Supervisor) -> None:
        self._limiter, self._scheduler, self._supervisor = limiter, scheduler, supervisor
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def receive(self, fetch: WebFetch) -> tuple[int, int]:
        """Receive some of a body; return how many bytes came, and how many of them had not come before.

        Raises as WebFetch.read, and NoSpace and DestinationError of this host.
        """
        position = fetch.position
        edge = (position // SECTION_BYTES + 1) * SECTION_BYTES
        size = fetch.read(self._buffer[: min(edge - position, self._limiter.piece(BUFFER_BYTES))])
        if not size:
            return 0, 0
        self._limiter.wait(size)
        return size, self._keep(fetch, position, position + size)

    def _keep(self, fetch: WebFetch, start: int, end: int) -> int:
        """Write what has not come yet: what comes late touches no finished file, nor what was summed."""
        file, new_bytes = fetch.file, 0
        if file.is_claimed:
            return 0
        for first, last in file.missing_within(start, end):
            view = self._buffer[first - start : last - start]
            written = 0
            try:
                while written < len(view):
                    written += os.pwrite(fetch.fd, view[written:], first + written)
            except OSError as error:
                raise local_error(error, file.final, writing=True) from None
            file.sums.passed(first, view)
            new_bytes += file.landed(first, last)
        return new_bytes

    def ended(self, fetch: WebFetch) -> MpxError | None:
        """Take the end of a body for that of what was asked for; return what it means where it is not.

        Raises ConnectionLost where that is the end of the connection, and may have come too soon.
        """
        file, came = fetch.file, fetch.position - fetch.start
        if fetch.reply and fetch.reply.ends_with_connection and fetch.position < fetch.end:
            now = self._supervisor.describe(file.source)
            if change := why_changed(now, file, came if fetch.is_whole else file.size_bytes):
                return change
            left = counted(fetch.end - fetch.position, "byte")
            raise ConnectionLost(f"{file.named()}: the connection ended {left} before the end of the data")
        if fetch.is_whole and (file.is_streamed or fetch.position < fetch.end):
            if came < (file.listed_bytes or 0) and (
                why := why_too_short(self._supervisor.describe(file.source), file, came)
            ):
                return why
            self._scheduler.ended(file, came)
        elif fetch.position < fetch.end:
            what = f"{counted(came, 'byte')} came from {fetch.start} on, of {fetch.end - fetch.start}"
            return why_elsewhere(self._supervisor.describe(file.source), file, what)
        if file.is_whole:
            try:
                if os.fstat(fetch.fd).st_size != file.size_bytes:  # else it may have its final time by now
                    os.ftruncate(fetch.fd, file.size_bytes)  # an attempt before may have brought more
            except OSError as error:
                return local_error(error, file.final, writing=True)
        return None
