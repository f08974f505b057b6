"""Watches a copy run: every 100 ms it feeds the tuner, acts on decisions, and tells journal and caller."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from mpx.carrier import Carrier
from mpx.endpoint import Rtt
from mpx.errors import Interrupted, UsageError
from mpx.failure import Failure
from mpx.finisher import Finisher
from mpx.gate import Gate
from mpx.pool import Pool
from mpx.report import Event, Report
from mpx.scavenger import Scavenger
from mpx.selection import Selection
from mpx.tuner import Decision, Sample, Tuner

TICK_S = 0.1
GOODPUT_WINDOW_S = 1.0
ENDING_S = 1.0  # less than this is left: nothing decided now would show
WORTH_A_SWITCH_S = 8.0  # less than this is left: nobody is known by then who is not known already


@dataclass(frozen=True, slots=True)
class Progress:
    """What a caller of copy() is told about ten times a second; bytes and files of this copy so far."""

    elapsed_s: float
    files_total: int  # found so far
    files_done: int  # have their final name, or were left alone
    files_failed: int
    bytes_total: int  # of the files found so far
    bytes_done: int
    goodput_bps: float
    streams: int
    is_listed: bool  # no more files will be found
    reason: str  # of the latest decision


OnProgress = Callable[[Progress], None]


class Watcher:
    """The one place where decisions become actions."""

    def __init__(
        self,
        *,
        carrier: Carrier,
        tuner: Tuner | None,
        pool: Pool,
        gate: Gate,
        failure: Failure,
        finisher: Finisher,
        report: Report,
        rtt: Callable[[], Rtt | None],
        congestion: str | None,
        selection: Selection | None,
        scavenger: Scavenger | None,
        on_progress: OnProgress | None,
        cancel: threading.Event,
    ) -> None:
        self._carrier = carrier
        self._tuner = tuner
        self._pool = pool
        self._gate = gate
        self._failure = failure
        self._finisher = finisher
        self._report = report
        self._rtt = rtt
        self._congestion = congestion
        self._selection = selection
        self._scavenger = scavenger
        self._on_progress = on_progress
        self._cancel = cancel
        self._began_s = time.monotonic()
        self._decided = (0.0, 0)  # time and bytes at the latest decision
        self._window: deque[tuple[float, int]] = deque()
        self._reason = ""

    def start(self, streams: int, reason: str) -> None:
        """Say how many streams to begin with, before the carrier starts; a tuner has its own first word."""
        beginning = [Decision(self._carrier.path, streams, reason)]
        if self._tuner is not None:
            samples = self._samples(self._carrier.sample())
            beginning = list(self._tuner.observe(0.0, samples)) or beginning
        for decision in beginning:
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
            self._pool.wait_settled(TICK_S)
            if self._cancel.is_set():
                self._failure.set(Interrupted())
                return
            now = time.monotonic() - self._began_s
            sample = self._carrier.sample()
            self._finisher.journal_arrivals()
            self._window.append((now, sample.arrived_bytes))
            while now - self._window[0][0] > GOODPUT_WINDOW_S:
                self._window.popleft()
            self._tell(now, sample)
            lasts_s = self._lasts_s(sample)
            if lasts_s < ENDING_S:
                continue
            if self._scavenger is not None:
                self._yield(self._scavenger, now, sample)
            if self._selection is not None and lasts_s >= WORTH_A_SWITCH_S:
                self._select(self._selection, now, sample)
            if self._tuner is None:
                continue
            for decision in self._tuner.observe(now, self._samples(sample)):
                self._act(decision)
                self._record(decision, now, sample.arrived_bytes)

    def _yield(self, scavenger: Scavenger, now: float, sample: Sample) -> None:
        """Be as fast as leaves no queue; where that cannot be told, say so and go on."""
        news = scavenger.observe(time.monotonic(), sample.arrived_bytes)
        if scavenger.trouble:
            self._report.note(f"the copy cannot yield, as nobody answers its probes: {scavenger.trouble}")
        if news:
            self._record(Decision(self._carrier.path, sample.streams, news), now, sample.arrived_bytes)

    def _select(self, selection: Selection, now: float, sample: Sample) -> None:
        """Switch the streams where the background has come to ask for it; what cannot be is noted."""
        (known,) = self._samples(sample).values()
        switch = selection.observe(time.monotonic(), known)
        if selection.trouble:
            self._report.note(f"the background is not recognised: {selection.trouble}")
        if switch is None:
            return
        try:
            self._carrier.set_congestion(switch.congestion)
        except UsageError as error:
            self._report.note(f"the streams stay with {self._congestion}: {error}")
            selection.refused()
            return
        self._congestion = switch.congestion
        selection.switched(time.monotonic(), switch.congestion)
        if self._tuner is not None:
            self._tuner.disturbed(now)
        reason = f"switched to {switch.congestion}: {switch.reason}"
        self._record(Decision(self._carrier.path, sample.streams, reason), now, sample.arrived_bytes)

    def _samples(self, sample: Sample) -> dict[str, Sample]:
        rtt = self._rtt()
        return {self._carrier.path: replace(sample, rtt_s=rtt.asked_s if rtt else None)}

    def _lasts_s(self, sample: Sample) -> float:
        """Return for how long there is work at the present rate; infinite where more may be found.

        Streams that leave for want of work tell a tuner nothing about the network. A tuner that shuts the
        gate has the last word on it, so it is asked to the end.
        """
        (since, before), (until, latest) = self._window[0], self._window[-1]
        moved = latest - before
        if not self._pool.is_listed or self._gate.is_used or not moved:
            return math.inf
        return sample.bytes_left * (until - since) / moved

    def _act(self, decision: Decision) -> None:
        if decision.barrier:
            self._carrier.renew_streams()
        self._carrier.set_streams(decision.streams)
        self._gate.open(decision.chunk_bytes if decision.barrier else None)

    def _record(self, decision: Decision, now: float, arrived: int) -> None:
        since, before = self._decided
        took = now - since
        self._decided = now, arrived
        rtt = self._rtt()
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

    def _tell(self, now: float, sample: Sample) -> None:
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
                bytes_done=min(size.total, size.skipped + self._pool.resumed_bytes + sample.arrived_bytes),
                goodput_bps=goodput,
                streams=sample.streams,
                is_listed=self._pool.is_listed,
                reason=self._reason,
            )
        )
