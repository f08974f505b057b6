"""How many streams each path has: what the tuners decide, carried out."""

from collections.abc import Collection, Mapping, Sequence

from mpx.engine.carrier import Carrier
from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.tuner import Decision, Sample, Tuner


class StreamTuning:
    """Has the carrier do what the tuners decide. Used by the control loop's thread.

    `tuners`: each for the paths of one group; none where the numbers are fixed.
    """

    def __init__(
        self,
        carrier: Carrier,
        gate: ChunkGate,
        tuners: Mapping[tuple[str, ...], Tuner],
        *,
        first: Sequence[Decision],
    ) -> None:
        """`first`: what paths begin with that no tuner decides on."""
        self._carrier, self._gate, self._tuners = carrier, gate, tuners
        self._first = {decision.path: decision for decision in first}

    def begin(self, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        """Set the numbers to begin with; a tuner has its own first word."""
        beginning = dict(self._first)
        for paths, tuner in self._tuners.items():
            first = tuner.observe(0.0, {path: samples[path] for path in paths})
            beginning |= {decision.path: decision for decision in first}
        for decision in beginning.values():
            self._act(decision)
        return list(beginning.values())

    def observe(
        self, now_s: float, samples: Mapping[str, Sample], lost: Collection[str] = ()
    ) -> Sequence[Decision]:
        """Ask the tuners, and act; return what they have decided.

        The streams of `lost` paths take others for now: what these carry says nothing of the paths.
        """
        decisions: list[Decision] = []
        for paths, tuner in self._tuners.items():
            measured = {path: samples[path] for path in paths if path not in lost}
            decided = tuner.observe(now_s, measured) if measured else ()
            for decision in decided:
                self._act(decision)
            decisions += decided
        return decisions

    def disturbed(self, now_s: float) -> None:
        """Tell the tuners that what is measured now is not what was; see Tuner."""
        for tuner in self._tuners.values():
            tuner.disturbed(now_s)

    @property
    def is_chunked(self) -> bool:
        """Whether a tuner lets one chunk through at a time, so that it has to be asked to the end."""
        return self._gate.is_used

    def _act(self, decision: Decision) -> None:
        if decision.barrier:
            self._carrier.renew_streams()
        self._carrier.set_streams(decision.path, decision.streams)
        self._gate.open(decision.chunk_bytes if decision.barrier else None)
