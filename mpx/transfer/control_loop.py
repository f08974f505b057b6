"""Watches a copy run: every 100 ms it feeds the tuner, acts on decisions, and tells journal and caller."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mpx.engine.carrier import Carrier
from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.endpoint import Rtt
from mpx.engine.file_queue import FileQueue
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stop import Failure
from mpx.engine.tuner import Decision, Sample, Tuner
from mpx.errors import Interrupted, UsageError
from mpx.report import Event, OnProgress, Progress, Report, Severity
from mpx.transfer.commit import Committer

if TYPE_CHECKING:  # few copies need them
    from mpx.multipath.paths_in_use import Multipath
    from mpx.recognition.monitor import BackgroundMonitor
    from mpx.recognition.scavenger import Scavenger

TICK_S = 0.1
DOUBT_TICK_S = 0.02  # while a path may have been lost
GOODPUT_WINDOW_S = 1.0
ENDING_S = 1.0  # less than this is left: nothing decided now would show
LONG_S = 1.0  # a copy that has moved bytes for so long may be worth reading the background
WORTH_A_SWITCH_S = 8.0  # less than this is left: nobody is known by then who is not known already


class ControlLoop:
    """The one place where decisions become actions."""

    def __init__(
        self,
        *,
        carrier: Carrier,
        tuners: Mapping[tuple[str, ...], Tuner],
        pool: FileQueue,
        gate: ChunkGate,
        failure: Failure,
        finisher: Committer,
        report: Report,
        rtt: Callable[[str], Rtt | None],
        congestion: str | None,
        congestion_refused: threading.Event,
        begin_selection: "Callable[[float], BackgroundMonitor | None] | None",
        scavenger: "Scavenger | None",
        multipath: "Multipath | None",
        on_progress: OnProgress | None,
        cancel: threading.Event,
    ) -> None:
        self._carrier = carrier
        self._tuners = tuners  # each for the paths of one group
        self._pool = pool
        self._gate = gate
        self._failure = failure
        self._finisher = finisher
        self._report = report
        self._rtt = rtt
        self._congestion = congestion
        self._congestion_before: str | None = None  # what streams go on with where the last switch is refused
        self._congestion_refused = congestion_refused
        self._begin_selection = begin_selection  # once the copy is found to be a long one
        self._selection: BackgroundMonitor | None = None
        self._moving_s: float | None = None  # since when bytes arrive
        self._scavenger = scavenger
        self._multipath = multipath
        self._on_progress = on_progress
        self._cancel = cancel
        self._began_s = time.monotonic()
        self._decided: dict[str, tuple[float, int]] = {}  # time and bytes at the latest decision on a path
        self._window: deque[tuple[float, int]] = deque()
        self._reason = ""

    def start(self, streams: Mapping[str, int], reason: str) -> None:
        """Say how many streams to begin with, before the carrier starts; a tuner has its own first word."""
        beginning = {path: Decision(path, count, reason) for path, count in streams.items()}
        samples = self._samples(self._carrier.samples())
        for paths, tuner in self._tuners.items():
            first = tuner.observe(0.0, {path: samples[path] for path in paths})
            beginning |= {decision.path: decision for decision in first}
        for decision in beginning.values():
            self._act(decision)
            self._record(decision, 0.0, 0)

    def watch(self) -> None:
        """Return when everything is settled or the copy has failed."""
        try:
            self._watch()
        finally:
            if self._selection is not None and self._selection.summary:
                self._report.note(self._selection.summary)

    def _watch(self) -> None:
        while not self._pool.is_settled and not self._failure.cancel.is_set():
            self._wait()
            if self._cancel.is_set():
                self._failure.set(Interrupted())
                return
            now = time.monotonic() - self._began_s
            samples = self._samples(self._carrier.samples())
            self._finisher.journal_arrivals()
            self._window.append((now, sum(sample.arrived_bytes for sample in samples.values())))
            while now - self._window[0][0] > GOODPUT_WINDOW_S:
                self._window.popleft()
            if self._moving_s is None and self._window[-1][1]:
                self._moving_s = time.monotonic()
            self._tell(now, samples)
            if self._multipath is not None:
                self._multipath.carried(time.monotonic(), samples)
                self._mind(self._multipath)
            if self._congestion_refused.is_set():
                self._congestion_refused.clear()
                self._go_back(now, samples)
            lasts_s = self._lasts_s(samples)
            if lasts_s < ENDING_S:
                continue
            if self._scavenger is not None:
                self._yield(self._scavenger, now, samples[DEFAULT_PATH])
            if lasts_s >= WORTH_A_SWITCH_S:
                self._begin_selecting()
            if self._selection is not None and lasts_s >= WORTH_A_SWITCH_S:
                self._select(self._selection, now, samples[DEFAULT_PATH])
            self._tune(now, samples)

    def _wait(self) -> None:
        """Return after a tick; a path that may have been lost is looked at more often."""
        until_s = time.monotonic() + TICK_S
        while self._multipath is not None and self._multipath.is_in_doubt:
            self._pool.wait_settled(DOUBT_TICK_S)
            if self._pool.is_settled or self._cancel.is_set() or time.monotonic() >= until_s:
                return
            self._mind(self._multipath)
        self._pool.wait_settled(max(0.0, until_s - time.monotonic()))

    def _tune(self, now: float, samples: Mapping[str, Sample]) -> None:
        """Ask the tuners; what takes another path for now tells nothing of its own."""
        lost = self._multipath.lost if self._multipath else frozenset()
        for paths, tuner in self._tuners.items():
            measured = {path: samples[path] for path in paths if path not in lost}
            for decision in tuner.observe(now, measured) if measured else ():
                self._act(decision)
                self._record(decision, now, samples[decision.path].arrived_bytes)

    def _mind(self, multipath: "Multipath") -> None:
        """Look after the paths; where one is lost or back, others carry what they did not before."""
        changes = multipath.observe(time.monotonic(), self._carrier.silent_s)
        if not changes:
            return
        now, samples = time.monotonic() - self._began_s, self._carrier.samples()
        for change in changes:
            sample = samples[change.path]
            self._record(Decision(change.path, sample.streams, change.reason), now, sample.arrived_bytes)
        for tuner in self._tuners.values():
            tuner.disturbed(now)

    def _yield(self, scavenger: "Scavenger", now: float, sample: Sample) -> None:
        """Be as fast as leaves no queue; where that cannot be told, say so and go on."""
        news = scavenger.observe(time.monotonic(), sample.arrived_bytes)
        if scavenger.trouble:
            self._report.note(f"scavenger mode is inactive, probes go unanswered: {scavenger.trouble}")
        if news:
            self._record(Decision(DEFAULT_PATH, sample.streams, news), now, sample.arrived_bytes)

    def _begin_selecting(self) -> None:
        """Have the background read, once bytes have moved for a while: most copies are over before."""
        begin, since_s = self._begin_selection, self._moving_s
        if begin is not None and since_s is not None and time.monotonic() >= since_s + LONG_S:
            self._selection, self._begin_selection = begin(since_s), None

    def _select(self, selection: "BackgroundMonitor", now: float, sample: Sample) -> None:
        """Switch the streams where the background has come to ask for it; what cannot be is noted."""
        switch = selection.observe(time.monotonic(), sample)
        if selection.trouble:
            self._report.note(f"the background is not recognised: {selection.trouble}", _severity(selection))
        if switch is None:
            return
        try:
            self._carrier.set_congestion(switch.congestion)
        except (UsageError, OSError) as error:  # OSError: no descriptor is left to ask what may be used
            self._report.note(f"the streams stay with {self._congestion}: {error}")
            selection.refused()
            return
        self._congestion, self._congestion_before = switch.congestion, self._congestion
        selection.switched(time.monotonic(), switch.congestion)
        for tuner in self._tuners.values():
            tuner.disturbed(now)
        reason = f"switched to {switch.congestion}: {switch.reason}"
        self._record(Decision(DEFAULT_PATH, sample.streams, reason), now, sample.arrived_bytes)

    def _go_back(self, now: float, samples: Mapping[str, Sample]) -> None:
        """Go on with what a server that refused the last switch still sends with, over all sessions alike."""
        before = self._congestion_before
        if self._congestion == before:  # as another session of it has said already
            return
        self._congestion = before
        if before and self._selection is not None:
            self._carrier.set_congestion(before)
            self._selection.switched(time.monotonic(), before)
        reason = f"the server goes on with {before or 'what its kernel chooses'}"
        for path, sample in samples.items():
            self._record(Decision(path, sample.streams, reason), now, sample.arrived_bytes)

    def _samples(self, samples: Mapping[str, Sample]) -> dict[str, Sample]:
        """Return them with the round-trip times that are known of their paths."""
        rtts = {path: self._rtt(path) for path in samples}
        return {
            path: replace(sample, rtt_s=rtt.asked_s if (rtt := rtts[path]) else None)
            for path, sample in samples.items()
        }

    def _lasts_s(self, samples: Mapping[str, Sample]) -> float:
        """Return for how long there is work at the present rate; infinite where more may be found.

        Streams that leave for want of work tell a tuner nothing about the network. A tuner that shuts the
        gate has the last word on it, so it is asked to the end.
        """
        (since, before), (until, latest) = self._window[0], self._window[-1]
        moved = latest - before
        if not self._pool.is_listed or self._gate.is_used or not moved:
            return math.inf
        return sum(sample.bytes_left for sample in samples.values()) * (until - since) / moved

    def _act(self, decision: Decision) -> None:
        if decision.barrier:
            self._carrier.renew_streams()
        self._carrier.set_streams(decision.path, decision.streams)
        self._gate.open(decision.chunk_bytes if decision.barrier else None)

    def _record(self, decision: Decision, now: float, arrived: int) -> None:
        since, before = self._decided.get(decision.path, (0.0, 0))
        took = now - since
        self._decided[decision.path] = now, arrived
        rtt = self._rtt(decision.path)
        self._reason = decision.reason
        self._report.decided(
            Event(
                t_s=now,
                path=decision.path,
                streams=decision.streams,
                goodput_bps=(arrived - before) * 8 / took if took > 0 else 0.0,
                rtt_s=rtt.asked_s if rtt else None,
                tcpi_rtt_s=rtt.kernel_s if rtt else None,
                congestion=self._congestion,
                reason=decision.reason,
            )
        )

    def _tell(self, now: float, samples: Mapping[str, Sample]) -> None:
        if self._on_progress is None:
            return
        (since, before), (until, latest) = self._window[0], self._window[-1]
        goodput = (latest - before) * 8 / (until - since) if until > since else 0.0
        files, size = self._report.files, self._report.bytes
        self._on_progress(
            Progress(
                elapsed_s=now,
                files_total=files.total,
                files_done=files.moved + files.resumed + files.skipped,
                files_failed=files.failed,
                bytes_total=size.total,
                bytes_done=min(size.total, size.skipped + self._pool.resumed_bytes + latest),
                goodput_bps=goodput,
                streams=sum(sample.streams for sample in samples.values()),
                is_listed=self._pool.is_listed,
                reason=self._reason,
            )
        )


def _severity(selection: "BackgroundMonitor") -> Severity:
    """Return how severe the trouble is: everybody is told of a model that was asked for and is not had."""
    from mpx.ops_classifier import model_is_named

    return Severity.NOTICE if selection.has_no_model and model_is_named() else Severity.INFO
