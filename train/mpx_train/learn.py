"""Makes a part of a model from the runs of a dataset: windows, features, trees, calibration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpx.errors import UsageError
from mpx.recognition.features import features
from mpx.recognition.mix import MIXES
from mpx.recognition.neighbours import Texts
from mpx.recognition.novelty import Places
from mpx.recognition.trees import Trees
from mpx.recognition.window_classifier import WindowClassifier
from mpx.recognition.windows import Booleans, Floats
from mpx_train.calibrate import calibrated, lie
from mpx_train.cut import Gridded, Labelled, drawn, even, joined
from mpx_train.forest import OUTSIDE, grow, shares_of
from mpx_train.noise import QUIET, Noise
from mpx_train.splits import by_link


@dataclass(frozen=True)
class Settings:
    """How much is spent on learning. The defaults make the shipped model."""

    trees: int = 120
    least_in_leaf: int = 6
    least_share: float = 0.0015  # of all windows in a leaf: more windows do not make larger trees
    features: float = 0.2  # of all, for a node to choose from
    copies: int = 4  # windows that are drawn for each that fits
    folds: int = 10
    noise: Noise = QUIET  # of hosts, in windows that are learnt from or judged


DEFAULT = Settings()


@dataclass(frozen=True)
class Judged:
    """Windows of links that were not learnt from, with the output of trees and distances.

    Each window is there three times: with its own least as the base, with the least ever seen on the link,
    and with its own least and the noise of hosts.
    """

    windows: Labelled
    base_known: Booleans
    fold: NDArray[np.intp]  # of each window
    shares: Floats  # of the trees, a column for each of CLASSES
    distances: Floats  # from the nearest mix

    def where(self, rows: Booleans) -> "Judged":
        """Return some of them."""
        return Judged(
            self.windows.where(rows),
            self.base_known[rows],
            self.fold[rows],
            self.shares[rows],
            self.distances[rows],
        )

    @property
    def mix(self) -> Texts:
        """What is true of each."""
        return self.windows.mix

    @property
    def is_usual(self) -> Booleans:
        """Which are as they were measured, with their own least as the base."""
        return np.asarray(~self.base_known & ~self.windows.is_noisy)

    @property
    def is_known(self) -> Booleans:
        """Which have a mix, and are not other traffic."""
        return np.isin(self.mix, MIXES)


@dataclass(frozen=True)
class Kind:
    """A way of watching, and the length of its windows."""

    name: str  # of KINDS
    window_s: float


@dataclass(frozen=True)
class Grown:
    """What is learnt from some runs."""

    trees: Trees
    places: Places


def grown(known: Sequence[Gridded], outside: Sequence[Gridded], kind: Kind, seed: int, by: Settings) -> Grown:
    """Learn from runs with a mix, and from runs of what is none; raises UsageError where a mix has no run."""
    missing = set(MIXES) - {grid.example.mix for grid in known}
    if missing:
        names = ", ".join(sorted(missing))
        raise UsageError(f"there is no {kind.name} run of {names} to learn from; measure more links")
    dice = np.random.default_rng(seed)
    some = drawn(known, kind.window_s, by.copies, dice, kind.name, by.noise)
    rows, classes = features(some.windows, kind.name), some.mix
    places = lie(rows, classes)
    if outside:
        others = drawn(outside, kind.window_s, by.copies, dice, kind.name, by.noise)
        rows = np.concatenate([rows, features(others.windows, kind.name)])
        classes = np.concatenate([classes, np.full(len(others), OUTSIDE)])
    least_in_leaf = max(by.least_in_leaf, round(by.least_share * len(rows)))
    return Grown(grow(rows, classes, by.trees, least_in_leaf, by.features, seed), places)


def out_of_fold(
    known: Sequence[Gridded],
    outside: Sequence[Gridded],
    kind: Kind,
    seed: int,
    by: Settings = DEFAULT,
    *,
    only_judged: Sequence[Gridded] = (),
) -> Judged:
    """Judge every window of every run, known and outside, by what was learnt from other links.

    `only_judged` are runs that nothing is learnt from in any fold. A recording of noise is in windows of one
    fold, and in none of those that are learnt from for that fold.
    """
    dice = np.random.default_rng(seed)
    everything = [*known, *outside, *only_judged]
    to_learn_from = len(known) + len(outside)
    found = []
    for fold, split in enumerate(by_link([grid.example for grid in everything], by.folds, seed)):
        learn = [everything[i] for i in split.learn if i < to_learn_from]
        is_known = [grid.example.mix in MIXES for grid in learn]
        made = grown(
            [grid for grid, so in zip(learn, is_known, strict=True) if so],
            [grid for grid, so in zip(learn, is_known, strict=True) if not so],
            kind,
            seed,
            replace(by, noise=by.noise.without(fold, by.folds)),
        )
        noise = partial(by.noise.only(fold, by.folds).of(kind.name).drawn, dice)
        for base_known, noise_s in ((False, None), (True, None), (False, noise)):
            judge = [everything[i] for i in split.judge]
            windows = even(judge, kind.window_s, base_known=base_known, noise_s=noise_s)
            rows = features(windows.windows, kind.name)
            found.append(
                Judged(
                    windows,
                    np.full(len(windows), base_known),
                    np.full(len(windows), fold),
                    shares_of(made.trees, rows),
                    made.places.distances(rows),
                )
            )
    return Judged(
        joined([each.windows for each in found]),
        *(
            np.concatenate([getattr(each, name) for each in found])
            for name in ("base_known", "fold", "shares", "distances")
        ),
    )


def part_from(
    known: Sequence[Gridded],
    outside: Sequence[Gridded],
    kind: Kind,
    judged: Judged,
    seed: int,
    by: Settings = DEFAULT,
) -> WindowClassifier:
    """Learn from all runs, and calibrate by what was said of unseen links."""
    made = grown(known, outside, kind, seed, by)
    of = judged.where(judged.is_known)
    temperature, ranks = calibrated(of.shares, of.distances, of.mix, of.windows.is_noisy)
    return WindowClassifier(kind.name, kind.window_s, made.trees, temperature, made.places, ranks)
