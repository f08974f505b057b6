"""Goodput and decisions of a copy while it runs, for the report and for progress."""

import math
from collections import deque
from collections.abc import Callable, Mapping

from mpx.engine.endpoint import Rtt
from mpx.engine.file_queue import FileQueue
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Decision, Sample
from mpx.report import Event, OnProgress, Progress, Report
from mpx.transfer.path_meter import Known, PathMeter
from mpx.units import format_duration

WINDOW_S = 1.0  # that goodput is measured over
QUIET_S = 3.0  # without new data, after which progress says so
FAILS_S = 1.0  # the same where a server says that it fails, and is asked again
MOST_NOTED = 10  # such times in the report's notes


class Timeline:
    """Used by the control loop's thread. Times are seconds since the copy began."""

    def __init__(
        self,
        report: Report,
        queue: FileQueue,
        on_progress: OnProgress | None = None,
        *,
        what_is_done: Callable[[], str] = lambda: "",
        fails: Callable[[], bool] = lambda: False,
    ) -> None:
        """`what_is_done` returns in words what happens while no data arrive, an empty text where nothing.

        `fails`: whether a server says that it does.
        """
        self._report, self._queue, self._on_progress = report, queue, on_progress
        self._what_is_done, self._fails = what_is_done, fails
        self._latest = 0.0, 0  # time and bytes when data arrived last
        self._decided: dict[str, tuple[float, int]] = {}  # time and bytes at the latest decision on a path
        self._window: deque[tuple[float, int]] = deque()
        self._reason = ""
        self._misses = False  # whether bytes were missing when it was last asked
        self._outages = 0
        self._meter = PathMeter()
        report.flow_begins()
        self._earlier_bytes = report.bytes.moved + report.bytes.resumed  # of an attempt before this

    def measured(self, now_s: float, samples: Mapping[str, Sample], known: Mapping[str, Known]) -> None:
        """Take what has moved so far, and what is known of each path; pass it on as progress."""
        for interval in self._meter.passed(now_s, samples, known):
            self._report.passed(interval)
        arrived = sum(sample.arrived_bytes for sample in samples.values())
        self._window.append((now_s, arrived))
        while now_s - self._window[0][0] > WINDOW_S:
            self._window.popleft()
        if arrived != self._latest[1]:
            self._note_outage(now_s)
            self._latest = now_s, arrived
        else:  # thousands of files may be under way, so only then
            self._misses = self._queue.missing_bytes > 0
        if self._on_progress is not None:
            streams = sum(sample.streams for sample in samples.values())
            self._on_progress(self._progress(now_s, arrived, streams))

    def _note_outage(self, now_s: float) -> None:
        """Note that there were no data until now, if that was long and some were missing."""
        quiet_s = now_s - self._latest[0]
        if quiet_s < QUIET_S or not self._misses or not self._latest[1]:
            return
        self._outages += 1
        if self._outages <= MOST_NOTED:
            last = "; further ones are not noted" if self._outages == MOST_NOTED else ""
            quiet, until = (format_duration(round(seconds)) for seconds in (quiet_s, now_s))
            self._report.note(f"no new data for {quiet}, until {until}{last}")

    def _outage(self, now_s: float) -> str:
        """Return for how long no new data have arrived, and what is done about it; empty for a short time."""
        quiet_s = now_s - self._latest[0]
        if quiet_s < (FAILS_S if self._fails() else QUIET_S):
            return ""
        if not (self._queue.missing_bytes or self._fails()):  # what is under way is listed, verified or named
            self._latest = now_s, self._latest[1]
            return ""
        done = self._what_is_done()
        return f"no new data for {format_duration(round(quiet_s))}" + (f"; {done}" if done else "")

    def _progress(self, now_s: float, arrived: int, streams: int) -> Progress:
        files, size = self._report.files, self._report.bytes
        before_bytes = self._earlier_bytes + size.skipped
        (since, before), (until, latest) = self._window[0], self._window[-1]
        return Progress(
            elapsed_s=now_s,
            files_total=files.total,
            files_done=files.moved + files.resumed + files.skipped,
            files_failed=files.failed,
            bytes_total=size.total,
            bytes_done=min(size.total, before_bytes + self._queue.resumed_bytes + arrived),
            goodput_bps=(latest - before) * 8 / (until - since) if until > since else 0.0,
            streams=streams,
            is_listed=self._queue.is_listed,
            reason=self._reason,
            outage=self._outage(now_s),
        )

    def lasts_s(self, bytes_left: int) -> float:
        """Return for how long there is work at the present rate; infinite where more may be found."""
        (since, before), (until, latest) = self._window[0], self._window[-1]
        if not self._queue.is_listed or latest == before:
            return math.inf
        return bytes_left * (until - since) / (latest - before)

    def decided(
        self, now_s: float, decision: Decision, sample: Sample, rtt: Rtt | None, congestion: str | None
    ) -> None:
        """Add a decision, with the goodput since the one before it on its path."""
        since, before = self._decided.get(decision.path, (0.0, 0))
        self._decided[decision.path] = now_s, sample.arrived_bytes
        took = now_s - since
        of = "" if decision.path == DEFAULT_PATH else f"path {decision.path}: "
        self._reason = of + decision.reason
        self._report.decided(
            Event(
                t_s=now_s,
                path=decision.path,
                streams=decision.streams,
                goodput_bps=(sample.arrived_bytes - before) * 8 / took if took > 0 else 0.0,
                rtt_s=rtt.asked_s if rtt else None,
                tcpi_rtt_s=rtt.kernel_s if rtt else None,
                congestion=congestion,
                reason=decision.reason,
            )
        )
