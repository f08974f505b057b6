"""Makes a part of a model from the runs of a dataset: windows, features, trees, calibration."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpx.errors import UsageError
from mpx.mix import MIXES
from mpx.ops_features import features
from mpx.ops_model import ACTIVE, PASSIVE
from mpx.ops_part import Part
from mpx.ops_strange import Places, Ranks
from mpx.ops_trees import Trees
from mpx.ops_windows import Floats
from mpx_train.calibrate import lie, ranks_of, temperature_of
from mpx_train.cut import Grid, Labelled, drawn, even, joined
from mpx_train.forest import OUTSIDE, grow, shares_of
from mpx_train.splits import by_link


@dataclass(frozen=True)
class Settings:
    """How much is spent on learning. The defaults make the shipped model."""

    trees: int = 150
    least_in_leaf: int = 3
    features: float = 0.2  # of all, for a node to choose from
    copies: int = 4  # windows that are drawn for each that fits
    folds: int = 10


DEFAULT = Settings()


@dataclass(frozen=True)
class Judged:
    """Windows of links that were not learnt from, and what was said of them."""

    windows: Labelled
    fold: NDArray[np.intp]  # of each window
    shares: Floats  # of the trees, a column for each of CLASSES
    distances: Floats  # from the nearest mix


@dataclass(frozen=True)
class Kind:
    """A way of watching, and how long."""

    name: str  # of KINDS
    window_s: float

    @property
    def with_goodput(self) -> bool:
        """Whether our own data is seen too."""
        return self.name != PASSIVE


@dataclass(frozen=True)
class Grown:
    """What is learnt from some runs."""

    trees: Trees
    places: Places


def grown(known: Sequence[Grid], outside: Sequence[Grid], kind: Kind, seed: int, by: Settings) -> Grown:
    """Learn from runs with a mix, and from runs of what is none; raises UsageError where a mix has no run."""
    missing = set(MIXES) - {grid.example.mix for grid in known}
    if missing:
        names = ", ".join(sorted(missing))
        raise UsageError(f"there is no {kind.name} run of {names} to learn from; measure more links")
    dice = np.random.default_rng(seed)
    aligned = kind.name == ACTIVE
    some = drawn(known, kind.window_s, by.copies, dice, aligned=aligned)
    rows, classes = features(some.windows), some.mix
    places = lie(rows, classes)
    if outside:
        others = drawn(outside, kind.window_s, by.copies, dice, aligned=aligned)
        rows = np.concatenate([rows, features(others.windows)])
        classes = np.concatenate([classes, np.full(len(others), OUTSIDE)])
    return Grown(grow(rows, classes, by.trees, by.least_in_leaf, by.features, seed), places)


def out_of_fold(
    known: Sequence[Grid],
    outside: Sequence[Grid],
    kind: Kind,
    seed: int,
    by: Settings = DEFAULT,
    *,
    base_known: bool = False,
    only_judged: Sequence[Grid] = (),
) -> Judged:
    """Judge every window of every run, known and outside, by what was learnt from other links.

    `base_known`: with the base of the empty link, not the least of the window. `only_judged` are runs that
    nothing is learnt from in any fold.
    """
    everything = [*known, *outside, *only_judged]
    to_learn_from = len(known) + len(outside)
    found, folds, shares, distances = [], [], [], []
    for fold, split in enumerate(by_link([grid.example for grid in everything], by.folds, seed)):
        learn = [everything[i] for i in split.learn if i < to_learn_from]
        is_known = [grid.example.mix in MIXES for grid in learn]
        made = grown(
            [grid for grid, so in zip(learn, is_known, strict=True) if so],
            [grid for grid, so in zip(learn, is_known, strict=True) if not so],
            kind,
            seed,
            by,
        )
        windows = even([everything[i] for i in split.judge], kind.window_s, base_known=base_known)
        rows = features(windows.windows)
        found.append(windows)
        folds.append(np.full(len(windows), fold))
        shares.append(shares_of(made.trees, rows))
        distances.append(made.places.distances(rows))
    return Judged(joined(found), np.concatenate(folds), np.concatenate(shares), np.concatenate(distances))


def part_from(
    known: Sequence[Grid],
    outside: Sequence[Grid],
    kind: Kind,
    judged: Judged,
    seed: int,
    by: Settings = DEFAULT,
) -> Part:
    """Learn from all runs, and calibrate by what was said of unseen links."""
    made = grown(known, outside, kind, seed, by)
    is_known = np.isin(judged.windows.mix, MIXES)
    temperature = temperature_of(judged.shares[is_known, : len(MIXES)], judged.windows.mix[is_known])
    return Part(kind.window_s, kind.with_goodput, made.trees, temperature, made.places, ranks(judged))


def ranks(judged: Judged) -> Ranks:
    """Return how strange windows of known mixes are on links that were not learnt from."""
    is_known = np.isin(judged.windows.mix, MIXES)
    return ranks_of(judged.distances[is_known], judged.shares[is_known, -1])
