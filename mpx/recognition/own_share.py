"""Features from rate pulses (pulse.py): our share of the link, and so that of other traffic."""

import numpy as np
from numpy.typing import NDArray

from mpx.recognition.own_data import FULL_OF_BASE, FULL_S, SMOOTH
from mpx.recognition.windows import Floats, sliding_mean

LEAST_SHARE, MOST_SHARE = 0.02, 1.5  # limits of the response to a pulse: other traffic changes meanwhile
RANKS = (0.1, 0.25, 0.5, 0.75, 0.9)
FEWEST = 2  # pulses with a response


def own_share(
    x: Floats, base: Floats, goodput_bps: Floats, streams: Floats, shares: Floats, kept: Floats
) -> dict[str, Floats]:
    """Return numbers for each window.

    `x` are round-trip times; `shares` and `kept` are as long, NaN where no pulse ended; `streams` is one
    for each window. With fewer than two responses most features are zero.
    """
    count = (~np.isnan(shares)).sum(axis=1)
    found = {"dips": count.astype(float)}
    for name, each in (("dip", shares), ("kept", kept), ("dip and kept", (shares + kept) / 2)):
        ranked = np.sort(np.clip(each, -MOST_SHARE, MOST_SHARE), axis=1)  # NaN comes last
        for rank in RANKS:
            found[f"{name} {rank}"] = _rank(ranked, count, rank)
        found[f"{name} spread"] = found[f"{name} 0.75"] - found[f"{name} 0.25"]
    middle = found["dip and kept 0.5"]
    for others in (1, 2):  # 1 if all streams have equal shares
        found[f"dip beside {others}"] = middle * (streams + others) / streams
    smooth = sliding_mean(goodput_bps, SMOOTH)
    queue = sliding_mean(x, SMOOTH) - base[:, None]
    is_full = queue > np.maximum(FULL_S, FULL_OF_BASE * base)[:, None]
    full = is_full.sum(axis=1)
    usual_bps = _rank(np.sort(np.where(is_full, smooth, np.inf), axis=1), full, 0.5)
    link_bps = usual_bps / np.maximum(middle, LEAST_SHARE)
    ours = smooth / np.maximum(link_bps, 1.0)[:, None]
    ordered = np.sort(np.where(is_full, ours, np.inf), axis=1)
    for rank in RANKS:
        found[f"ours while full {rank}"] = _rank(ordered, full, rank)
    found["others while full spread"] = found["ours while full 0.9"] - found["ours while full 0.1"]
    found["ours while not full"] = _mean(ours, ~is_full)
    is_known = (count >= FEWEST) & (full > 0)
    return {
        name: value if name == "dips" else np.where(is_known, value, 0.0) for name, value in found.items()
    }


def _rank(ordered: Floats, count: NDArray[np.intp], rank: float) -> Floats:
    """Return a quantile of the first `count` numbers of each row, 0 where there are none."""
    at = (rank * np.maximum(count - 1, 0)).astype(int)
    return np.where(count > 0, ordered[np.arange(len(ordered)), at], 0.0)


def _mean(of: Floats, where: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.where(where, of, 0.0).sum(axis=1) / np.maximum(where.sum(axis=1), 1))
