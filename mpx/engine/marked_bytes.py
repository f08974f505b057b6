"""What servers tell of a transfer between them, as a count that grows smoothly.

A server says every second or every few, and at the end of each transfer, how far it has come. Who measures
goodput ten times a second would see nothing, then much at once: so what is told is spread over some time
after it.
"""

SPREAD_S = 0.7  # parts of a file take about so long


class MarkedBytes:
    """A count of bytes; its owner guards it. Times are of the monotonic clock."""

    def __init__(self, spread_s: float = SPREAD_S) -> None:
        """`spread_s`: between two times that something is told, usually."""
        self._spread_s = spread_s
        self.told = 0  # in all, as far as it was told
        self._before = 0.0  # what was shown when it was told last
        self._told_s = 0.0  # when that was

    def add(self, now_s: float, size_bytes: int, spread_s: float | None = None) -> None:
        """Take that so many more bytes have arrived; `spread_s`: from now on, where that changes."""
        self._before, self._told_s = self.shown(now_s), now_s
        self._spread_s = spread_s or self._spread_s
        self.told += size_bytes

    def shown(self, now_s: float) -> float:
        """Return how many bytes are to be shown now: those of the last marker bit by bit."""
        share = min(1.0, max(0.0, (now_s - self._told_s) / self._spread_s))
        return self._before + (self.told - self._before) * share
