"""Series of round-trip times (RTT): probes, series at even steps, and summaries. Pure.

Probes are passed in, in any order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe and its answer."""

    t_s: float  # when it was sent
    rtt_s: float | None  # None: lost


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a series. Those of the RTT are None where no probe (for jitter: no two) was answered."""

    sent: int
    lost: int
    min_s: float | None
    median_s: float | None
    p99_s: float | None  # the smallest RTT that 99 % of the answered probes do not exceed
    jitter_s: float | None  # mean |difference| of consecutive probes, where both were answered

    @property
    def loss(self) -> float:
        """The share of probes that were lost, 0 where none was sent."""
        return self.lost / self.sent if self.sent else 0.0


def summary(probes: Sequence[Probe]) -> Summary:
    """Return the figures of a series."""
    series = _in_order(probes)
    rtts = [probe.rtt_s for probe in series if probe.rtt_s is not None]
    steps = [
        abs(second.rtt_s - first.rtt_s)
        for first, second in pairwise(series)
        if first.rtt_s is not None and second.rtt_s is not None
    ]
    return Summary(
        sent=len(series),
        lost=len(series) - len(rtts),
        min_s=min(rtts, default=None),
        median_s=median(rtts) if rtts else None,
        p99_s=p99(rtts) if rtts else None,
        jitter_s=fmean(steps) if steps else None,
    )


def p99(values: Sequence[float]) -> float:
    """Return the smallest value that 99 % of them do not exceed: the largest of fewer than 100.

    Raises ValueError where there are none.
    """
    if not values:
        raise ValueError("no values, so no 99th percentile")
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]


def resampled(probes: Sequence[Probe], step_s: float) -> list[float | None]:
    """Return the RTT (seconds) at even steps from the first probe to the last.

    Each is the mean of the probes sent less than half a step away that came back, None where there are none.
    In steps of 1 s the paper's trains of ten (Anvari and Lu, Computers 10(6):76, 2021) are a sample each.
    """
    series = _in_order(probes)
    if not series:
        return []
    first_s = series[0].t_s
    found: list[list[float]] = [[] for _ in range(_step(series[-1].t_s - first_s, step_s) + 1)]
    for probe in series:
        if probe.rtt_s is not None:
            found[_step(probe.t_s - first_s, step_s)].append(probe.rtt_s)
    return [fmean(rtts) if rtts else None for rtts in found]


def _in_order(probes: Sequence[Probe]) -> list[Probe]:
    return sorted(probes, key=lambda probe: probe.t_s)


def _step(t_s: float, step_s: float) -> int:
    return math.floor(t_s / step_s + 0.5)
