"""The contract of a classifier of the background."""

from collections.abc import Sequence
from typing import Protocol

from mpx.recognition.mix import Mix
from mpx.recognition.observation import PASSIVE, Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe


class Classifier(Protocol):
    """Classifies the background by the end of a series of round-trip times."""

    @property
    def name(self) -> str:
        """Which one it is, of choices.TRAINABLE."""
        ...

    def window_s(self, kind: str = PASSIVE) -> float:
        """Return how long a series has to be at least (seconds)."""
        ...

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
        """Return the mix by the end of a series; see Model.classify."""
        ...
