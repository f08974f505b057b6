"""Windows of round-trip times as arrays, for the recognition of the background (OPS, see mix.py).

Ten probes a second are put on an even grid, lost ones are bridged, and what was lost is kept beside. Rows are
windows, columns are steps in time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpx.rtt_series import Probe, resampled

STEP_S = 0.1
FEWEST_ANSWERS = 0.5  # of the steps of a window
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Windows:
    """Some windows of the same length; arrays have a row for each, a column for each step."""

    rtt_s: Floats  # lost probes are bridged
    lost: Booleans
    base_s: Floats  # one for each window
    goodput_bps: Floats | None = None  # of our own data

    def __len__(self) -> int:
        return len(self.rtt_s)


def steps_of(seconds: float) -> int:
    """Return how many steps there are in so many seconds."""
    return round(seconds / STEP_S)


def on_grid(series: Sequence[Probe]) -> Floats:
    """Return the round-trip time at each step from the first probe to the last, NaN where none is known."""
    return np.array([np.nan if rtt_s is None else rtt_s for rtt_s in resampled(series, STEP_S)])


def the_end(series: Sequence[Probe], steps: int) -> tuple[float, Floats] | None:
    """Return the time of the first of the last so many steps, and them; None for a series that is shorter."""
    if not series:
        return None
    last_s, first_s = max(probe.t_s for probe in series), min(probe.t_s for probe in series)
    from_s = last_s - (steps - 1) * STEP_S
    if first_s > from_s + STEP_S / 2:
        return None
    recent = [probe for probe in series if probe.t_s > from_s - STEP_S / 2]
    return from_s, on_grid([Probe(from_s, None), *recent])[-steps:]


def rates_on_grid(goodput: Sequence[tuple[float, float]], first_s: float, steps: int) -> Floats:
    """Return the goodput, bit/s, at each step from that time on, as `on_grid` has them.

    Where there are several it is their mean, where there is none the one before.
    """
    grid, count = np.zeros(steps), np.zeros(steps)
    for t_s, bps in goodput:
        step = math.floor((t_s - first_s) / STEP_S + 0.5)
        if 0 <= step < steps:
            grid[step] += bps
            count[step] += 1
    known = np.where(count > 0, np.arange(steps), 0)
    mean = grid / np.maximum(count, 1)
    return np.asarray(mean[np.maximum.accumulate(known)])


def bridged(grid: Floats) -> tuple[Floats, Booleans]:
    """Return the windows with lost probes bridged by straight lines, and which these were.

    A window without any answer becomes zeros; `enough` tells.
    """
    lost = np.isnan(grid)
    if not lost.any():
        return grid, lost
    whole = grid.copy()
    at = np.arange(grid.shape[1])
    for row in np.flatnonzero(lost.any(axis=1)):
        known = ~lost[row]
        whole[row] = np.interp(at, at[known], grid[row, known]) if known.any() else 0.0
    return whole, lost


def enough(lost: Booleans) -> Booleans:
    """Return for each window whether so many probes were answered that it tells anything."""
    return np.asarray(lost.mean(axis=1) <= 1 - FEWEST_ANSWERS)
