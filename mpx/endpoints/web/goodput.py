"""How fast a connection brings bytes, measured over a quarter of a second at a time."""

import time

from mpx.endpoints.web.fetch import FIRST_PIECE

OVER_S = 0.25
PIECE_S = 1.0  # a piece lasts so long
LARGEST_PIECE = 64 << 20
_LONGEST_S = 10 * OVER_S  # a longer time had a pause in it, and says nothing


class Goodput:
    """Of one worker, whose thread counts; others read `bytes_per_s`."""

    def __init__(self) -> None:
        self.bytes_per_s = 0.0  # 0: not known
        self._bytes = 0
        self._measured = (0, 0.0)  # bytes, and when (monotonic clock)

    def add(self, size: int) -> None:
        """Count bytes that have come."""
        self._bytes += size
        before_bytes, since_s = self._measured
        now_s = time.monotonic()
        if now_s - since_s < OVER_S:
            return
        if since_s and self._bytes > before_bytes and now_s - since_s < _LONGEST_S:
            self.bytes_per_s = (self._bytes - before_bytes) / (now_s - since_s)
        self._measured = self._bytes, now_s

    @property
    def piece_bytes(self) -> int:
        """How much is asked for at once."""
        return int(min(max(self.bytes_per_s * PIECE_S, FIRST_PIECE), LARGEST_PIECE))

    def forget(self) -> None:
        """Take it for unknown again."""
        self.bytes_per_s = 0.0
