"""The model that classifies the background of a series of round-trip times (OPS, see mix.py).

A model is data (model_file.py), with parts for each kind of observation (observation.py). numpy is imported
only where a model is loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpx.choices import TREES
from mpx.errors import UsageError
from mpx.recognition.mix import NO_IDEA, UNKNOWN, Mix, likeliest
from mpx.recognition.observation import PASSIVE, Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe

if TYPE_CHECKING:
    from mpx.recognition.window_classifier import WindowClassifier


@dataclass(frozen=True)
class Model:
    """Parts by the kind of observation, the one with the shortest window first, and the model's card."""

    parts: Mapping[str, Sequence["WindowClassifier"]]
    card: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Which classifier it is."""
        return TREES

    def window_s(self, kind: str = PASSIVE) -> float:
        """Return how long a series has to be at least; raises UsageError for what the model cannot do."""
        return self._parts(kind)[0].window_s

    def classify(
        self,
        series: Sequence[Probe],
        base_s: float,
        goodput: Sequence[tuple[float, float]] | None = None,
        *,
        kind: str = PASSIVE,
        own: Own | None = None,
        responses: Sequence[QueueResponse] = (),
    ) -> Mix:
        """Return the mix by the end of a series of ten probes a second, or `unknown`.

        `base_s` is the shortest round-trip time of the path so far. Probes that may still be answered are to
        be left out. Beside bursts, `kind` is theirs; in a transfer `own` describes our streams. Both need the
        `goodput` of our own data: (time, bit/s), on the clock of the probes, a time being the end of the 0.1
        s in which that was acknowledged. `responses` are those to rate pulses, on that clock as well. The
        longest window that the series fills is used. A series that is too short, or where most probes were
        lost, is unknown. Raises UsageError for a kind that the model has no part for, and where the goodput,
        or what it belongs to, is missing.
        """
        kind = own.kind if own else kind
        parts = self._parts(kind)
        if (kind == PASSIVE) != (goodput is None):
            wrong = "is for a path without data of our own" if kind == PASSIVE else "needs its goodput"
            raise UsageError(f"'{kind}' probing {wrong}; give `kind` or `own`, and `goodput`")
        streams = own.streams if own else 1
        each = (part.judge(series, base_s, goodput or (), streams, responses) for part in reversed(parts))
        judged = next((found for found in each if found is not None), None)
        if judged is None:
            return Mix(UNKNOWN, 1.0, NO_IDEA)
        if judged.is_novel:
            return Mix(UNKNOWN, judged.novelty, judged.probabilities)
        return likeliest(judged.probabilities)

    def _parts(self, kind: str) -> Sequence["WindowClassifier"]:
        if kind not in self.parts:
            have = ", ".join(self.parts)
            raise UsageError(f"this model cannot classify the background by '{kind}' probing, only by {have}")
        return self.parts[kind]
