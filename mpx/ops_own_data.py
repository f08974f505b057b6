"""What our own data tells beside the round-trip times: how much of it arrived, and how both went together.

In a transfer, and while bursts probe, part of the queue is ours. Goodput is taken relative to its highest of
the window, as nobody knows the rate of the link. The paper's bursts (CUBIC, BBR, CUBIC, nothing) fill a
quarter of their window each, so each quarter has numbers of its own.
"""

import numpy as np

from mpx.ops_windows import Floats

QUARTERS = 4


def own_data(x: Floats, level: Floats, base: Floats, goodput_bps: Floats) -> dict[str, Floats]:
    """Return numbers for each window; `x` are round-trip times, `level` the same between 0 and 1."""
    ordered = np.sort(goodput_bps, axis=1)
    most = np.maximum(ordered[:, int(0.98 * (ordered.shape[1] - 1))], 1.0)
    share = goodput_bps / most[:, None]
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
    width = share.shape[1] // QUARTERS
    for quarter in range(QUARTERS):
        part = slice(quarter * width, (quarter + 1) * width)
        queue, own = x[:, part] / base[:, None] - 1, share[:, part]
        found |= {
            f"quarter {quarter} queue": queue.mean(axis=1),
            f"quarter {quarter} queue least": queue.min(axis=1),
            f"quarter {quarter} queue most": queue.max(axis=1),
            f"quarter {quarter} queue spread": queue.std(axis=1),
            f"quarter {quarter} level": level[:, part].mean(axis=1),
            f"quarter {quarter} own": own.mean(axis=1),
            f"quarter {quarter} own end": own[:, -(width // 3) :].mean(axis=1),
            f"quarter {quarter} own spread": own.std(axis=1),
            f"quarter {quarter} together": _together(own, level[:, part]),
        }
    return found


def _together(a: Floats, b: Floats) -> Floats:
    """Return the correlation of two series, row by row; nearly constant ones have none."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    scale = np.sqrt((a**2).mean(axis=1) * (b**2).mean(axis=1)) + 1e-6
    return np.asarray((a * b).mean(axis=1) / scale)
