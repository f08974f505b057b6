"""Windows of round-trip times as arrays, for the recognition of the background (OPS, see mix.py).

Ten probes a second are put on an even grid. Steps whose probe was lost, and steps without one, are bridged;
only the former count as lost. Rows are windows, columns are steps in time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe

STEP_S = 0.1
FEWEST_ANSWERS = 0.5  # of the steps of a window
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class ProbeWindows:
    """Some windows of the same length; arrays have a row for each, a column for each step."""

    rtt_s: Floats  # missing values are interpolated
    lost: Booleans
    base_s: Floats  # one for each window
    goodput_bps: Floats | None = None  # of our own data
    streams: Floats | None = None  # one for each window: our number of streams, in a transfer
    shares: Floats | None = None  # our share of the link where a pulse ended (QueueResponse.share); else NaN
    kept: Floats | None = None  # the same by goodput (QueueResponse.kept)

    def __len__(self) -> int:
        return len(self.rtt_s)


@dataclass(frozen=True)
class Grid:
    """A series at even steps."""

    from_s: float  # the time of the first step
    rtt_s: Floats  # the mean of the answers to the probes of each step, NaN where there are none
    lost: Booleans  # a probe was sent in this step, and none was answered

    def __len__(self) -> int:
        return len(self.rtt_s)

    def end(self, steps: int) -> "Grid":
        """Return the last so many steps."""
        first = len(self) - steps
        return Grid(self.from_s + first * STEP_S, self.rtt_s[first:], self.lost[first:])


def steps_of(seconds: float) -> int:
    """Return how many steps there are in so many seconds."""
    return round(seconds / STEP_S)


def on_grid(series: Sequence[Probe]) -> Grid:
    """Return a series on the grid that fits its probes best; raises ValueError for an empty one.

    Steps are centred on the usual time of probes, so that one that was sent late does not shift the others.
    """
    if not series:
        raise ValueError("a series without probes has no grid")
    at_s = np.array([probe.t_s for probe in series])
    rtts = np.array([np.nan if probe.rtt_s is None else probe.rtt_s for probe in series])
    first_s = float(at_s.min())
    phases = (at_s - first_s) / STEP_S
    centre_s = first_s + float(np.median(phases - np.round(phases))) * STEP_S
    steps = np.floor((at_s - centre_s) / STEP_S + 0.5).astype(int)
    steps, first = steps - steps.min(), int(steps.min())
    answered = ~np.isnan(rtts)
    count = np.bincount(steps, answered)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(steps, np.where(answered, rtts, 0.0)) / count
    return Grid(centre_s + first * STEP_S, mean, (np.bincount(steps) > 0) & (count == 0))


def the_end(series: Sequence[Probe], steps: int) -> Grid | None:
    """Return the last so many steps of a series, None if it is shorter."""
    if not series:
        return None
    last_s, first_s = max(probe.t_s for probe in series), min(probe.t_s for probe in series)
    from_s = last_s - (steps - 1) * STEP_S
    if first_s > from_s + 0.9 * STEP_S:
        return None
    grid = on_grid([probe for probe in series if probe.t_s > from_s - 1.5 * STEP_S])
    missing = steps - len(grid)
    if missing > 0:  # no probes were sent then
        rtts = np.append(np.full(missing, np.nan), grid.rtt_s)
        lost = np.append(np.zeros(missing, dtype=bool), grid.lost)
        grid = Grid(grid.from_s - missing * STEP_S, rtts, lost)
    return grid.end(steps)


def last_window(series: Sequence[Probe], base_s: float, steps: int) -> ProbeWindows | None:
    """Return the last so many steps of a series without data of our own.

    None if it is shorter, or most of it was lost.
    """
    grid = the_end(series, steps)
    if grid is None or not enough(grid.rtt_s[None])[0]:
        return None
    rtt_s = bridged(grid.rtt_s[None])
    return ProbeWindows(rtt_s, grid.lost[None], np.array([min(base_s, float(np.min(rtt_s)))]))


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


def responses_on_grid(
    responses: Sequence[QueueResponse], first_s: float, steps: int
) -> tuple[Floats, Floats]:
    """Return `shares` and `kept` of responses to pulses from that time on, NaN at other steps."""
    shares, kept = np.full((2, steps), np.nan)
    for response in responses:
        step = math.floor((response.t_s - first_s) / STEP_S + 0.5)
        if 0 <= step < steps:
            shares[step], kept[step] = response.share, response.kept
    return shares, kept


def sliding_mean(of: Floats, steps: int) -> Floats:
    """Return the mean over so many steps from each one on, row by row."""
    return np.asarray(sliding_window_view(of, steps, axis=1).mean(axis=2))


def bridged(rtts: Floats) -> Floats:
    """Return windows with missing values (NaN) interpolated.

    A window without any answer becomes zeros; see `enough`.
    """
    unknown = np.isnan(rtts)
    if not unknown.any():
        return rtts
    whole = rtts.copy()
    at = np.arange(rtts.shape[1])
    for row in np.flatnonzero(unknown.any(axis=1)):
        known = ~unknown[row]
        whole[row] = np.interp(at, at[known], rtts[row, known]) if known.any() else 0.0
    return whole


def enough(rtts: Floats) -> Booleans:
    """Return for each window, before `bridged`, whether it has enough answers."""
    return np.asarray(np.isnan(rtts).mean(axis=1) <= 1 - FEWEST_ANSWERS)
