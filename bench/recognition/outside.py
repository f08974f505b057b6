"""Traffic that is none of the mixes: how much of it is said to be unknown when 5 % of the known may be.

Judged on unseen links twice: with traffic of the same kind from other links among what was learnt from, and
without it, as something that nobody has thought of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from mpx_train.cut import Grid
from mpx_train.learn import DEFAULT, Kind, Settings, out_of_fold, ranks
from mpx_train.unknown import LIKE, alarms, said_to_be_unknown

from recognition.row import SEED


@dataclass(frozen=True)
class Rejection:
    """Shares of windows that are said to be unknown."""

    alarms: float  # of the known ones
    by_kind: Mapping[str, float]  # of each kind of other traffic, or what also counts as right

    @property
    def mean(self) -> float:
        """Of all kinds, each counted alike."""
        return float(np.mean(list(self.by_kind.values())))


def rejection(
    known: Sequence[Grid], outside: Sequence[Grid], kind: Kind, by: Settings = DEFAULT
) -> Rejection:
    """Return what is rejected, with all kinds of outside traffic learnt from other links."""
    learnt = [grid for grid in outside if grid.example.mix not in LIKE]
    others = [grid for grid in outside if grid.example.mix in LIKE]
    judged = out_of_fold(known, learnt, kind, SEED, by, only_judged=others)
    limit = ranks(judged)
    return Rejection(alarms(judged, limit), said_to_be_unknown(judged, limit))


def never_seen(
    known: Sequence[Grid], outside: Sequence[Grid], kind: Kind, by: Settings = DEFAULT
) -> Rejection:
    """Return the same, each kind judged by what has never seen it."""
    found, raised = {}, []
    for name in sorted({grid.example.mix for grid in outside}):
        others = [grid for grid in outside if grid.example.mix not in (name, *LIKE)]
        mine = [grid for grid in outside if grid.example.mix == name]
        judged = out_of_fold(known, others, kind, SEED, by, only_judged=mine)
        limit = ranks(judged)
        found[name] = said_to_be_unknown(judged, limit)[name]
        raised.append(alarms(judged, limit))
    return Rejection(float(np.mean(raised)), found)


def rejection_lines(seen: Rejection, unseen: Rejection) -> list[str]:
    """Return a table of both."""
    lines = ["| traffic | said to be unknown | never seen in training |", "|---|---|---|"]
    lines += [
        f"| {name} | {share:.2f} | {unseen.by_kind[name]:.2f} |" for name, share in seen.by_kind.items()
    ]
    lines.append(f"| mean of kinds | {seen.mean:.2f} | {unseen.mean:.2f} |")
    lines.append(f"| known mixes (false alarms) | {seen.alarms:.3f} | {unseen.alarms:.3f} |")
    return lines
