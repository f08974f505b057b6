"""Features of our own data: its goodput, and how that and round-trip times are correlated.

In a transfer, and beside bursts, part of the queue is ours. Goodput is relative to its highest in the window,
as the rate of the link is not known. Bursts have features of their own for each part of their profile, over
all its repetitions in the window.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mpx.recognition.windows import Floats, sliding_mean, steps_of

Steps = NDArray[np.intp]
SMOOTH = 5  # steps: acknowledgements come in bursts
FULL_S, FULL_OF_BASE = 0.002, 0.05  # of queueing delay: whichever is more


def own_data(x: Floats, level: Floats, base: Floats, goodput_bps: Floats) -> dict[str, Floats]:
    """Return numbers for each window; `x` are round-trip times, `level` the same between 0 and 1."""
    share = _share(goodput_bps)
    under_way = share * x / base[:, None]  # relative to what the empty path holds at that rate
    found = {
        "own mean": share.mean(axis=1),
        "own spread": share.std(axis=1),
        "own pauses": (share < 0.02).mean(axis=1),
        "own under way": under_way.mean(axis=1),
        "own under way spread": under_way.std(axis=1),
    }
    ranked = np.sort(share, axis=1)
    for rank in (0.05, 0.25, 0.5, 0.75):
        found[f"own {rank}"] = ranked[:, int(rank * (ranked.shape[1] - 1))]
    for lag in (1, 3, 5, 10):
        change = share[:, lag:] - share[:, :-lag]
        found[f"own step {lag}"] = np.abs(change).mean(axis=1)
        found[f"own fall {lag}"] = change.min(axis=1)
        found[f"own echo {lag}"] = _together(share[:, lag:], share[:, :-lag])
    for lag in (0, 1, 3, 6, 10):
        end = share.shape[1] - lag
        found[f"own then queue {lag}"] = _together(share[:, :end], level[:, lag:])
        found[f"queue then own {lag}"] = _together(level[:, :end], share[:, lag:])
    return found | _while_queued(x, base, share)


def _while_queued(x: Floats, base: Floats, share: Floats) -> dict[str, Floats]:
    """Return features of our share of the link while it is full: then only other traffic changes it."""
    smooth = sliding_mean(share, SMOOTH)
    queue = sliding_mean(x, SMOOTH) - base[:, None]
    is_full = queue > np.maximum(FULL_S, FULL_OF_BASE * base)[:, None]
    count = is_full.sum(axis=1)
    seen = np.where(is_full, smooth, 0.0)
    mean = seen.sum(axis=1) / np.maximum(count, 1)
    off = np.where(is_full, smooth - mean[:, None], 0.0)
    found = {
        "full": is_full.mean(axis=1),
        "own while full": mean,
        "own while full spread": np.sqrt((off**2).sum(axis=1) / np.maximum(count, 1)),
        "own while full least": np.where(is_full, smooth, 2.0).min(axis=1),
        "own while full most": seen.max(axis=1),
    }
    ranked = np.sort(np.where(is_full, smooth, np.inf), axis=1)
    rows = np.arange(len(x))
    for rank in (0.1, 0.5, 0.9):
        of = ranked[rows, (rank * np.maximum(count - 1, 0)).astype(int)]
        found[f"own while full {rank}"] = np.where(count > 0, of, 0.0)
    return found


def own_bursts(
    x: Floats, level: Floats, base: Floats, goodput_bps: Floats, profile: Sequence[float]
) -> dict[str, Floats]:
    """Return numbers for each part of a profile of bursts (seconds), with which windows begin.

    Raises ValueError where the window is shorter than the profile.
    """
    share = _share(goodput_bps)
    found: dict[str, Floats] = {}
    for number, (steps, ends) in enumerate(parts_of(profile, x.shape[1])):
        queue, own = x[:, steps] / base[:, None] - 1, share[:, steps]
        found |= {
            f"burst {number} queue": queue.mean(axis=1),
            f"burst {number} queue least": queue.min(axis=1),
            f"burst {number} queue most": queue.max(axis=1),
            f"burst {number} queue spread": queue.std(axis=1),
            f"burst {number} level": level[:, steps].mean(axis=1),
            f"burst {number} own": own.mean(axis=1),
            f"burst {number} own end": share[:, ends].mean(axis=1),
            f"burst {number} own spread": own.std(axis=1),
            f"burst {number} together": _together(own, level[:, steps]),
        }
    return found


def parts_of(profile: Sequence[float], steps: int) -> list[tuple[Steps, Steps]]:
    """Return for each part of a profile which steps of a window it fills, and which of them are its ends.

    An end is the last third of each time that the part comes.
    """
    edges = np.cumsum([0, *map(steps_of, profile)])
    if steps < edges[-1]:
        raise ValueError(f"a window of {steps} steps is shorter than its bursts, {edges[-1]} steps")
    place = np.arange(steps) % edges[-1]
    found = []
    for begin, end in pairwise(edges.tolist()):
        is_last = (place >= end - (end - begin) // 3) & (place < end)
        found.append((np.flatnonzero((place >= begin) & (place < end)), np.flatnonzero(is_last)))
    return found


def _share(goodput_bps: Floats) -> Floats:
    """Return goodput relative to the highest of the window, a mean, as acknowledgements come in bursts."""
    most = np.maximum(np.sort(sliding_mean(goodput_bps, 2 * SMOOTH), axis=1)[:, -3], 1.0)
    return np.asarray(goodput_bps / most[:, None])


def _together(a: Floats, b: Floats) -> Floats:
    """Return the correlation of two series, row by row; nearly constant ones have none."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    scale = np.sqrt((a**2).mean(axis=1) * (b**2).mean(axis=1)) + 1e-6
    return np.asarray((a * b).mean(axis=1) / scale)
