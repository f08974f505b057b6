"""A report as it was written, read into values. It is outside input: whatever is wrong is a UsageError."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from mpx._version import __version__
from mpx.choices import MOST_PATHS
from mpx.errors import UsageError
from mpx.explain.fields import GIVE, Fields
from mpx.intervals import MOST, Interval
from mpx.report import Event, Tally

MOST_BYTES = 64 * 1024 * 1024  # of a report; mpx writes some MiB at most
MOST_LINES = 4000  # of any list but the intervals: more than mpx writes
MOST_INTERVALS = MOST * MOST_PATHS


@dataclass(frozen=True, slots=True)
class RecordedSettings:
    """The options of the copy that decide how fast it was; None where the report does not say, or null."""

    streams: int | None = None
    max_streams: int | None = None
    share: int | None = None
    policy: str | None = None
    congestion: str | None = None
    rate_bps: float | None = None
    tuner: str | None = None
    probe_first_s: float | None = None
    probe_mode: str | None = None
    classifier: str | None = None
    bandwidth_bps: float | None = None


@dataclass(frozen=True, slots=True)
class ExpectedPath:
    """A path of a controller: what it expected, and what arrived over it (None: not known)."""

    name: str
    rate_bps: float | None
    rtt_s: float
    carried_bytes: int | None


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """What a report says; docs/report-format.md explains each part. All texts can be shown as they are."""

    dry_run: bool
    status: str
    error: str | None
    source: str
    destination: str
    files: Tally
    bytes: Tally
    duration_s: float
    goodput_bps: float
    algorithm: str
    checksum: str  # its result
    compared: Mapping[str, int]  # bytes by algorithm
    of_passed_bytes: int  # of these, compared at the destination with what passed through this host
    rtt_s: float | None
    congestion: str | None
    congestion_not_had: str | None
    controller: str | None
    offered: Sequence[ExpectedPath]
    subflows: Sequence[int] | None  # of each stream of Multipath TCP; None: it was not asked for
    events: Sequence[Event]
    omitted: int  # events that the report left out
    notes: Sequence[str]
    failures: Sequence[tuple[str, str]]  # name, error
    flow_began_s: float | None = None
    cpu_s: float | None = None
    settings: RecordedSettings = RecordedSettings()
    intervals: Sequence[Interval] = ()

    @property
    def paths(self) -> Sequence[str]:
        """The names of its paths, in the order in which they came up.

        Intervals are of the last attempt only, which may have other paths than one before it.
        """
        return list(dict.fromkeys([i.path for i in self.intervals] or [e.path for e in self.events]))

    @property
    def is_upload(self) -> bool:
        """Whether this host sent to a server."""
        return "://" in self.destination and not self.destination.startswith("file:")

    @property
    def is_download(self) -> bool:
        """Whether this host received from a server."""
        return not self.is_upload and "://" in self.source and not self.source.startswith("file:")


def read_report(data: bytes, name: str) -> CopyRecord:
    """Return what a report says; `name` is that of its file, for messages. Raises UsageError."""
    if len(data) > MOST_BYTES:
        raise UsageError(f"{name} has more than {MOST_BYTES >> 20} MiB; no report of mpx copy is as large")
    try:
        value = json.loads(data.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):  # ValueError: no UTF-8, no JSON, NaN
        raise UsageError(f"{name} is not JSON as mpx writes it; {GIVE}") from None
    report = Fields(value, name)
    try:
        record = _record(report)
        if len(record.paths) > MOST_PATHS:
            raise UsageError(f"{name} has more than {MOST_PATHS} paths; {GIVE}")
        return record
    except UsageError as error:
        version = report.text_or_none("mpx")
        if version in (None, __version__):
            raise
        raise UsageError(f"{error} (it was written by mpx {version[:40]}, this is {__version__})") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _record(report: Fields) -> CopyRecord:
    report.text("mpx")
    decisions, checksum = report.within("decisions"), report.within("checksum")
    return CopyRecord(
        dry_run=report.truth("dry_run"),
        status=report.text("status"),
        error=report.text_or_none("error"),
        source=report.text("source"),
        destination=report.text("destination"),
        files=_tally(report.within("files")),
        bytes=_tally(report.within("bytes")),
        duration_s=report.number("duration_s"),
        goodput_bps=report.number("goodput_bps"),
        algorithm=checksum.text("algorithm"),
        checksum=checksum.text("result"),
        compared=dict(checksum.within("bytes").counts()),
        of_passed_bytes=checksum.count_or_none("of_passed") or 0,
        rtt_s=decisions.number_or_none("rtt_s"),
        congestion=decisions.text_or_none("congestion"),
        congestion_not_had=decisions.text_or_none("congestion_not_had"),
        controller=decisions.text_or_none("controller"),
        offered=[_offered(each) for each in decisions.objects("paths", MOST_LINES)],
        subflows=_subflows(report),
        events=[_event(each) for each in report.objects("timeline", MOST_LINES)],
        omitted=report.count_or_none("timeline_omitted") or 0,
        notes=report.texts("notes", MOST_LINES),
        failures=[(each.text("name"), each.text("error")) for each in report.objects("failures", MOST_LINES)],
        flow_began_s=report.number_or_none("flow_began_s"),
        cpu_s=report.number_or_none("cpu_s"),
        settings=_settings(report.within_or_empty("settings")),
        intervals=[_interval(each) for each in report.objects("intervals", MOST_INTERVALS)],
    )


def _tally(counts: Fields) -> Tally:
    names = ("total", "moved", "resumed", "skipped", "failed")
    return Tally(**{name: counts.count(name) for name in names})


def _settings(settings: Fields) -> RecordedSettings:
    return RecordedSettings(
        streams=settings.count_or_none("streams"),
        max_streams=settings.count_or_none("max_streams"),
        share=settings.count_or_none("share"),
        policy=settings.text_or_none("policy"),
        congestion=settings.text_or_none("congestion"),
        rate_bps=settings.number_or_none("rate_bps"),
        tuner=settings.text_or_none("tuner"),
        probe_first_s=settings.number_or_none("probe_first_s"),
        probe_mode=settings.text_or_none("probe_mode"),
        classifier=settings.text_or_none("classifier"),
        bandwidth_bps=settings.number_or_none("bandwidth_bps"),
    )


def _offered(path: Fields) -> ExpectedPath:
    return ExpectedPath(
        path.text("path"),
        path.number_or_none("rate_bps"),
        path.number("rtt_s"),
        path.count_or_none("carried_bytes"),
    )


def _subflows(report: Fields) -> Sequence[int] | None:
    if "mptcp" not in report:
        return None
    return [each.count("subflows") for each in report.objects("mptcp", MOST_LINES)]


def _event(event: Fields) -> Event:
    return Event(
        t_s=event.number("t_s"),
        path=event.text("path"),
        streams=event.count("streams"),
        goodput_bps=event.number("goodput_bps"),
        rtt_s=event.number_or_none("rtt_s"),
        tcpi_rtt_s=event.number_or_none("tcpi_rtt_s"),
        congestion=event.text_or_none("congestion"),
        reason=event.text("reason"),
    )


def _interval(interval: Fields) -> Interval:
    from_s = interval.number("from_s")
    values: dict[str, Any] = {
        name: interval.share_or_none(name) for name in ("idle", "limited_by_receiver", "limited_by_sender")
    }
    return Interval(
        path=interval.text("path"),
        from_s=from_s,
        until_s=interval.number_from("until_s", from_s),
        streams=interval.number("streams"),
        arrived_bytes=interval.count("arrived_bytes"),
        resent=interval.count("resent"),
        rtt_s=interval.number_or_none("rtt_s"),
        queue_s=interval.number_or_none("queue_s"),
        congestion=interval.text_or_none("congestion"),
        background=interval.text_or_none("background"),
        **values,
    )
