"""Network, support vectors and naive Bayes, the other classifiers of OPS, as parts of a model.

As published (Anvari and Lu, Computers 10(6):76, 2021, section 5.4) they are given round trips in
milliseconds, one a second. That is what they get of the paper's probes; of ten probes a second they get
features (features.py), less their mean and over their deviation, which are alike on links that nobody has
measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Protocol

import numpy as np

from mpx.choices import MLP, NAIVE_BAYES, SVM
from mpx.recognition.features import features
from mpx.recognition.mix import UNKNOWN, Mix, likeliest
from mpx.recognition.naive_bayes import NaiveBayes
from mpx.recognition.neighbours import last_window_ms
from mpx.recognition.network import Network
from mpx.recognition.novelty import Places
from mpx.recognition.observation import PASSIVE, TRAINS
from mpx.recognition.support_vectors import SupportVectors
from mpx.recognition.windows import Floats, last_window, steps_of
from mpx.rtt.series import Probe

NOVELTY = 0.95  # a window farther from all mixes than that share of windows of unseen links is unknown


class Estimator(Protocol):
    """What gives each of MIXES a score, in their order."""

    DIMENSIONS: ClassVar[Mapping[str, int]]  # of its arrays, by name

    @property
    def inputs(self) -> int:
        """How many numbers a row has."""
        ...

    @property
    def classes(self) -> int:
        """How many classes there are."""
        ...

    def scores(self, row: Floats) -> Floats:
        """Return a score of each class; above that of another it is likelier."""
        ...


ESTIMATORS: Mapping[str, type[Network | SupportVectors | NaiveBayes]] = MappingProxyType(
    {MLP: Network, SVM: SupportVectors, NAIVE_BAYES: NaiveBayes}
)


@dataclass(frozen=True)
class Scale:
    """What makes numbers of a row alike in size. Raises ValueError for arrays that do not fit."""

    mean: Floats
    deviation: Floats

    def __post_init__(self) -> None:
        if self.mean.shape != self.deviation.shape or np.any(self.deviation <= 0):
            raise ValueError("a deviation is missing, or not above zero")

    def scaled(self, rows: Floats) -> Floats:
        """Return rows less the mean, over the deviation."""
        return np.asarray((rows - self.mean) / self.deviation)


@dataclass(frozen=True)
class EstimatorPart:
    """A part of a model (passive_model.py): an estimator, and what its scores are worth on unseen links."""

    way: str  # of WAYS
    window_s: float
    scale: Scale
    estimator: Estimator
    temperature: float  # probabilities are the softmax of scores over this
    places: Places  # of the mixes among rows that are not scaled
    farthest: float  # the distance from them that NOVELTY of the windows of unseen links do not exceed

    def classify(self, series: Sequence[Probe], base_s: float) -> Mix | None:
        """Return the mix by the end of a series; None if it is too short, or most of it was lost."""
        row = self._row(series, base_s)
        if row is None:
            return None
        scores = self.estimator.scores(self.scale.scaled(row))
        probabilities = softmax(scores[None], self.temperature)[0].tolist()
        if self.places.distances(row[None])[0] > self.farthest:
            return Mix(UNKNOWN, NOVELTY, probabilities)
        return likeliest(probabilities)

    def _row(self, series: Sequence[Probe], base_s: float) -> Floats | None:
        if self.way == TRAINS:
            return last_window_ms(series, round(self.window_s))
        window = last_window(series, base_s, steps_of(self.window_s))
        return None if window is None else features(window, PASSIVE)[0]


def softmax(scores: Floats, temperature: float) -> Floats:
    """Return probabilities, rows that sum to 1, from rows of scores."""
    odds = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
