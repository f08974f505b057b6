"""Dynamic time warping (DTW): how far two series are from each other when time may be bent a little.

The distance is the root of the least sum of squared differences along a path through both series, whose steps
go at most `radius` away from the diagonal (the Sakoe-Chiba band). Many pairs are computed side by side, since
one is a few hundred additions only. The same figures as tslearn's, in less time for short windows.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
PAIRS_AT_ONCE = 8192  # what fits into a processor's cache
THREADS = 2
FIRST_TOGETHER = 24  # candidates of a single series, then twice as many each time: calls cost as much as sums
ABANDONED = 24  # diagonals, after which candidates are left out that are too far already


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


def nearest(series: Reals, known: Reals, radius: int, k: int) -> tuple[NDArray[np.intp], Floats]:
    """Return which k of the known series (rows) are nearest to one, the nearest first, and their distances.

    The same as by `distances`, in less time: the lower bound of Keogh and Ratanamahatana (Knowledge and
    Information Systems 7(3), 2005) says first which may be near, and what cannot be among the k any more is
    abandoned.
    """
    bounds = _lower_bounds(series, known, radius)
    order = np.argsort(bounds, kind="stable")
    squares = np.full(len(known), np.inf)
    limit = np.inf
    at, together = 0, max(FIRST_TOGETHER, k)
    while at < len(order):
        some = order[at : at + together]
        some = some[bounds[some] <= limit]
        if not len(some):
            break
        squares[some] = _squares(series, known[some], radius, limit)
        limit = np.partition(squares, k - 1)[k - 1]
        at, together = at + together, 2 * together
    found = np.argsort(squares, kind="stable")[:k]
    return found, np.sqrt(squares[found])


def _lower_bounds(series: Reals, known: Reals, radius: int) -> Reals:
    """Return for each known series a square below that of its distance: by how far it leaves an envelope."""
    around = sliding_window_view(np.pad(series, radius, mode="edge"), 2 * radius + 1)
    lowest, highest = around.min(axis=1), around.max(axis=1)
    out = np.maximum(known - highest, 0) + np.maximum(lowest - known, 0)
    return np.asarray(np.einsum("ij,ij->i", out, out))


def _squares(series: Reals, known: Reals, radius: int, limit: float) -> Floats:
    """Return the square of the distance to each; infinite where it is above `limit`.

    Diagonal by diagonal of the table, as all cells of one depend on the two before only.
    """
    steps, found, alive = len(series), np.full(len(known), np.inf), np.arange(len(known))
    columns = np.ascontiguousarray(known.T)
    # Row i + 1 is for the cell (i, number - i) of a diagonal; those at the edges stay infinite.
    here, before, earlier = (np.full((steps + 2, len(known)), np.inf, known.dtype) for _ in range(3))
    for number in range(2 * steps - 1):
        first = max(0, number - steps + 1, (number - radius + 1) // 2)
        last = min(steps - 1, number, (number + radius) // 2)
        cost = series[first : last + 1, None] - columns[number - last : number - first + 1][::-1]
        np.multiply(cost, cost, out=cost)
        if number:
            best = np.minimum(before[first : last + 1], before[first + 1 : last + 2])
            np.minimum(best, earlier[first : last + 1], out=best)
            cost += best
        here[first + 1 : last + 2] = cost
        here[first] = here[last + 2] = np.inf
        if number % ABANDONED == ABANDONED - 1 and limit < np.inf:
            least = np.minimum(cost.min(axis=0), before[first : last + 2].min(axis=0))
            stays = least <= limit
            if not stays.any():
                return found
            if not stays.all():
                alive, columns = alive[stays], np.ascontiguousarray(columns[:, stays])
                here, before, earlier = here[:, stays], before[:, stays], earlier[:, stays]
        here, before, earlier = earlier, here, before
    found[alive] = before[steps]
    return found
