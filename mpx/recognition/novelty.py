"""The novelty of a window: how unlike it is to all training data.

It has two parts: the vote of the trees for traffic that is none of the mixes, and the distance of its
features from those of every mix (the least Mahalanobis distance to the six, with one covariance for all).
Each is ranked among known windows of links that were left out of the training. The combination of both ranks,
by the logarithms of the shares above them, is ranked once more, so that the rate of false alarms is the one
that is set (conformal prediction). Windows that look like nobody's are ranked among their like: on an idle
path there is nothing but the noise of hosts, and each host has its own.
"""

import math
from dataclasses import dataclass

import numpy as np

from mpx.recognition.mix import GROUP_OF, NOBODY
from mpx.recognition.windows import Floats

LEAST_LEFT = 0.001  # share of all windows above the highest known novelty
FARTHEST = 8.0  # spreads from the centre: limits the weight of a single feature


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
            raise ValueError("the arrays of the mixes differ in shape")
        if not all(np.isfinite(of).all() for of in (self.centre, self.spread, self.axes, self.means)):
            raise ValueError("the centre of a mix is not a finite number")
        if np.any(self.spread <= 0):
            raise ValueError("the spread of a feature is not above zero")

    def distances(self, rows: Floats) -> Floats:
        """Return how far each row of features is from the nearest mix."""
        places = np.clip((rows - self.centre) / self.spread, -FARTHEST, FARTHEST) @ self.axes
        return np.asarray(np.sqrt(((places[:, None] - self.means) ** 2).sum(axis=2)).min(axis=1))


@dataclass(frozen=True)
class Ranks:
    """Quantiles of known windows. Raises ValueError where they are not in order."""

    distances: Floats  # from the nearest mix
    outsides: Floats  # the trees' votes for traffic that is none of the mixes
    together: Floats  # both combined, see `novelty_score`

    def __post_init__(self) -> None:
        for of in (self.distances, self.outsides, self.together):
            if len(of) < 2 or not np.isfinite(of).all() or np.any(np.diff(of) < 0):
                raise ValueError("the quantiles of novelty are not in order")

    def novelty(self, distance: float, outside: float) -> float:
        """Return the share of known windows with less novelty, 0 to 1."""
        return share_below(self.together, novelty_score(self.distances, self.outsides, distance, outside))


@dataclass(frozen=True)
class RanksByLikeliest:
    """Ranks of windows whose likeliest mix is none, and of all others."""

    none: Ranks
    others: Ranks

    def of(self, likeliest: str) -> Ranks:
        """Return those of windows with that mix as the likeliest."""
        return self.none if GROUP_OF[likeliest] == NOBODY else self.others


def novelty_score(distances: Floats, outsides: Floats, distance: float, outside: float) -> float:
    """Return the combined novelty, given the quantiles of known windows.

    The trees count twice: they have seen novel traffic in training, the distance has not.
    """
    return -math.log(left_above(distances, distance)) - 2 * math.log(left_above(outsides, outside))


def left_above(ordered: Floats, value: float) -> float:
    """Return the share above a value; beyond all known values it decreases quickly, but never to 0."""
    most = float(ordered[-1])
    beyond = (max(most, 0.0) / value) ** 4 if value > most and value > 0 else 1.0
    return max((1 - share_below(ordered, value) + LEAST_LEFT) * beyond, 1e-9)


def share_below(ordered: Floats, value: float) -> float:
    """Return the share below a value, given quantiles at even shares."""
    shares = np.linspace(0, 1, len(ordered))
    low = int(np.searchsorted(ordered, value, side="left"))
    if low == len(ordered):
        return 1.0
    if low == 0:
        return 0.0
    gap = ordered[low] - ordered[low - 1]
    return float(shares[low - 1] + (shares[low] - shares[low - 1]) * (value - ordered[low - 1]) / gap)
