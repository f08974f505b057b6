"""Calibration: turns shares of trees into probabilities, and distances into novelty.

It is learnt from windows of links that trees and distances were not learnt from (out of fold).
"""

from collections.abc import Callable

import numpy as np

from mpx.recognition.mix import GROUP_OF, MIXES, NOBODY
from mpx.recognition.neighbours import Texts
from mpx.recognition.novelty import FARTHEST, Places, Ranks, RanksByLikeliest, novelty_score
from mpx.recognition.window_classifier import tempered
from mpx.recognition.windows import Booleans, Floats

SHRINK = 0.05  # of the covariance towards that of independent numbers
FEWEST = 20  # windows whose ranks are of use; where there are fewer all are ranked together
POINTS = 401  # of what is kept of the known windows
BINS = 10  # of probabilities, for the calibration error


def lie(rows: Floats, mixes: Texts) -> Places:
    """Return the means of the mixes, on axes on which windows of one mix have unit variance.

    The axes are a triangle of numbers of 16 bits, as a model on disk has them.
    """
    centre = np.median(rows, axis=0)
    low, high = np.quantile(rows, (0.1, 0.9), axis=0)
    spread = np.maximum((high - low) / 2.563, 1e-3)  # of a normal distribution with these quantiles
    scaled = np.clip((rows - centre) / spread, -FARTHEST, FARTHEST)
    means = np.stack([scaled[mixes == mix].mean(axis=0) for mix in MIXES])
    within = scaled - means[[MIXES.index(mix) for mix in mixes]]
    covariance = within.T @ within / len(within)
    covariance = (1 - SHRINK) * covariance + SHRINK * np.eye(len(covariance)) * np.trace(covariance) / len(
        covariance
    )
    axes = np.triu(np.linalg.inv(np.linalg.cholesky(covariance)).T).astype(np.float16).astype(np.float64)
    return Places(centre, spread, axes, means @ axes)


def calibrated(
    shares: Floats, distances: Floats, mixes: Texts, is_noisy: Booleans
) -> tuple[float, RanksByLikeliest]:
    """Return the temperature, and the novelty of known windows; `shares` has a column for each class.

    That of windows that look like nobody's is of those with the noise of hosts, which all real ones have.
    """
    of_mixes, outsides = shares[:, : len(MIXES)], shares[:, -1]
    is_none = np.array([GROUP_OF[mix] == NOBODY for mix in MIXES])[of_mixes.argmax(axis=1)]
    everything = np.full(len(mixes), True)

    def first_of(*some: Booleans) -> Ranks:
        rows = next((rows for rows in some if rows.sum() >= FEWEST), everything)
        return ranks_of(distances[rows], outsides[rows])

    ranks = RanksByLikeliest(first_of(is_none & is_noisy, is_none), first_of(~is_none))
    return temperature_of(of_mixes, mixes), ranks


def ranks_of(distances: Floats, outsides: Floats) -> Ranks:
    """Return the distribution of known windows over distances and shares of outside traffic."""
    by_distance, by_trees = at_even_shares(distances), at_even_shares(outsides)
    both = [
        novelty_score(by_distance, by_trees, float(distance), float(outside))
        for distance, outside in zip(distances, outsides, strict=True)
    ]
    return Ranks(by_distance, by_trees, at_even_shares(np.array(both)))


def at_even_shares(values: Floats) -> Floats:
    """Return evenly spaced quantiles of the values."""
    return np.asarray(np.quantile(values, np.linspace(0, 1, POINTS)))


def temperature_of(shares: Floats, mixes: Texts) -> float:
    """Return the temperature that maximises the likelihood of the true mixes."""
    truth = np.array([MIXES.index(mix) for mix in mixes])

    def surprise(log_temperature: float) -> float:
        said = tempered(shares, float(np.exp(log_temperature)))
        return float(-np.log(said[np.arange(len(truth)), truth]).mean())

    return float(np.exp(place_of_least(surprise, np.log(0.05), np.log(20.0))))


def place_of_least(value: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one minimum is least, between these bounds, by golden-section search."""
    golden = (np.sqrt(5) - 1) / 2
    while high - low > 1e-4:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if value(left) < value(right) else (left, high)
    return (low + high) / 2


def calibration_error(probabilities: Floats, mixes: Texts) -> float:
    """Return the expected calibration error (ECE) of the probability of the likeliest mix."""
    best = probabilities.argmax(axis=1)
    sure = probabilities[np.arange(len(best)), best]
    right = np.array(MIXES)[best] == mixes
    places = np.minimum((sure * BINS).astype(int), BINS - 1)
    return float(
        sum(
            abs(sure[places == place].mean() - right[places == place].mean()) * (places == place).mean()
            for place in np.unique(places)
        )
    )
