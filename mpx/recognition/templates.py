"""Nearest neighbours in dynamic time warping as a model: known windows, and what their votes are worth.

The classifier of OPS (Anvari and Lu, Computers 10(6):76, 2021, section 5.4). On its own probes, one sample a
second, round trips are compared as they are, as published; on ten probes a second their shape is, as that is
alike on links that nobody has measured. numpy is imported only where a model is loaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpx.recognition.dtw import nearest
from mpx.recognition.mix import MIXES, UNKNOWN, Mix, likeliest
from mpx.recognition.neighbours import last_window_ms
from mpx.recognition.observation import LEAST_SWING_S, TRAINS
from mpx.recognition.windows import Floats, last_window, steps_of
from mpx.rtt.series import Probe

Singles = NDArray[np.float32]
RADIUS = 10  # samples, of the Sakoe-Chiba band, as in the paper
STEPS_EACH = 2  # steps of 0.1 s in a sample of the shape: half as many cost a quarter, and tell as much
LEAST_SWING = 0.05  # of the base: less is noise, and not stretched to a shape
NOVELTY = 0.95  # a window farther from all known ones than that share of windows of unseen links is unknown


def shapes(rtt_s: Floats, base_s: Floats) -> Floats:
    """Return windows of round trips (rows) as shapes: from 0 to about 1, five samples a second."""
    relative, noise = rtt_s / base_s[:, None] - 1, np.maximum(LEAST_SWING, LEAST_SWING_S / base_s)
    lowest, highest = relative.min(axis=1, keepdims=True), relative.max(axis=1, keepdims=True)
    shape = (relative - lowest) / (highest + noise[:, None])
    return np.asarray(shape.reshape(len(shape), -1, STEPS_EACH).mean(axis=2))


@dataclass(frozen=True)
class Templates:
    """A part of a model (passive_model.py): known windows of one way of probing."""

    way: str  # of WAYS
    window_s: float
    known: Singles  # a row of samples for each
    mixes: NDArray[np.int64]  # the number in MIXES of each
    k: int
    doubt: float  # votes that each mix has in advance, so that shares are probabilities on unseen links
    farthest: float  # the distance to the nearest that NOVELTY of the windows of unseen links do not exceed

    def classify(self, series: Sequence[Probe], base_s: float) -> Mix | None:
        """Return the mix by the end of a series; None if it is too short, or most of it was lost."""
        samples = self._samples(series, base_s)
        return None if samples is None else self._mix(samples)

    def _mix(self, samples: Floats) -> Mix:
        found, distances = nearest(samples.astype(self.known.dtype), self.known, RADIUS, self.k)
        votes = np.bincount(self.mixes[found], minlength=len(MIXES))
        probabilities = (votes + self.doubt) / (self.k + len(MIXES) * self.doubt)
        if distances[0] > self.farthest:
            return Mix(UNKNOWN, NOVELTY, probabilities.tolist())
        return likeliest(probabilities.tolist())

    def _samples(self, series: Sequence[Probe], base_s: float) -> Floats | None:
        """Return the end of a series as it is compared, None as above."""
        if self.way == TRAINS:
            return last_window_ms(series, round(self.window_s))
        windows = last_window(series, base_s, steps_of(self.window_s))
        return None if windows is None else shapes(windows.rtt_s, windows.base_s)[0]
