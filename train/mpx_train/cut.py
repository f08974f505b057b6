"""Cuts the runs of a dataset into windows: even ones to judge on, random and disturbed ones to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mpx_lab.dataset.load import Example
from numpy.typing import NDArray

from mpx.ops_windows import STEP_S, Floats, Windows, bridged, enough, on_grid, rates_on_grid, steps_of

Texts = NDArray[np.str_]
BASE_TOO_HIGH = 0.4  # a queue that never empties hides so much of the base at most
NOISE_S = (1e-5, 1e-3)  # of probes, log-uniform
LOST = 0.1  # at most, in half of the windows


@dataclass(frozen=True)
class Labelled:
    """Windows and what is known of each; all arrays have one entry or row for each window."""

    windows: Windows
    mix: Texts
    run: Texts
    link: Texts
    is_clean: NDArray[np.bool_]
    rtt_s: Floats  # of the empty link
    queue_bdp: Floats

    def __len__(self) -> int:
        return len(self.mix)

    def where(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Labelled":
        """Return some of them."""
        own = self.windows.goodput_bps
        windows = Windows(
            self.windows.rtt_s[rows],
            self.windows.lost[rows],
            self.windows.base_s[rows],
            None if own is None else own[rows],
        )
        others = (self.mix, self.run, self.link, self.is_clean, self.rtt_s, self.queue_bdp)
        return Labelled(windows, *(each[rows] for each in others))


@dataclass(frozen=True)
class Grid:
    """A run on its grid of steps."""

    example: Example
    rtt_s: Floats  # NaN: lost
    goodput_bps: Floats | None


def gridded(examples: Sequence[Example], *, with_goodput: bool) -> list[Grid]:
    """Return each run on a grid that is as long as its series."""
    grids = []
    for example in examples:
        steps = int(round((example.single[-1].t_s - example.single[0].t_s) / STEP_S)) + 1
        from_s = example.single[0].t_s - STEP_S / 2  # probes are sent in the middle of their steps
        own = rates_on_grid(example.goodput, from_s, steps) if with_goodput else None
        grids.append(Grid(example, on_grid(example.single, from_s, steps), own))
    return grids


def even(grids: Sequence[Grid], window_s: float, *, base_known: bool = False) -> Labelled:
    """Return every window that has answers, one after the other without overlap.

    The base is the least round-trip time of the window, as a program knows it that has just begun, or that of
    the empty link.
    """
    steps = steps_of(window_s)
    places = [(grid, at) for grid in grids for at in range(0, len(grid.rtt_s) - steps + 1, steps)]
    found = _cut(places, steps)
    return _with_base(found, found.rtt_s) if base_known else found


def drawn(grids: Sequence[Grid], window_s: float, copies: int, dice: np.random.Generator) -> Labelled:
    """Return so many windows of each run as fit `copies` times into it, at random places, disturbed at random.

    Disturbed are: the base, between that of the empty link and the least of the window, by 40 % at most; the
    probes, by noise of 10 us to 1 ms; and in half of the windows up to 10 % of the probes are lost.
    """
    steps = steps_of(window_s)
    places = [
        (grid, int(dice.integers(0, len(grid.rtt_s) - steps + 1)))
        for grid in grids
        for _ in range(copies * max(1, len(grid.rtt_s) // steps))
        if len(grid.rtt_s) >= steps
    ]
    noise = np.exp(dice.uniform(*np.log(NOISE_S), len(places)))
    lost = np.where(dice.random(len(places)) < 0.5, dice.uniform(0, LOST, len(places)), 0)
    found = _cut(places, steps, dice, noise, lost)
    least = found.windows.base_s
    highest = np.minimum(least, found.rtt_s * (1 + BASE_TOO_HIGH))
    mixed = found.rtt_s + dice.random(len(found)) * (highest - found.rtt_s)
    kind = dice.integers(0, 3, len(found))
    return _with_base(found, np.choose(kind, [np.minimum(found.rtt_s, least), mixed, least]))


def _cut(
    places: Sequence[tuple[Grid, int]],
    steps: int,
    dice: np.random.Generator | None = None,
    noise_s: Floats | None = None,
    lost: Floats | None = None,
) -> Labelled:
    rows = np.stack([grid.rtt_s[at : at + steps] for grid, at in places])
    if dice is not None and noise_s is not None and lost is not None:
        rows = rows + dice.exponential(1.0, rows.shape) * noise_s[:, None]
        rows[dice.random(rows.shape) < lost[:, None]] = np.nan
    owns = [grid.goodput_bps[at : at + steps] for grid, at in places if grid.goodput_bps is not None]
    whole, gone = bridged(rows)
    told = [grid.example for grid, _ in places]
    found = Labelled(
        Windows(whole, gone, whole.min(axis=1), np.stack(owns) if owns else None),
        np.array([each.mix for each in told]),
        np.array([each.run for each in told]),
        np.array([each.link for each in told]),
        np.array([not each.nuisance for each in told]),
        np.array([each.rtt_s for each in told]),
        np.array([each.queue_bdp for each in told]),
    )
    return found.where(enough(gone))


def _with_base(of: Labelled, base_s: Floats) -> Labelled:
    windows = Windows(of.windows.rtt_s, of.windows.lost, base_s, of.windows.goodput_bps)
    others = (of.mix, of.run, of.link, of.is_clean, of.rtt_s, of.queue_bdp)
    return Labelled(windows, *others)
