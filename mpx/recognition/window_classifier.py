"""One part of a model: classifies one window (model.py chooses the part)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpx.recognition.features import features
from mpx.recognition.mix import GROUP_OF, MIXES, NOBODY
from mpx.recognition.novelty import Places, RanksByLikeliest
from mpx.recognition.observation import PASSIVE
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.recognition.trees import Trees
from mpx.recognition.windows import (
    Floats,
    ProbeWindows,
    bridged,
    enough,
    rates_on_grid,
    responses_on_grid,
    steps_of,
    the_end,
)
from mpx.rtt.series import Probe

FALSE_ALARMS = 0.05  # share of known windows that may be called unknown ...
IDLE_ALARMS = 0.01  # ... and of idle ones: the noise of hosts is more various than what was recorded
LEAST_SHARE = 0.001  # no mix is impossible


def alarms(likeliest: str) -> float:
    """Return which share of the windows with that mix as the likeliest may be called unknown."""
    return IDLE_ALARMS if GROUP_OF[likeliest] == NOBODY else FALSE_ALARMS


@dataclass(frozen=True)
class Judgement:
    """The classification of one window."""

    probabilities: Sequence[float]  # of MIXES
    novelty: float  # the share of known windows with less novelty

    @property
    def is_novel(self) -> bool:
        """Whether it is unlike all training data."""
        return self.novelty > 1 - alarms(MIXES[int(np.argmax(self.probabilities))])


@dataclass(frozen=True)
class WindowClassifier:
    """Trees over the features of windows of one length, and what makes their shares probabilities.

    The classes of the trees are MIXES, in their order, and one more for traffic that is none of them.
    """

    kind: str  # of KINDS
    window_s: float
    trees: Trees
    temperature: float  # above 1: the probabilities of the trees are too extreme
    places: Places
    ranks: RanksByLikeliest

    def judge(
        self,
        series: Sequence[Probe],
        base_s: float,
        goodput: Sequence[tuple[float, float]] = (),
        streams: int = 1,
        responses: Sequence[QueueResponse] = (),
    ) -> Judgement | None:
        """Classify the end of a series; None if it is too short or most of it was lost."""
        steps = steps_of(self.window_s)
        grid = the_end(series, steps)
        if grid is None or not enough(grid.rtt_s[None])[0]:
            return None
        rtt_s = bridged(grid.rtt_s[None])
        own = None if self.kind == PASSIVE else rates_on_grid(goodput, grid.from_s, steps)[None]
        base = np.array([min(base_s, float(np.min(rtt_s)))])
        shares, kept = responses_on_grid(responses, grid.from_s, steps)
        windows = ProbeWindows(
            rtt_s, grid.lost[None], base, own, np.array([float(streams)]), shares[None], kept[None]
        )
        row = features(windows, self.kind)[0]
        votes = self.trees.shares(row)
        probabilities = tempered(votes[None, : len(MIXES)], self.temperature)[0]
        distance = float(self.places.distances(row[None])[0])
        ranks = self.ranks.of(MIXES[int(np.argmax(probabilities))])
        return Judgement(probabilities.tolist(), ranks.novelty(distance, float(votes[-1])))


def tempered(shares: Floats, temperature: float) -> Floats:
    """Return probabilities of the mixes, rows that sum to 1, from the shares that trees give them."""
    logs = np.log(shares + LEAST_SHARE) / temperature
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
