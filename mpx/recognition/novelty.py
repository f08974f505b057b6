"""How strange a window is: whether it is like anything that was seen in training.

Two things make it strange: the trees put it among traffic that is none of the mixes, or its numbers lie far
from those of every mix (the least Mahalanobis distance to the six, with one covariance for all). Each is
ranked among known windows of links that were not learnt from. Both ranks together, by the logarithms of what
is left above them, are ranked once more, so that false alarms are as many as they may be (conformal
prediction).
"""

import math
from dataclasses import dataclass

import numpy as np

from mpx.recognition.windows import Floats

LEAST_LEFT = 0.001  # of all windows, above the strangest that is known
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
    together: Floats  # how strange both make them, see `strangeness`

    def __post_init__(self) -> None:
        for of in (self.distances, self.outsides, self.together):
            if len(of) < 2 or not np.isfinite(of).all() or np.any(np.diff(of) < 0):
                raise ValueError("what is known of strangeness is not in order")

    def less_strange(self, distance: float, outside: float) -> float:
        """Return the share of known windows that are less strange, 0 to 1."""
        return share_below(self.together, strangeness(self.distances, self.outsides, distance, outside))


def strangeness(distances: Floats, outsides: Floats, distance: float, outside: float) -> float:
    """Return how strange both make a window, given what known windows reach at even shares.

    The trees count twice: they have seen strange traffic, the distance only knows what is not.
    """
    return -math.log(left_above(distances, distance)) - 2 * math.log(left_above(outsides, outside))


def left_above(ordered: Floats, value: float) -> float:
    """Return which share lies above a value; beyond all that is known it shrinks quickly, but never to 0."""
    most = float(ordered[-1])
    beyond = (max(most, 0.0) / value) ** 4 if value > most and value > 0 else 1.0
    return max((1 - share_below(ordered, value) + LEAST_LEFT) * beyond, 1e-9)


def share_below(ordered: Floats, value: float) -> float:
    """Return the share of what is listed at even shares, in order of size, that is below a value."""
    shares = np.linspace(0, 1, len(ordered))
    low = int(np.searchsorted(ordered, value, side="left"))
    if low == len(ordered):
        return 1.0
    if low == 0:
        return 0.0
    gap = ordered[low] - ordered[low - 1]
    return float(shares[low - 1] + (shares[low] - shares[low - 1]) * (value - ordered[low - 1]) / gap)
