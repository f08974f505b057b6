"""What was done, when and why: the record that the progress line, the JSON report and the plots read."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Protocol, TypedDict

from mpx._version import __version__
from mpx.choices import OF_PASSED
from mpx.errors import Interrupted, MpxError
from mpx.files.atomic_file import whole
from mpx.intervals import Interval, Intervals

ONE_SUBFLOW = (
    "each connection of Multipath TCP had one subflow, so one path; for more the host that connects needs "
    "further addresses, each added with 'ip mptcp endpoint add ADDRESS dev DEVICE subflow'"
)


class Severity(IntEnum):
    """Who should see a note, in ascending order. The JSON report has all notes."""

    INFO = 0  # who asks for details (-v)
    NOTICE = 1  # everybody: something asked for is not had, or was left out, or begins anew
    WARNING = 2  # everybody, beside the result: data was copied and not verified


@dataclass(frozen=True, slots=True)
class Note:
    """A line for people about what happened in a copy."""

    severity: Severity
    text: str
    name: str = ""  # of the file that it is about, where others may have lines alike


class Skip(StrEnum):
    """Why a file or folder is skipped, in the words of the report."""

    EXISTS = "exists at the destination"
    SAME = "already up to date at the destination"
    DESTINATION = "the destination itself"
    REPEATED = "listed twice"
    CONTAINS_ITSELF = "folder contains itself"
    LINK = "a symbolic link"
    LINK_TO_ABOVE = "a symbolic link to a folder that contains it"
    LINK_TO_NOTHING = "a symbolic link that leads nowhere"
    NOT_REGULAR = "not a regular file"

    @property
    def severity(self) -> Severity:
        """INFO where the destination has the file already, else NOTICE."""
        return Severity.INFO if self in (Skip.EXISTS, Skip.SAME) else Severity.NOTICE


class Skipped(TypedDict):
    """One file or folder that was skipped."""

    name: str
    reason: Skip


class OnNote(Protocol):
    """Takes a line for the report; the same line counts once. May be called from any thread."""

    def __call__(self, text: str, severity: Severity = Severity.INFO, /) -> None:
        """Add the line."""


def no_note(_text: str, _severity: Severity = Severity.INFO, /) -> None:
    """Drop a note: there is no report."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a copy is, about ten times a second; bytes and files of this copy so far."""

    elapsed_s: float
    files_total: int  # found so far
    files_done: int  # have their final name, or were skipped
    files_failed: int
    bytes_total: int  # of the files found so far
    bytes_done: int
    goodput_bps: float
    streams: int
    is_listed: bool  # no more files will be found
    reason: str  # of the latest decision
    outage: str = ""  # for how long no new data have arrived, and what is done about it; empty while some do


def before_data(elapsed_s: float, reason: str) -> Progress:
    """Return the progress of a copy of whose files nothing is known yet, as something else comes first."""
    return Progress(
        elapsed_s,
        files_total=0,
        files_done=0,
        files_failed=0,
        bytes_total=0,
        bytes_done=0,
        goodput_bps=0.0,
        streams=0,
        is_listed=False,
        reason=reason,
    )


OnProgress = Callable[[Progress], None]


