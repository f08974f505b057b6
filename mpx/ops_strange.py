"""How strange a window is: whether it is like anything that was seen in training.

Two things make it strange: the trees put it among traffic that is none of the mixes, or its numbers lie far
from those of every mix (the least Mahalanobis distance to the six, with one covariance for all). Each is told
as the share of known windows, of links that were not learnt from, that are less so (conformal prediction).
"""

from dataclasses import dataclass

import numpy as np

from mpx.ops_windows import Floats

FARTHEST = 8.0  # spreads from the centre; beyond, a single number must not decide


@dataclass(frozen=True)
class Places:
    """Where the mixes lie among the features. Raises ValueError for arrays that do not fit."""

    centre: Floats  # of each feature
    spread: Floats
    axes: Floats  # a row for each feature, a column for each direction; whitens what differs within a mix
    means: Floats  # of each mix, a row each, along the axes

    def __post_init__(self) -> None:
        features, directions = self.axes.shape
        if not self.centre.shape == self.spread.shape == (features,) or self.means.shape[1:] != (directions,):
            raise ValueError("the arrays of the places do not fit each other")
        if not all(np.isfinite(of).all() for of in (self.centre, self.spread, self.axes, self.means)):
            raise ValueError("the place of a mix is no number")
        if np.any(self.spread <= 0):
            raise ValueError("the spread of a feature is not above zero")

    def distances(self, rows: Floats) -> Floats:
        """Return how far each row of features is from the nearest mix."""
        places = np.clip((rows - self.centre) / self.spread, -FARTHEST, FARTHEST) @ self.axes
        return np.asarray(np.sqrt(((places[:, None] - self.means) ** 2).sum(axis=2)).min(axis=1))


@dataclass(frozen=True)
class Ranks:
    """What known windows reach, at even shares of them. Raises ValueError where it is not in order."""

    distances: Floats  # from the nearest mix
    outsides: Floats  # the share of traffic that is none of the mixes, as the trees say
    known: Floats  # the larger of the shares that are below in both

    def __post_init__(self) -> None:
        for of in (self.distances, self.outsides, self.known):
            if len(of) < 2 or not np.isfinite(of).all() or np.any(np.diff(of) < 0):
                raise ValueError("what is known of strangeness is not in order")

    def less_strange(self, distance: float, outside: float) -> float:
        """Return the share of known windows that are less strange, 0 to 1."""
        by_distance, by_trees = share_below(self.distances, distance), share_below(self.outsides, outside)
        return share_below(self.known, max(by_distance, by_trees))


def share_below(ordered: Floats, value: float) -> float:
    """Return the share of what is listed at even shares, in order of size, that is below a value."""
    shares = np.linspace(0, 1, len(ordered))
    low = np.searchsorted(ordered, value, side="left")
    if low == len(ordered):
        return 1.0
    if low == 0:
        return 0.0
    gap = ordered[low] - ordered[low - 1]
    return float(shares[low - 1] + (shares[low] - shares[low - 1]) * (value - ordered[low - 1]) / gap)
