"""One part of a model: what it says of one window (model.py chooses the part and puts it into words)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpx.recognition.features import features
from mpx.recognition.mix import MIXES
from mpx.recognition.novelty import Places, Ranks
from mpx.recognition.observation import PASSIVE
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.recognition.trees import Trees
from mpx.recognition.windows import (
    Floats,
    Windows,
    bridged,
    enough,
    falls_on_grid,
    rates_on_grid,
    steps_of,
    the_end,
)
from mpx.rtt.series import Probe

FALSE_ALARMS = 0.05  # so many of the known windows may be said to be unknown
LEAST_SHARE = 0.001  # no mix is thought to be impossible


@dataclass(frozen=True)
class Said:
    """What one window tells."""

    probabilities: Sequence[float]  # of MIXES
    less_strange: float  # the share of known windows that are less strange

    @property
    def is_strange(self) -> bool:
        """Whether it is like nothing that was seen in training."""
        return self.less_strange > 1 - FALSE_ALARMS


@dataclass(frozen=True)
class WindowClassifier:
    """Trees over the features of windows of one length, and what makes their shares probabilities.

    The classes of the trees are MIXES, in their order, and one more for traffic that is none of them.
    """

    kind: str  # of KINDS
    window_s: float
    trees: Trees
    temperature: float  # above 1: the trees are surer than they may be
    places: Places
    ranks: Ranks

    def judge(
        self,
        series: Sequence[Probe],
        base_s: float,
        goodput: Sequence[tuple[float, float]] = (),
        streams: int = 1,
        falls: Sequence[QueueResponse] = (),
    ) -> Said | None:
        """Return what the end of a series tells; None if it is too short or most of it was lost."""
        steps = steps_of(self.window_s)
        grid = the_end(series, steps)
        if grid is None or not enough(grid.rtt_s[None])[0]:
            return None
        rtt_s = bridged(grid.rtt_s[None])
        own = None if self.kind == PASSIVE else rates_on_grid(goodput, grid.from_s, steps)[None]
        base = np.array([min(base_s, float(np.min(rtt_s)))])
        shares, kept = falls_on_grid(falls, grid.from_s, steps)
        windows = Windows(
            rtt_s, grid.lost[None], base, own, np.array([float(streams)]), shares[None], kept[None]
        )
        row = features(windows, self.kind)[0]
        votes = self.trees.shares(row)
        probabilities = tempered(votes[None, : len(MIXES)], self.temperature)[0]
        distance = float(self.places.distances(row[None])[0])
        return Said(probabilities.tolist(), self.ranks.less_strange(distance, float(votes[-1])))


def tempered(shares: Floats, temperature: float) -> Floats:
    """Return probabilities of the mixes, rows that sum to 1, from the shares that trees give them."""
    logs = np.log(shares + LEAST_SHARE) / temperature
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
