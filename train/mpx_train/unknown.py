"""How often windows are said to be unknown: known ones (false alarms), and what is none of the mixes."""

import numpy as np
from numpy.typing import NDArray

from mpx.mix import MIXES
from mpx.ops_part import FALSE_ALARMS
from mpx.ops_strange import Ranks
from mpx_train.learn import Judged

# Reno is a forebear of CUBIC and as polite, so it is right as CUBIC too; it is not learnt as outside.
LIKE = {"reno": ("C",), "reno reno": ("C", "CC")}


def is_strange(judged: Judged, by: Ranks) -> NDArray[np.bool_]:
    """Return for each window whether it is said to be unknown."""
    ranks = [
        by.less_strange(float(distance), float(shares[-1]))
        for distance, shares in zip(judged.distances, judged.shares, strict=True)
    ]
    return np.array(ranks) > 1 - FALSE_ALARMS


def alarms(judged: Judged, by: Ranks) -> float:
    """Return the share of known windows that are said to be unknown."""
    return float(is_strange(judged, by)[np.isin(judged.windows.mix, MIXES)].mean())


def said_to_be_unknown(judged: Judged, by: Ranks) -> dict[str, float]:
    """Return the share of each kind of outside traffic that is unknown, or what also counts as right."""
    strange = is_strange(judged, by)
    best = np.array(MIXES)[judged.shares[:, : len(MIXES)].argmax(axis=1)]
    found = {}
    for name in sorted(set(judged.windows.mix.tolist()) - set(MIXES)):
        rows = judged.windows.mix == name
        right = strange[rows] | np.isin(best[rows], LIKE.get(name, ()))
        found[name] = float(right.mean())
    return found
