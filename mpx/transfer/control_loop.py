"""The control loop of a copy: every 100 ms it measures, asks the deciders, and does what they decide."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from mpx.engine.carrier import Carrier
from mpx.engine.endpoint import Rtt
from mpx.engine.file_queue import FileQueue
from mpx.engine.stop import Failure
from mpx.engine.tuner import Decision, Sample
from mpx.errors import Interrupted
from mpx.transfer.background import ENDING_S, Background
from mpx.transfer.one_processor import OneProcessor
from mpx.transfer.processor_gain import ProcessorGain
from mpx.transfer.stream_tuning import StreamTuning
from mpx.transfer.timeline import Timeline

if TYPE_CHECKING:  # few copies use several paths
    from mpx.multipath.paths_in_use import Change

TICK_S = 0.1
DOUBT_TICK_S = 0.02  # while a path may have been lost


class PathWatch(Protocol):
    """What is known of the paths of a copy while it runs. Times are of time.monotonic()."""

    @property
    def lost(self) -> frozenset[str]:
        """The paths whose streams take others for now."""
        ...

    @property
    def is_in_doubt(self) -> bool:
        """Whether a path may have been lost: it is worth looking again soon."""
        ...

    def rtt(self, path: str, /) -> Rtt | None:
        """Return what was measured last over a path; None where nothing was."""
        ...

    def carried(self, now_s: float, samples: Mapping[str, Sample], /) -> None:
        """Take what each path has carried."""
        ...

    def observe(self, now_s: float, silent_s: Callable[[str], float | None], /) -> "Sequence[Change]":
        """Move streams away from paths that are lost, and back; return what has changed."""
        ...


class OnePath:
    """The path that the network chooses; it is not watched, as there is no other to take its streams."""

    lost: frozenset[str] = frozenset()
    is_in_doubt = False

    def __init__(self, latest: Callable[[], Rtt | None]) -> None:
        self._latest = latest

    def rtt(self, _: str, /) -> Rtt | None:
        """See PathWatch."""
        return self._latest()

    def carried(self, now_s: float, samples: Mapping[str, Sample], /) -> None:
        """See PathWatch."""

    def observe(self, _now_s: float, _silent_s: Callable[[str], float | None], /) -> "Sequence[Change]":
        """See PathWatch."""
        return ()


class ControlLoop:
    """The one place where decisions become actions. Its attributes belong to the thread that runs it."""

    def __init__(
        self,
        carrier: Carrier,
        queue: FileQueue,
        failure: Failure,
        *,
        tuning: StreamTuning,
        backgrounds: Mapping[str, Background],
        paths: PathWatch,
        timeline: Timeline,
        journal_arrivals: Callable[[], None],
        on_measured: Callable[[float, Mapping[str, Sample]], None],
        receives: bool = False,
    ) -> None:
        """`backgrounds`: of each path. `receives`: the data come to us over several threads.

        `on_measured` is called with each look at what has moved, by the seconds since the copy began.
        """
        self._carrier, self._queue, self._failure = carrier, queue, failure
        self._tuning, self._backgrounds, self._paths = tuning, backgrounds, paths
        self._timeline, self._journal_arrivals, self._on_measured = timeline, journal_arrivals, on_measured
        self._began_s = time.monotonic()
        self._processor = OneProcessor()
        self._gain = ProcessorGain() if receives else None

    def start(self) -> None:
        """Say how many streams to begin with, before the carrier starts."""
        samples = self._samples()
        for decision in self._tuning.begin(samples):
            self._record(0.0, decision, Sample(decision.streams, 0, 0))

    def run(self) -> None:
        """Return when everything is settled, or the copy is to end: then an error is set.

        Raises NoSpace and UsageError where arrivals cannot be journaled.
        """
        try:
            while not self._queue.is_settled and not self._failure.cancel.is_set():
                self._wait()
                if self._failure.by_user.is_set():
                    self._failure.set(Interrupted())
                    return
                self.tick(time.monotonic())
        finally:
            self._processor.end()
        # The last file may have been settled after the last tick had measured: progress ends with the end.
        self._timeline.measured(time.monotonic() - self._began_s, self._samples(), self._backgrounds)

    def tick(self, at_s: float) -> None:
        """Measure, ask, act, once; `at_s` is of time.monotonic()."""
        now_s, samples = at_s - self._began_s, self._samples()
        self._journal_arrivals()
        self._processor.look(*self._queue.waiting, is_enough=self._one_is_enough(now_s, samples))
        self._timeline.measured(now_s, samples, self._backgrounds)
        self._on_measured(now_s, samples)
        self._paths.carried(at_s, samples)
        self._watch_paths(at_s)
        for path, background in self._backgrounds.items():
            if refusal := background.take_refusal(at_s):
                self._record(now_s, Decision(path, samples[path].streams, refusal), samples[path])
        lasts_s = self._timeline.lasts_s(sum(sample.bytes_left for sample in samples.values()))
        # Streams that end for want of work say nothing about the network. A tuner that uses the chunk gate
        # has to open it again, so it is asked to the end.
        is_ending = lasts_s < ENDING_S
        for path, background in self._backgrounds.items():
            if path in self._paths.lost:
                continue
            for reaction in background.observe(at_s, samples[path], lasts_s, self._tuning.wanted(path)):
                if reaction.is_switch:
                    self._tuning.disturbed(now_s, path)
                self._record(now_s, Decision(path, samples[path].streams, reaction.reason), samples[path])
        if is_ending and not self._tuning.is_chunked:
            return
        for decision in self._tuning.observe(now_s, samples, self._paths.lost):
            self._record(now_s, decision, samples[decision.path])

    def _one_is_enough(self, now_s: float, samples: Mapping[str, Sample]) -> bool:
        """Tell whether one processor carries as much as several, as far as it is known."""
        if self._gain is None:
            return False
        if self._processor.is_many:  # what is measured now is of one, whatever is tried
            self._gain = ProcessorGain()
            return False
        streams = sum(sample.streams for sample in samples.values())
        arrived_bytes = sum(sample.arrived_bytes for sample in samples.values())
        return self._gain.observe(now_s, streams, arrived_bytes, time.process_time())

    def _wait(self) -> None:
        """Return after a tick; a path that may have been lost is looked at more often."""
        until_s = time.monotonic() + TICK_S
        while self._paths.is_in_doubt:
            self._queue.wait_settled(DOUBT_TICK_S)
            if self._queue.is_settled or self._failure.by_user.is_set() or time.monotonic() >= until_s:
                return
            self._watch_paths(time.monotonic())
        self._queue.wait_settled(max(0.0, until_s - time.monotonic()))

    def _watch_paths(self, at_s: float) -> None:
        """Look after the paths; where one is lost or back, others carry what they did not before."""
        changes = self._paths.observe(at_s, self._carrier.silent_s)
        if not changes:
            return
        now_s, samples = at_s - self._began_s, self._carrier.samples()
        for change in changes:
            sample = samples[change.path]
            self._record(now_s, Decision(change.path, sample.streams, change.reason), sample)
        self._tuning.disturbed(now_s)
        for background in self._backgrounds.values():
            background.disturbed(at_s)

    def _samples(self) -> dict[str, Sample]:
        """Return what was moved so far, with the round-trip times that are known of the paths."""
        return {
            path: replace(sample, rtt_s=rtt.asked_s if (rtt := self._paths.rtt(path)) else None)
            for path, sample in self._carrier.samples().items()
        }

    def _record(self, now_s: float, decision: Decision, sample: Sample) -> None:
        rtt = self._paths.rtt(decision.path)
        congestion = self._backgrounds[decision.path].congestion
        self._timeline.decided(now_s, decision, sample, rtt, congestion)
