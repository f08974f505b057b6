"""Splits of runs for learning and judging. Whole runs go to one side, so no window is on both.

By run: the links are known. By link: they are not. By range: short links are learnt, long ones judged. The
paper shuffled windows, so that neighbours of one run were on both sides; that is `shuffled`, for its own rows
only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mpx_lab.dataset.load import Example
from numpy.typing import NDArray

from mpx.errors import UsageError

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """Numbers of the runs (of the windows, where these are shuffled) on both sides."""

    learn: Rows
    judge: Rows


def by_run(examples: Sequence[Example], folds: int, seed: int) -> list[Split]:
    """Deal out the runs of each mix evenly; the series of one run stay together."""
    names = np.array([example.run for example in examples])
    _, first, of = np.unique(names, return_index=True, return_inverse=True)
    mixes = np.array([examples[i].mix for i in first])
    return _split(_dealt(mixes, folds, np.random.default_rng(seed))[of], folds)


def by_link(examples: Sequence[Example], folds: int, seed: int) -> list[Split]:
    """Deal out the links; as many folds as links, or more, leave one out at a time."""
    names = np.array([example.link for example in examples])
    links = np.unique(names)
    folds = min(folds, len(links))
    if folds < 2:
        raise UsageError("the dataset has one link; judging on unseen links takes two at least")
    fold_of_link = np.random.default_rng(seed).permutation(np.arange(len(links)) % folds)
    return _split(fold_of_link[np.searchsorted(links, names)], folds)


def by_range(examples: Sequence[Example], until_s: float = 0.06) -> list[Split]:
    """Learn from links with a round-trip time up to `until_s`, judge on the longer ones."""
    is_short = np.array([example.rtt_s <= until_s for example in examples])
    if is_short.all() or not is_short.any():
        raise UsageError(f"all links are on one side of {until_s:g} s; judging by range takes both")
    return [Split(np.flatnonzero(is_short), np.flatnonzero(~is_short))]


def shuffled(mixes: NDArray[np.str_], folds: int, seed: int) -> list[Split]:
    """Deal out single windows of each mix evenly, as the paper did."""
    return _split(_dealt(mixes, folds, np.random.default_rng(seed)), folds)


def _dealt(kinds: NDArray[np.str_], folds: int, dice: np.random.Generator) -> Rows:
    """Return a fold for each; those of a kind are spread evenly over the folds."""
    fold_of = np.empty(len(kinds), dtype=np.intp)
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        fold_of[rows] = dice.permutation(np.arange(len(rows)) % folds)
    return fold_of


def _split(fold_of: Rows, folds: int) -> list[Split]:
    return [Split(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(folds)]
