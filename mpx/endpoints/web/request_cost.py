"""What a request costs beside its bytes: the time until its answer begins, and how much is worth that.

Some servers look something up, open a tape or ask others for each request, perhaps one after the other.
There few large ranges come sooner than many small ones.
"""

from mpx.endpoints.web.fetch import FIRST_PIECE

WORTH = 4.0  # a piece is to last so many times as long as its answer is waited for ...
STEP = 4  # ... and has at most so many times as many bytes as those before
LARGEST_PIECE = 64 << 20
_LATE = 4  # answers, as one may be late for once
_SHORTEST_S = 1e-4  # of a body, which may have been received while its head was waited for


class RequestCost:
    """Shared by the workers of a copy: what one finds out holds for all. For any thread."""

    def __init__(self) -> None:
        self.wait_s = 0.0  # for an answer, the shortest of late
        self._waits_s: tuple[float, ...] = ()
        self.least_bytes = 0  # a piece with fewer would mostly be waited for

    def note(self, waited_s: float, size_bytes: int, took_s: float) -> None:
        """Note how long an answer was waited for, and how long its bytes took.

        What is worth a request grows by steps, as how fast bytes can come shows with larger pieces only.
        """
        if size_bytes < min(self.least_bytes, FIRST_PIECE):
            return  # a short one tells little
        rate = size_bytes / max(took_s, _SHORTEST_S)
        most = STEP * max(size_bytes, self.least_bytes)
        self._waits_s = (*self._waits_s[1 - _LATE :], waited_s)
        self.wait_s = min(self._waits_s)
        self.least_bytes = int(min(WORTH * self.wait_s * rate, most, LARGEST_PIECE))
