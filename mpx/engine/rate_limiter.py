"""How fast: one rate for all streams together."""

import threading
import time
from collections.abc import Callable

PIECE_S = 0.02  # of the rate: more at once would be a burst, less would be many wake-ups
CREDIT_S = 0.05  # time lost to a late wake-up that the limiter lets streams make up for
LOOK_S = 0.1  # a stream that waits looks again after so long: the rate may have risen


class RateLimiter:
    """Holds all streams together to one rate: each byte gets its place in one line, which moves on."""

    def __init__(
        self,
        cancel: threading.Event,
        rate_bps: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        within: "RateLimiter | None" = None,
    ) -> None:
        """`within`: what holds these streams back together with others."""
        self.piece_s = PIECE_S
        self._within = within
        self._cancel = cancel
        self._clock = clock
        self._lock = threading.Lock()
        self._rate_bps = rate_bps
        self._placed = 0.0  # the end of the line, bytes
        self._passed, self._since_s = 0.0, clock()  # how much of it might pass until then

    @property
    def rate_bps(self) -> float | None:
        """The rate, None for no limit; may be set at any time, and counts at once."""
        return self._rate_bps

    @rate_bps.setter
    def rate_bps(self, rate_bps: float | None) -> None:
        with self._lock:
            before_bps = self._rate_bps
            if before_bps is None or rate_bps is None:
                self._passed = self._placed
            else:  # who has a place waits no longer than before: pieces of a higher rate are long in a lower
                self._passed = self._passed_now(before_bps)
                waiting = self._placed - self._passed
                self._passed = max(self._passed, self._placed - waiting * rate_bps / before_bps)
            self._rate_bps, self._since_s = rate_bps, self._clock()

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing holds the streams back."""
        return self._rate_bps is None and (self._within is None or self._within.is_unlimited)

    def piece(self, largest_bytes: int) -> int:
        """Return how much to pass at once: `largest_bytes`, or what takes `piece_s`."""
        rate_bps = self._rate_bps
        piece = largest_bytes if rate_bps is None else self._piece(largest_bytes, rate_bps)
        return self._within.piece(piece) if self._within else piece

    def wait(self, size_bytes: int) -> None:
        """Wait until `size_bytes` more may pass; returns at once when unlimited or stopped.

        A size that exceeds a piece at the present rate is charged as one piece: it was cut at a higher rate,
        and would delay all others.
        """
        self._wait(size_bytes)
        if self._within:
            self._within.wait(size_bytes)

    def _wait(self, size_bytes: int) -> None:
        place = None
        while not self._cancel.is_set():
            with self._lock:
                rate_bps = self._rate_bps
                if rate_bps is None:
                    return
                passed = self._passed_now(rate_bps)
                if place is None:
                    place = max(self._placed, passed - CREDIT_S * rate_bps / 8)
                    self._placed = place + self._piece(size_bytes, rate_bps)
            if place <= passed:
                return
            self._cancel.wait(min(LOOK_S, (place - passed) * 8 / rate_bps))

    def _piece(self, largest_bytes: int, rate_bps: float) -> int:
        return min(largest_bytes, max(1460, int(rate_bps * self.piece_s / 8)))

    def _passed_now(self, rate_bps: float) -> float:
        return self._passed + (self._clock() - self._since_s) * rate_bps / 8
