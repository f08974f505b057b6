"""A model that knows paths without data of our own: a part for each way of probing, and its card.

Nearest neighbours (templates.py) are such a model, and the other classifiers of OPS are (estimator.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mpx.errors import UsageError
from mpx.recognition.mix import NO_IDEA, UNKNOWN, Mix
from mpx.recognition.observation import LEAST_SWING_S, PASSIVE, Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe


class PassivePart(Protocol):
    """What classifies windows of one way of probing."""

    @property
    def way(self) -> str:
        """How it probes, of WAYS."""
        ...

    @property
    def window_s(self) -> float:
        """How long a window is (seconds)."""
        ...

    def classify(self, series: Sequence[Probe], base_s: float) -> Mix | None:
        """Return the mix by the end of a series; None if it is too short, or most of it was lost."""
        ...


@dataclass(frozen=True)
class PassiveModel:
    """See Classifier."""

    name: str  # of choices.TRAINABLE
    parts: Mapping[str, PassivePart]  # by way
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

        Raises UsageError where our own data flowed: beside them it is not trained (docs/recognition.md).
        """
        if own is not None or goodput is not None:
            raise UsageError(f"{self.name} cannot classify a path that carries data of our own")
        is_too_short = base_s < LEAST_SWING_S  # for anything but noise to show
        mix = None if is_too_short else self._part(kind).classify(series, base_s)
        return Mix(UNKNOWN, 1.0, NO_IDEA) if mix is None else mix

    def _part(self, kind: str) -> PassivePart:
        if kind not in self.parts:
            have = ", ".join(self.parts)
            raise UsageError(f"this model ({self.name}) knows {have} probes only, not '{kind}' ones")
        return self.parts[kind]
