"""QUANT: quantiles of ever smaller intervals (Dempster, Schmidt, Webb, DAMI 2024).

Of the series, its first and second differences and its spectrum: the series is halved again and again, with
the same intervals shifted by half, and of each interval every fourth value in order of size is taken, every
second one less the interval's mean.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DEPTH = 6
EVERY = 4


def quantiles(series: Floats) -> Floats:
    """Return a row of numbers for each series (rows of equal length)."""
    smooth = np.diff(series, axis=1)
    ways = [series, smooth, np.diff(series, n=2, axis=1), np.abs(np.fft.rfft(series, axis=1))]
    found = [_of(way[:, first:last]) for way in ways for first, last in _intervals(way.shape[1])]
    return np.concatenate(found, axis=1)


def _intervals(steps: int) -> list[tuple[int, int]]:
    found = []
    for depth in range(min(DEPTH, int(np.log2(steps)) + 1)):
        edges = np.linspace(0, steps, 2**depth + 1).astype(int)
        found += list(pairwise(edges))
        half = int(np.ceil((edges[1] - edges[0]) / 2))
        if depth and edges[1] - edges[0] > 1:
            found += [(first + half, min(last + half, steps)) for first, last in found[-(2**depth) : -1]]
    return found


def _of(interval: Floats) -> Floats:
    count = 1 + (interval.shape[1] - 1) // EVERY
    if count == 1:
        return np.median(interval, axis=1, keepdims=True)
    found = np.quantile(interval, np.linspace(0, 1, count), axis=1).T
    found[:, 1::2] -= interval.mean(axis=1, keepdims=True)
    return np.asarray(found)