@dataclass
class Tally:
    """How many files, or bytes, met which fate."""

    total: int = 0
    moved: int = 0
    resumed: int = 0
    skipped: int = 0
    failed: int = 0

    def settled(self) -> "Tally":
        """Return the counts of what has its final name."""
        return Tally(total=self.moved + self.resumed, moved=self.moved, resumed=self.resumed)

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {
            "total": self.total,
            "moved": self.moved,
            "resumed": self.resumed,
            "skipped": self.skipped,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline; goodput in bit/s over the time since the previous line."""

    t_s: float
    path: str
    streams: int
    goodput_bps: float
    rtt_s: float | None
    tcpi_rtt_s: float | None  # what the kernel says of the socket that `rtt_s` was measured on
    congestion: str | None
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Return the line as it stands in the JSON report."""
        return {
            "t_s": round(self.t_s, 3),
            "path": self.path,
            "streams": self.streams,
            "goodput_bps": round(self.goodput_bps),
            "rtt_s": _rounded(self.rtt_s),
            "tcpi_rtt_s": _rounded(self.tcpi_rtt_s),
            "congestion": self.congestion,
            "reason": self.reason,
        }


def _rounded(rtt_s: float | None) -> float | None:
    return None if rtt_s is None else round(rtt_s, 6)


@dataclass
class Report:
    """The record of one copy. Filled while it runs; complete when `status` is not "running"."""

    source: str
    destination: str
    dry_run: bool = False  # nothing was done
    status: str = "running"  # done, failed, interrupted
    exit_code: int = 0
    error: str | None = None
    files: Tally = field(default_factory=Tally)
    bytes: Tally = field(default_factory=Tally)
    duration_s: float = 0.0
    flow_began_s: float | None = None  # when streams were opened, since the call; None: none were
    cpu_s: float = 0.0  # processor time of this process meanwhile
    goodput_bps: float = 0.0
    algorithm: str = "none"  # the checksum that is compared end to end, as far as that is known before
    compared: dict[str, int] = field(default_factory=dict)  # bytes of files with their final names, by it
    of_passed_bytes: int = 0  # of these, compared at the destination with what passed through this host
    mismatched: bool = False  # a checksum differed although the bytes were sent twice
    settings: dict[str, Any] = field(default_factory=dict)  # options that decide how fast it is
    decisions: dict[str, Any] = field(
        default_factory=dict
    )  # replaced as a whole, as it may be read meanwhile
    mptcp: list[int] | None = None  # most subflows of each stream of Multipath TCP, 0: plain TCP
    timeline: list[Event] = field(default_factory=list)
    intervals: Intervals = field(default_factory=Intervals)
    failures: list[dict[str, str]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)
    began_cpu_s: float = field(default_factory=time.process_time)
    timeline_omitted: int = 0  # decisions between the first and the last MOST_LINES, which `timeline` has
    # `_lock` guards what several threads fill: counts, notes, timeline, intervals, failures, skipped, mptcp.
    _notes: dict[str, Note] = field(default_factory=dict, repr=False)  # by text, in the order of arrival
    _noted: Counter[Severity] = field(default_factory=Counter, repr=False)  # how many of each severity
    _skips: Counter[Skip] = field(default_factory=Counter, repr=False)  # how many for each reason
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    # Of notes of one severity, failures, skips for one reason, and at each end of the timeline; counts go on.
    MOST_LINES = 1000

    @property
    def elapsed_s(self) -> float:
        """Seconds since the copy began."""
        return time.monotonic() - self.began_s

    def note(self, text: str, severity: Severity = Severity.INFO, /, *, name: str = "") -> None:
        """Add a line for people, once."""
        with self._lock:
            if text not in self._notes and self._noted[severity] < self.MOST_LINES:
                self._notes[text] = Note(severity, text, name)
                self._noted[severity] += 1

    @property
    def notes(self) -> list[str]:
        """The lines for people, as they stand in the JSON report."""
        return [note.text for note in self.noted()]

    def noted(self, least: Severity = Severity.INFO) -> list[Note]:
        """Return the notes of this severity and above."""
        with self._lock:
            return [note for note in self._notes.values() if note.severity >= least]

    def skip(self, name: str, reason: Skip, size_bytes: int = 0) -> None:
        """Count a file that was skipped."""
        with self._lock:
            self.files.total += 1
            self.files.skipped += 1
            self.bytes.total += size_bytes
            self.bytes.skipped += size_bytes
            self._skips[reason] += 1
            if self._skips[reason] <= self.MOST_LINES:
                self.skipped.append({"name": name, "reason": reason})

    def mismatch(self) -> None:
        """Record that a checksum differs although the bytes were sent twice."""
        with self._lock:
            self.mismatched = True

    def stream_ended(self, subflows: int) -> None:
        """Note how many subflows a stream of Multipath TCP had when it had most; 0: it was plain TCP."""
        with self._lock:
            if self.mptcp is not None and len(self.mptcp) < self.MOST_LINES:
                self.mptcp.append(subflows)

    def begin(self, size_bytes: int) -> None:
        """Count a file that is to be moved."""
        with self._lock:
            self.files.total += 1
            self.bytes.total += size_bytes

    def moved(
        self,
        size_bytes: int,
        resumed_bytes: int,
        *,
        listed_bytes: int | None = None,
        compared: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Count a file that has its final name; `resumed_bytes` of it came with an earlier run.

        `listed_bytes`: its size as `begin` has counted it, if that was another. `compared`: how many bytes of
        it have the same checksum at both ends, by its name (with OF_PASSED: here and at the destination).
        """
        uncompared = size_bytes - sum(compared.values())
        with self._lock:
            self.bytes.total += size_bytes - (size_bytes if listed_bytes is None else listed_bytes)
            if resumed_bytes:
                self.files.resumed += 1
            else:
                self.files.moved += 1
            self.bytes.resumed += resumed_bytes
            self.bytes.moved += size_bytes - resumed_bytes
            for name, count in (*compared.items(), ("none", uncompared)):
                algorithm = name.removesuffix(OF_PASSED)
                if count:
                    self.of_passed_bytes += count if algorithm != name else 0
                    self.compared[algorithm] = self.compared.get(algorithm, 0) + count

    def failed(self, name: str, error: str, size_bytes: int = 0) -> None:
        """Count a file that could not be copied."""
        with self._lock:
            self.files.failed += 1
            self.bytes.failed += size_bytes
            if len(self.failures) < self.MOST_LINES:
                self.failures.append({"name": name, "error": error})

    def decided(self, event: Event) -> None:
        """Add a line to the timeline."""
        with self._lock:
            self.timeline.append(event)
            if len(self.timeline) > 2 * self.MOST_LINES:
                del self.timeline[self.MOST_LINES]
                self.timeline_omitted += 1

    def flow_begins(self) -> None:
        """Record that streams are opened: times of the timeline and of intervals count from here."""
        with self._lock:
            self.flow_began_s = self.elapsed_s
            self.intervals = Intervals()  # of an attempt before this, whose times began elsewhere

    def passed(self, interval: Interval) -> None:
        """Add what a path did since it was added last."""
        with self._lock:
            self.intervals.add(interval)

    def start_over(self) -> None:
        """Keep the counts of files with their final names; forget the others, which are found again."""
        with self._lock:
            self.files, self.bytes = self.files.settled(), self.bytes.settled()
            self.mptcp = None if self.mptcp is None else []
            self.mismatched = False
            self.failures.clear()
            self.skipped.clear()
            self._skips.clear()

    def done(self) -> None:
        """The copy has ended well."""
        self.status = "done"
        if self.mptcp and max(self.mptcp) == 1:
            self.note(ONE_SUBFLOW, Severity.NOTICE)

    def ended_by(self, error: MpxError) -> None:
        """Record what ended the copy."""
        self.status = "interrupted" if isinstance(error, Interrupted) else "failed"
        self.exit_code = error.exit_code
        self.error = str(error)

    def close(self) -> None:
        """Record how long it took; goodput counts what this run brought over."""
        self.duration_s = self.elapsed_s
        self.cpu_s = time.process_time() - self.began_cpu_s
        self.goodput_bps = self.bytes.moved * 8 / max(self.duration_s, 1e-9)

    @property
    def checksum(self) -> dict[str, Any]:
        """What was compared by which checksum, and what that says of the files with their final names."""
        is_verified = self.algorithm != "none" and not self.compared.get("none")
        if self.mismatched:
            result = "mismatch"
        elif not self.files.moved + self.files.resumed:
            result = "nothing moved"
        else:
            result = "verified" if is_verified else "unverified"
        most = max(self.compared, key=lambda name: self.compared[name], default=self.algorithm)
        passed = {"of_passed": self.of_passed_bytes} if self.of_passed_bytes else {}
        told = {"algorithm": most, "result": result, "bytes": dict(sorted(self.compared.items()))}
        return told | passed

    def as_dict(self) -> dict[str, Any]:
        """Return the report as docs/report-format.md describes it."""
        with self._lock:
            return {
                "mpx": __version__,
                "dry_run": self.dry_run,
                "status": self.status,
                "exit_code": self.exit_code,
                "error": self.error,
                "source": self.source,
                "destination": self.destination,
                "files": self.files.as_dict(),
                "bytes": self.bytes.as_dict(),
                "duration_s": round(self.duration_s, 3),
                "flow_began_s": None if self.flow_began_s is None else round(self.flow_began_s, 3),
                "cpu_s": round(self.cpu_s, 3),
                "goodput_bps": round(self.goodput_bps),
                "checksum": self.checksum,
                "settings": self.settings,
                "decisions": self.decisions,
                "mptcp": self._mptcp(),
                "timeline": [event.as_dict() for event in self.timeline],
                **({"timeline_omitted": self.timeline_omitted} if self.timeline_omitted else {}),
                "intervals": [interval.as_dict() for interval in self.intervals],
                "notes": list(self._notes),
                "failures": list(self.failures),
                "skipped": [{"name": each["name"], "reason": each["reason"].value} for each in self.skipped],
            }

    def _mptcp(self) -> list[dict[str, Any]] | None:
        if self.mptcp is None:
            return None
        return [{"in_use": count > 0, "subflows": count} for count in self.mptcp]

    def write(self, name: str) -> None:
        """Write the JSON report, whole or not at all; raises UsageError if that fails."""
        text = json.dumps(self.as_dict(), indent=1, ensure_ascii=True) + "\n"
        with whole(name) as file:
            file.write(text.encode())
