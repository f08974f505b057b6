"""Series of bytes that arrived over time, and figures computed from them. No I/O.

A series is a list of samples in order of time. Each says how many bytes came since the sample before it; the
first only says when counting began, so its bytes belong to no interval and are zero.
"""

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes that came since the sample before."""

    t_s: float
    size_bytes: int


def bytes_between(series: Sequence[Sample], begin_s: float, end_s: float) -> float:
    """Return the bytes that came in an interval; within a sample the rate is taken to be even.

    Outside of the series there are none.
    """
    if end_s < begin_s:
        raise ValueError(f"the interval ends at {end_s:g} s, before it begins at {begin_s:g} s")
    total = 0.0
    first = max(0, bisect.bisect_right(series, begin_s, key=lambda sample: sample.t_s) - 1)
    for before, after in itertools.pairwise(series[first:]):
        if before.t_s >= end_s:
            break
        width_s = after.t_s - before.t_s
        covered_s = min(end_s, after.t_s) - max(begin_s, before.t_s)
        if width_s > 0 and covered_s > 0:
            total += after.size_bytes * (covered_s / width_s)
        elif width_s <= 0:
            total += after.size_bytes  # two samples at the same time: all bytes came then
    return total


def goodput_bps(series: Sequence[Sample], begin_s: float, end_s: float) -> float:
    """Return the mean rate over an interval, bit/s."""
    if end_s <= begin_s:
        raise ValueError(f"no rate over {begin_s:g} to {end_s:g} s: the interval is empty")
    return bytes_between(series, begin_s, end_s) * 8 / (end_s - begin_s)


def resample(series: Sequence[Sample], begin_s: float, end_s: float, step_s: float) -> list[float]:
    """Return the mean rates (bit/s) over as many whole steps as fit between begin and end."""
    if step_s <= 0:
        raise ValueError(f"no steps of {step_s:g} s; they must be longer than zero")
    count = int((end_s - begin_s) / step_s + 1e-9)
    edges = [begin_s + number * step_s for number in range(count + 1)]
    return [goodput_bps(series, begin, end) for begin, end in itertools.pairwise(edges)]


def jain(shares: Sequence[float]) -> float:
    """Return Jain's fairness index, (sum x)^2 / (n sum x^2): 1 where all are equal, 1/n where one has all.

    All zero counts as equal. Raises ValueError without any share, or for a negative one.
    """
    if not shares:
        raise ValueError("Jain's index needs at least one share")
    if min(shares) < 0:
        raise ValueError(f"a share of {min(shares):g}: shares cannot be negative")
    largest = max(shares)
    if largest == 0:
        return 1.0
    scaled = [share / largest for share in shares]  # so that no square is too small or too large
    return sum(scaled) ** 2 / (len(scaled) * sum(share * share for share in scaled))


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share (0 to 1) of the values does not exceed."""
    if not values:
        raise ValueError("no quantile of no values")
    ordered = sorted(values)
    rank = min(len(ordered), max(1, -int(-share * len(ordered) // 1)))
    return ordered[rank - 1]
