"""So many a second and no more, of whatever is asked for."""


class Allowance:
    """So many a second, and `burst` at once (the generic cell rate algorithm)."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._ahead_s = (burst - 1) / rate
        self._free_s = 0.0  # when all that was taken is paid for

    def take(self, now_s: float) -> bool:
        """Tell whether one more may be had now, and count it if so."""
        free_s = max(now_s, self._free_s)
        if free_s - now_s > self._ahead_s:
            return False
        self._free_s = free_s + 1 / self._rate
        return True
