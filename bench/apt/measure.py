"""Figures of the goodput of a transfer: means, time until a rate is reached; statistics."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from mpx_lab import series
from mpx_lab.series import Sample

WINDOW_S = 1.0  # over which a rate is averaged
STEP_S = 0.1
FIRST_BYTES = 40_000  # more than the dialogue before the data
ENDING_S = 1.0  # at the end of a run, in which the interrupted tool sends nothing
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # Student's t, two-sided, 2 to 10 values


@dataclass(frozen=True)
class Goodput:
    """What arrived of a transfer; times are seconds since its first byte."""

    samples: Sequence[Sample]

    @property
    def end_s(self) -> float:
        """The time of the last sample."""
        return self.samples[-1].t_s

    def mean_bps(self, from_s: float, to_s: float) -> float:
        """Return the mean goodput between two times, bit/s."""
        return series.goodput_bps(self.samples, from_s, to_s)

    def rates_bps(self) -> list[tuple[float, float]]:
        """Return (middle, mean goodput) of windows side by side."""
        rates = series.resample(self.samples, 0.0, self.end_s, WINDOW_S)
        return [((i + 0.5) * WINDOW_S, rate) for i, rate in enumerate(rates)]

    def risen(self) -> list[tuple[float, float]]:
        """Return the end and the goodput of each second that carried more than every one before it."""
        found: list[tuple[float, float]] = []
        for i in range(int((self.end_s - WINDOW_S) / STEP_S) + 1):
            rate_bps = self.mean_bps(i * STEP_S, i * STEP_S + WINDOW_S)
            if not found or rate_bps > found[-1][1]:
                found.append((i * STEP_S + WINDOW_S, rate_bps))
        return found


def reached_s(risen: Sequence[Sequence[float]], rate_bps: float) -> float:
    """Return the end of the first second that carried so much, of `Goodput.risen`; infinite if none did.

    A transfer that has the rate from its beginning has 1 s.
    """
    return next((end_s for end_s, carried_bps in risen if carried_bps >= rate_bps), math.inf)


def since_first_byte(samples: Sequence[Sample]) -> tuple[float, Goodput]:
    """Return when the first byte of a file came, and the goodput from then on, without the ending.

    Raises ValueError if nothing of a file has arrived.
    """
    for i, total in enumerate(accumulate(sample.size_bytes for sample in samples)):
        if total > FIRST_BYTES:
            began_s, end_s = samples[max(0, i - 1)].t_s, samples[-1].t_s - ENDING_S
            later = [Sample(s.t_s - began_s, s.size_bytes) for s in samples[i:] if s.t_s <= end_s]
            return began_s, Goodput([Sample(0.0, 0), *later])
    raise ValueError("nothing of a file has arrived")


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half width of its 95 % interval, by Student's t; up to ten values."""
    if len(values) == 1:
        return values[0], math.inf
    half = T95[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), half


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Spearman's coefficient, ties by their mean rank; 0 where one of them never changes."""
    first, second = _ranks(xs), _ranks(ys)
    if len(set(first)) == 1 or len(set(second)) == 1:
        return 0.0
    return statistics.correlation(first, second)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [(2 * bisect_left(ordered, value) + ordered.count(value) - 1) / 2 for value in values]
