"""Traffic that is none of the mixes: how much of it is said to be unknown, and how many known ones are.

Judged on unseen links twice: with traffic of the same kind from other links in the training data, and without
it, as traffic of an unforeseen kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from mpx_train.crossfit import heard
from mpx_train.cut import Gridded
from mpx_train.learn import DEFAULT, Judged, Kind, Settings, out_of_fold
from mpx_train.unknown import LIKE, Alarms, alarms, said_to_be_unknown

from recognition.row import SEED


@dataclass(frozen=True)
class Rejection:
    """Shares of windows that are said to be unknown."""

    alarms: Alarms  # of the known ones
    by_kind: Mapping[str, float]  # of each kind of other traffic, or what also counts as right

    @property
    def mean(self) -> float:
        """Of all kinds, each counted alike."""
        return float(np.mean(list(self.by_kind.values())))


def rejection(judged: Judged) -> Rejection:
    """Return what is rejected, of what was judged with outside traffic of other links learnt."""
    said = heard(judged)
    return Rejection(alarms(said), said_to_be_unknown(said))


def never_seen(
    known: Sequence[Gridded], outside: Sequence[Gridded], kind: Kind, by: Settings = DEFAULT
) -> Mapping[str, float]:
    """Return the share of each kind that is rejected by a model trained without that kind."""
    found = {}
    for name in sorted({grid.example.mix for grid in outside}):
        others = [grid for grid in outside if grid.example.mix not in (name, *LIKE)]
        mine = [grid for grid in outside if grid.example.mix == name]
        judged = out_of_fold(known, others, kind, SEED, by, only_judged=mine)
        found[name] = said_to_be_unknown(heard(judged))[name]
    return found


def rejection_lines(seen: Rejection, unseen: Mapping[str, float]) -> list[str]:
    """Return a table of both."""
    lines = ["| traffic | said to be unknown | never seen in training |", "|---|---|---|"]
    lines += [f"| {name} | {share:.2f} | {unseen[name]:.2f} |" for name, share in seen.by_kind.items()]
    lines.append(f"| mean of kinds | {seen.mean:.2f} | {np.mean(list(unseen.values())):.2f} |")
    lines.append(f"| known mixes (false alarms) | {seen.alarms} | |")
    return lines
