"""How many streams each path has: what the tuners decide, carried out."""

from collections.abc import Collection, Mapping, Sequence

from mpx.engine.carrier import Carrier
from mpx.engine.path_control import PathControl
from mpx.engine.tuner import Decision, Sample, Tuner


class StreamTuning:
    """Has the carrier do what the tuners decide. Used by the control loop's thread.

    `tuners`: each for the paths of one group; none where the numbers are fixed.
    """

    def __init__(
        self,
        carrier: Carrier,
        controls: Mapping[str, PathControl],
        tuners: Mapping[tuple[str, ...], Tuner],
        *,
        first: Sequence[Decision],
    ) -> None:
        """`first`: what paths begin with that no tuner decides on."""
        self._carrier, self._controls, self._tuners = carrier, controls, tuners
        self._first = {decision.path: decision for decision in first}
        self._wanted: dict[str, int] = {}

    def begin(self, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        """Set the numbers to begin with; a tuner has its own first word."""
        beginning = dict(self._first)
        for paths, tuner in self._tuners.items():
            first = tuner.observe(0.0, {path: samples[path] for path in paths})
            beginning |= {decision.path: decision for decision in first}
        for decision in beginning.values():
            self._wanted[decision.path] = decision.streams
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
                # To ask for as many as are open closes none: it only gives up those that do not come.
                if decision.streams != samples[decision.path].streams:
                    self._wanted[decision.path] = decision.streams
                self._act(decision)
            decisions += decided
        return decisions

    def disturbed(self, now_s: float, path: str | None = None) -> None:
        """Tell the tuner of a path, or all, that what is measured now is not what was; see Tuner."""
        for paths, tuner in self._tuners.items():
            if path is None or path in paths:
                tuner.disturbed(now_s)

    @property
    def is_chunked(self) -> bool:
        """Whether a tuner lets one chunk through at a time, so that it has to be asked to the end."""
        return any(control.gate.is_used for control in self._controls.values())

    def wanted(self, path: str) -> int:
        """Return how many streams a path would have if all came that were asked for; 0 before any were."""
        return self._wanted.get(path, 0)

    def _act(self, decision: Decision) -> None:
        if decision.barrier:
            self._carrier.renew_streams(decision.path)
        self._carrier.set_streams(decision.path, decision.streams)
        self._controls[decision.path].gate.open(decision.chunk_bytes if decision.barrier else None)
