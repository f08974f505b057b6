"""Nearest neighbours in dynamic time warping as a model: known windows, and what their votes are worth.

The classifier of OPS (Anvari and Lu, Computers 10(6):76, 2021, section 5.4). On its own probes, one sample a
second, round trips are compared as they are, as published; on ten probes a second their shape is, as that is
alike on links that nobody has measured. numpy is imported only where a model is loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpx.errors import UsageError
from mpx.recognition.dtw import nearest
from mpx.recognition.mix import MIXES, UNKNOWN, Mix, groups_of, likeliest
from mpx.recognition.neighbours import last_window_ms
from mpx.recognition.observation import LEAST_SWING_S, PASSIVE, TRAINS, Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.recognition.windows import Floats, bridged, enough, steps_of, the_end
from mpx.rtt.series import Probe

WAYS = (PASSIVE, TRAINS)
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
    """Known windows of one way of probing."""

    way: str  # of WAYS
    window_s: float
    known: Singles  # a row of samples for each
    mixes: NDArray[np.int64]  # the number in MIXES of each
    k: int
    doubt: float  # votes that each mix has in advance, so that shares are probabilities on unseen links
    farthest: float  # the distance to the nearest that NOVELTY of the windows of unseen links do not exceed

    def judge(self, samples: Floats) -> Mix:
        """Return the mix of a window."""
        found, distances = nearest(samples.astype(self.known.dtype), self.known, RADIUS, self.k)
        votes = np.bincount(self.mixes[found], minlength=len(MIXES))
        probabilities = (votes + self.doubt) / (self.k + len(MIXES) * self.doubt)
        if distances[0] > self.farthest:
            return Mix(UNKNOWN, NOVELTY, groups_of(probabilities.tolist()))
        return likeliest(probabilities.tolist())

    def samples(self, series: Sequence[Probe], base_s: float) -> Floats | None:
        """Return the end of a series as it is compared; None if it is too short, or most of it was lost."""
        if self.way == TRAINS:
            return last_window_ms(series, round(self.window_s))
        grid = the_end(series, steps_of(self.window_s))
        if grid is None or not enough(grid.rtt_s[None])[0]:
            return None
        rtt_s = bridged(grid.rtt_s[None])
        return np.asarray(shapes(rtt_s, np.array([min(base_s, float(np.min(rtt_s)))]))[0])


@dataclass(frozen=True)
class TemplateModel:
    """See Classifier: templates by the way of probing, and the model's card."""

    parts: Mapping[str, Templates]
    card: Mapping[str, Any]

    def window_s(self, kind: str = PASSIVE) -> float:
        """Return how long a series has to be at least; raises UsageError for what it does not know."""
        return self._part(kind).window_s

    def classify(
        self,
        series: Sequence[Probe],
        base_s: float,
        goodput: Sequence[tuple[float, float]] | None = None,
        *,
        kind: str = PASSIVE,
        own: Own | None = None,
        responses: Sequence[QueueResponse] = (),  # noqa: ARG002 these come with data of our own
    ) -> Mix:
        """Return the mix by the end of a series; see Model.classify.

        Raises UsageError where our own data flowed: beside them nearest neighbours do little better than
        guessing (docs/recognition.md).
        """
        if own is not None or goodput is not None:
            raise UsageError("nearest neighbours cannot classify a path that carries data of our own")
        part = self._part(kind)
        samples = part.samples(series, base_s)
        if samples is None:
            return Mix(UNKNOWN, 1.0, groups_of([1 / len(MIXES)] * len(MIXES)))
        return part.judge(samples)

    def _part(self, kind: str) -> Templates:
        if kind not in self.parts:
            have = ", ".join(self.parts)
            raise UsageError(f"this model knows {have} probes, and cannot classify '{kind}' ones")
        return self.parts[kind]
