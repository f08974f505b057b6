"""What a model says of windows of unseen links, with cross-fitted calibration.

Temperature and ranks are learnt from windows that the trees have not seen; a window must not be among those
that calibrate what is said of it either, or false alarms are what they may be by construction. So each fold
of links is judged by the calibration of all other folds.
"""

from dataclasses import dataclass

import numpy as np

from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.recognition.neighbours import Texts
from mpx.recognition.window_classifier import alarms, tempered
from mpx.recognition.windows import Booleans, Floats
from mpx_train.calibrate import calibrated
from mpx_train.learn import Judged


@dataclass(frozen=True)
class Heard:
    """What was said of windows: a row or an entry for each."""

    judged: Judged
    probabilities: Floats  # of MIXES
    is_novel: Booleans  # said to be unknown

    @property
    def likeliest(self) -> Texts:
        """The mix that was named, or would have been."""
        return np.asarray(np.array(MIXES)[self.probabilities.argmax(axis=1)])

    @property
    def said(self) -> Texts:
        """The mix that was named, or `unknown`."""
        return np.where(self.is_novel, UNKNOWN, self.likeliest)

    def where(self, rows: Booleans) -> "Heard":
        """Return some of them."""
        return Heard(self.judged.where(rows), self.probabilities[rows], self.is_novel[rows])


def heard(judged: Judged) -> Heard:
    """Return what would have been said; raises ValueError where there is one fold only."""
    folds = np.unique(judged.fold)
    if len(folds) < 2:
        raise ValueError("calibration needs at least one other fold than the one that is judged")
    probabilities = np.empty((len(judged.fold), len(MIXES)))
    novelty = np.empty(len(judged.fold))
    for fold in folds:
        here = judged.fold == fold
        other = judged.where(~here & judged.is_known)
        temperature, ranks = calibrated(other.shares, other.distances, other.mix, other.windows.is_noisy)
        of_mixes = judged.shares[here, : len(MIXES)]
        probabilities[here] = tempered(of_mixes, temperature)
        novelty[here] = [
            ranks.of(MIXES[likeliest]).novelty(float(distance), float(outside))
            for likeliest, distance, outside in zip(
                of_mixes.argmax(axis=1), judged.distances[here], judged.shares[here, -1], strict=True
            )
        ]
    allowed = np.array([alarms(mix) for mix in MIXES])[probabilities.argmax(axis=1)]
    return Heard(judged, probabilities, novelty > 1 - allowed)
