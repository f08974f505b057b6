"""Cuts the runs of a dataset into windows: even ones to judge on, random and disturbed ones to learn from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mpx_lab.dataset.load import Example
from numpy.typing import NDArray

from mpx.recognition.neighbours import Texts, samples_ms
from mpx.recognition.observation import DIPS, PASSIVE, period_s
from mpx.recognition.windows import (
    STEP_S,
    Booleans,
    Floats,
    ProbeWindows,
    bridged,
    enough,
    on_grid,
    rates_on_grid,
    responses_on_grid,
    steps_of,
)
from mpx_train.noise import QUIET, Noise

BASE_TOO_HIGH = 0.4  # a queue that never empties hides so much of the base at most
LOST = 0.1  # at most, in half of the windows
MISALIGNED = 3  # steps at most
Drawing = Callable[[int, int], Floats]  # seconds for so many windows of so many steps
TOLD = ("paper_ms", "mix", "run", "link", "is_clean", "is_noisy", "rtt_s", "known_base_s", "queue_bdp")


@dataclass(frozen=True)
class Labelled:
    """Windows and their labels; all arrays have one entry or row for each window."""

    windows: ProbeWindows
    paper_ms: Floats  # the same time as the paper samples it: a row of milliseconds, one a second
    mix: Texts
    run: Texts
    link: Texts
    is_clean: NDArray[np.bool_]
    is_noisy: NDArray[np.bool_]  # with the noise of hosts
    rtt_s: Floats  # of the empty link
    known_base_s: Floats  # the least ever seen on it
    queue_bdp: Floats

    def __len__(self) -> int:
        return len(self.mix)

    def where(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "Labelled":
        """Return some of them."""
        has = self.windows
        windows = ProbeWindows(
            has.rtt_s[rows],
            has.lost[rows],
            has.base_s[rows],
            *(None if each is None else each[rows] for each in _of_own(has)),
        )
        return Labelled(windows, *(getattr(self, name)[rows] for name in TOLD))


@dataclass(frozen=True)
class Gridded:
    """A series of the dataset on its grid of steps."""

    example: Example
    rtt_s: Floats  # NaN: not known
    lost: Booleans
    goodput_bps: Floats | None
    # Shares of the link by each of two estimates, where rate pulses gave them; else NaN.
    responses: tuple[Floats, Floats] | None
    paper_ms: Floats  # each second; a sample that was lost is the one before it


def gridded(examples: Sequence[Example], kind: str = PASSIVE, *, least_s: float = 0.0) -> list[Gridded]:
    """Return each series on a grid that is as long as it; those without, or shorter, are left out."""
    grids = []
    for example in examples:
        if not example.single:
            continue
        grid = on_grid(example.single)
        if len(grid) < steps_of(least_s):
            continue
        own = None if kind == PASSIVE else rates_on_grid(example.goodput, grid.from_s, len(grid))
        responses = responses_on_grid(example.responses, grid.from_s, len(grid)) if kind in DIPS else None
        grids.append(Gridded(example, grid.rtt_s, grid.lost, own, responses, samples_ms(example.paper)))
    return grids


def even(
    grids: Sequence[Gridded], window_s: float, *, base_known: bool = False, noise_s: Drawing | None = None
) -> Labelled:
    """Return every window that has answers, one after the other without overlap.

    The base is the least round-trip time of the window, as a program knows it that has just begun, or the
    least that anybody has seen on the link. `noise_s` draws what is added to the probes.
    """
    steps = steps_of(window_s)
    places = [(grid, at) for grid in grids for at in range(0, len(grid.rtt_s) - steps + 1, steps)]
    found = _cut(places, steps, noise_s(len(places), steps) if noise_s else None)
    return _with_base(found, np.minimum(found.known_base_s, found.windows.base_s)) if base_known else found


def each_second(grid: Gridded, window_s: float) -> Labelled:
    """Return the windows of a series that end a second after each other, the last at its end.

    The base is the least round-trip time until then. Windows without enough answers are left out.
    """
    steps, every = steps_of(window_s), steps_of(1.0)
    last = len(grid.rtt_s) - steps
    places = range(last % every, last + 1, every)
    found = _cut([(grid, at) for at in places], steps)
    return _with_base(found, np.minimum.accumulate(found.windows.base_s))


def drawn(
    grids: Sequence[Gridded],
    window_s: float,
    copies: int,
    dice: np.random.Generator,
    kind: str = PASSIVE,
    noise: Noise = QUIET,
) -> Labelled:
    """Return as many windows of each run as fit into it, times `copies`, at random places and disturbed.

    Disturbed are the base (a third of the windows each: the least that anybody has seen on the link; anything
    from there to the least of the window, but 40 % above it at most; the least of the window, however high),
    the probes, by the noise of hosts (that of a radio link without data of our own only), and in half of the
    windows up to 10 % of the probes are lost. Where bursts repeat, windows begin with them but for 0.3 s.
    """
    steps, period = steps_of(window_s), steps_of(period_s(kind))
    places = []
    for grid in grids:
        last = len(grid.rtt_s) - steps
        for _ in range(copies * (len(grid.rtt_s) // steps)):
            at = int(dice.integers(0, last + 1))
            if period:
                begin = period * int(dice.integers(0, last // period + 1))
                at = begin + int(dice.integers(-MISALIGNED, MISALIGNED + 1))
            places.append((grid, min(max(at, 0), last)))
    share = np.where(dice.random(len(places)) < 0.5, dice.uniform(0, LOST, len(places)), 0)
    lost = dice.random((len(places), steps)) < share[:, None]
    found = _cut(places, steps, noise.of(kind).drawn(dice, len(places), steps), lost)
    least = found.windows.base_s
    known = np.minimum(found.known_base_s, least)
    highest = np.minimum(least, known * (1 + BASE_TOO_HIGH))
    mixed = known + dice.random(len(found)) * (highest - known)
    return _with_base(found, np.choose(dice.integers(0, 3, len(found)), [known, mixed, least]))


def _cut(
    places: Sequence[tuple[Gridded, int]],
    steps: int,
    noise_s: Floats | None = None,
    lost: Booleans | None = None,
) -> Labelled:
    rows = np.stack([grid.rtt_s[at : at + steps] for grid, at in places])
    gone = np.stack([grid.lost[at : at + steps] for grid, at in places])
    if noise_s is not None:
        rows = rows + noise_s
    if lost is not None:
        rows[lost] = np.nan
        gone |= lost
    owns = [grid.goodput_bps[at : at + steps] for grid, at in places if grid.goodput_bps is not None]
    responses = [
        [response[at : at + steps] for response in grid.responses]
        for grid, at in places
        if grid.responses is not None
    ]
    whole = bridged(rows)
    seconds = np.arange(int(steps * STEP_S))
    sampled = [grid.paper_ms.take(int(at * STEP_S) + seconds, mode="clip") for grid, at in places]
    examples = [grid.example for grid, _ in places]
    streams = np.array([float(each.own_streams) for each in examples])
    found = Labelled(
        ProbeWindows(
            whole,
            gone,
            whole.min(axis=1),
            np.stack(owns) if owns else None,
            np.maximum(streams, 1),
            *(np.stack(column) for column in zip(*responses, strict=True)),
        ),
        np.stack(sampled),
        np.array([each.mix for each in examples]),
        np.array([each.run for each in examples]),
        np.array([each.link for each in examples]),
        np.array([not each.nuisance for each in examples]),
        np.full(len(examples), noise_s is not None),
        np.array([each.rtt_s for each in examples]),
        np.array([each.base_s for each in examples]),
        np.array([each.queue_bdp for each in examples]),
    )
    return found.where(enough(rows))


def joined(parts: Sequence[Labelled]) -> Labelled:
    """Return all windows of several."""
    each = [part.windows for part in parts]
    windows = ProbeWindows(
        np.concatenate([windows.rtt_s for windows in each]),
        np.concatenate([windows.lost for windows in each]),
        np.concatenate([windows.base_s for windows in each]),
        *(_all(some) for some in zip(*map(_of_own, each), strict=True)),
    )
    return Labelled(windows, *(np.concatenate([getattr(part, name) for part in parts]) for name in TOLD))


def _of_own(windows: ProbeWindows) -> tuple[Floats | None, ...]:
    """Return the arrays that not all windows have, in the order of their places."""
    return windows.goodput_bps, windows.streams, windows.shares, windows.kept


def _all(some: Sequence[Floats | None]) -> Floats | None:
    known = [each for each in some if each is not None]
    return np.concatenate(known) if known else None


def _with_base(of: Labelled, base_s: Floats) -> Labelled:
    return replace(of, windows=replace(of.windows, base_s=base_s))
