"""What is read from a series of goodput: means, when a share of a rate is reached, fairness."""

import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_S = 1.0  # over which a rate is a rate, or ten round trips if that is longer


@dataclass(frozen=True)
class Series:
    """Bytes of file that had arrived at each time since the first byte; times rise, both begin with 0."""

    t_s: Sequence[float]
    bytes: Sequence[float]

    def at(self, t_s: float) -> float:
        """Return how many bytes had arrived by then, between samples by interpolation."""
        i = bisect_left(self.t_s, t_s)
        if i == 0:
            return self.bytes[0]
        if i == len(self.t_s):
            return self.bytes[-1]
        before, after = self.t_s[i - 1], self.t_s[i]
        part = (t_s - before) / (after - before)
        return self.bytes[i - 1] + part * (self.bytes[i] - self.bytes[i - 1])

    @property
    def end_s(self) -> float:
        """When it was last looked at."""
        return self.t_s[-1]

    def goodput_bps(self, from_s: float, to_s: float) -> float:
        """Return the mean goodput between two times, bit/s."""
        return (self.at(to_s) - self.at(from_s)) * 8 / (to_s - from_s)

    def rates_bps(self, window_s: float = WINDOW_S) -> list[tuple[float, float]]:
        """Return (middle of the window, goodput) of windows side by side."""
        return [
            ((i + 0.5) * window_s, self.goodput_bps(i * window_s, (i + 1) * window_s))
            for i in range(int(self.end_s / window_s + 1e-6))
        ]

    def reached_s(self, rate_bps: float, window_s: float = WINDOW_S) -> float | None:
        """Return from when on goodput over the next window was at least so much; None if never."""
        step = 0.1
        for i in range(int((self.end_s - window_s) / step) + 1):
            if self.goodput_bps(i * step, i * step + window_s) >= rate_bps:
                return i * step
        return None


def jain(values: Sequence[float]) -> float:
    """Return Jain's index of fairness, (sum x)^2 / (n sum x^2); 1 for nobody at all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Spearman's coefficient, ties by their mean rank; 0 where one of them never changes."""
    first, second = _ranks(xs), _ranks(ys)
    if len(set(first)) == 1 or len(set(second)) == 1:
        return 0.0
    return statistics.correlation(first, second)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [(2 * bisect_left(ordered, value) + ordered.count(value) - 1) / 2 for value in values]
