"""How fast: one rate for all streams together."""

import threading
import time

PIECE_S = 0.02  # of the rate: more at once would be a burst, less would be many wake-ups
CREDIT_S = 0.05  # time lost to a late wake-up that the pacer lets streams make up for


class Pacer:
    """Holds all streams together to one rate: each byte gets its place on one shared clock."""

    def __init__(self, cancel: threading.Event, rate_bps: float | None = None) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._next_s = 0.0
        self.rate_bps = rate_bps  # may change at any time
        self.piece_s = PIECE_S

    def piece(self, largest_bytes: int) -> int:
        """Return how much to pass at once: `largest_bytes`, or what takes `piece_s`."""
        rate_bps = self.rate_bps
        if rate_bps is None:
            return largest_bytes
        return max(1460, min(largest_bytes, int(rate_bps * self.piece_s / 8)))

    def wait(self, size_bytes: int) -> None:
        """Wait until `size_bytes` more may pass; returns at once when unlimited or stopped."""
        rate_bps = self.rate_bps
        if rate_bps is None:
            return
        with self._lock:
            now = time.monotonic()
            begin = max(now - CREDIT_S, self._next_s)
            self._next_s = begin + size_bytes * 8 / rate_bps
        if begin > now:
            self._cancel.wait(begin - now)
