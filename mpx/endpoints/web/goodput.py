"""How fast a worker brings bytes, measured over a quarter of a second, and how much it asks for by that."""

import time

from mpx.endpoints.web.fetch import FIRST_PIECE
from mpx.endpoints.web.request_cost import LARGEST_PIECE, RequestCost
from mpx.engine.range_scheduler import stuck_s

OVER_S = 0.25
PIECE_S = 1.0  # a piece lasts so long
AHEAD_S = 0.25  # and two round trips: as much is asked for ahead
AT_FIRST = 1e6  # bytes/s, as long as nothing is known
STARTS_S, STARTS_RTTS = 0.5, 10  # a connection grows for so long, and so many round trips
_LONGEST_S = 10 * OVER_S  # a longer time had a pause in it, and says nothing


class Goodput:
    """Of one worker, whose thread counts; others read `guess`."""

    def __init__(self, cost: RequestCost | None = None) -> None:
        """`cost`: of requests, which all workers of a download share."""
        self.cost = cost or RequestCost()
        self._waited_s, self._head_s = 0.0, 0.0  # for the answer under way, and when that began; 0: none is
        self._bytes_per_s = 0.0  # 0: not known
        self._began_s, self._began_bytes = 0.0, 0  # when a connection was opened, and what it has brought
        self._bytes = 0
        self._measured = (0, 0.0)  # bytes, and when (monotonic clock)

    def add(self, size: int) -> None:
        """Count bytes that have come."""
        self._bytes += size
        self._began_bytes += size
        before_bytes, since_s = self._measured
        now_s = time.monotonic()
        if now_s - since_s < OVER_S:
            return
        if since_s and self._bytes > before_bytes and now_s - since_s < _LONGEST_S:
            self._bytes_per_s = (self._bytes - before_bytes) / (now_s - since_s)
        self._measured = self._bytes, now_s

    def begin(self) -> None:
        """Note that a connection is opened."""
        self._began_s, self._began_bytes = time.monotonic(), 0

    def answered(self, waited_s: float) -> None:
        """Note that an answer begins, which was waited for so long.

        Opening a connection meanwhile is due to the request where the server ends each one with its answer.
        """
        self._waited_s, self._head_s = waited_s, time.monotonic()

    def ended(self, size: int) -> None:
        """Note that an answer has ended, and how many bytes it has brought."""
        if self._head_s:
            self.cost.note(self._waited_s, size, time.monotonic() - self._head_s)
        self._head_s = 0.0

    @property
    def guess(self) -> float:
        """Bytes/s, whether or not that is known."""
        return self._bytes_per_s or AT_FIRST

    def guess_after(self, silent_s: float) -> float:
        """Bytes/s, the fewer the longer nothing has come for, once that is longer than for any answer."""
        if silent_s < stuck_s(self.cost.wait_s):
            return self.guess
        return self.guess * OVER_S / silent_s

    def wanted_ahead(self, rtt_s: float) -> float:
        """Return how many bytes are to be asked for ahead: what comes in two round trips, and somewhat more.

        A connection that has just begun carries twice as much in each round trip, which is all it has carried
        so far.
        """
        wanted = self.guess * (2 * rtt_s + AHEAD_S)
        is_starting = time.monotonic() < self._began_s + STARTS_S + STARTS_RTTS * rtt_s
        return max(wanted, 2 * self._began_bytes) if is_starting else wanted

    @property
    def piece_bytes(self) -> int:
        """How much is asked for at once."""
        wanted = max(self._bytes_per_s * PIECE_S, FIRST_PIECE, self.cost.least_bytes)
        return int(min(wanted, LARGEST_PIECE))

    def forget(self) -> None:
        """Take it for unknown again."""
        self._bytes_per_s = 0.0
