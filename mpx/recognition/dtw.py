"""Dynamic time warping (DTW): how far two series are from each other when time may be bent a little.

The distance is the root of the least sum of squared differences along a path through both series, whose steps
go at most `radius` away from the diagonal (the Sakoe-Chiba band). Many pairs are computed side by side, since
one is a few hundred additions only. The same figures as tslearn's, in less time for short windows.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PAIRS_AT_ONCE = 8192  # what fits into a processor's cache
THREADS = 2


def distances(some: Floats, others: Floats, radius: int) -> Floats:
    """Return the distance of each of some series (rows of equal length) to each of the others."""
    found = np.empty((len(some), len(others)))
    rows = max(1, PAIRS_AT_ONCE // max(1, len(others)))

    def block(start: int) -> None:
        part = some[start : start + rows]
        for from_ in range(0, len(others), PAIRS_AT_ONCE):
            theirs = others[from_ : from_ + PAIRS_AT_ONCE]
            a = np.repeat(part, len(theirs), axis=0)
            b = np.tile(theirs, (len(part), 1))
            found[start : start + rows, from_ : from_ + PAIRS_AT_ONCE] = _pairs(a.T, b.T, radius).reshape(
                len(part), len(theirs)
            )

    with ThreadPoolExecutor(THREADS) as pool:  # numpy computes outside the interpreter's lock
        list(pool.map(block, range(0, len(some), rows)))
    return found


def _pairs(a: Floats, b: Floats, radius: int) -> Floats:
    """Return the distance of each pair; a row for each time, a column for each pair."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    steps, pairs = a.shape
    above = np.full((steps, pairs), np.inf)  # the row of the table before this one
    here = np.full((steps, pairs), np.inf)
    cost = np.empty(pairs)
    for i in range(steps):
        first, last = max(0, i - radius), min(steps - 1, i + radius)
        if first:
            here[first - 1] = np.inf  # what the row before the last has left there
        for j in range(first, last + 1):
            np.subtract(a[i], b[j], out=cost)
            np.multiply(cost, cost, out=cost)
            if i or j:
                best = here[j]
                np.copyto(best, above[j])
                if j:
                    np.minimum(best, above[j - 1], out=best)
                    np.minimum(best, here[j - 1], out=best)
                best += cost
            else:
                here[j] = cost
        above, here = here, above
    return np.asarray(np.sqrt(above[steps - 1]))
