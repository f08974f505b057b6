"""From MODE E to MODE S, and to whole files: for servers that cannot, or turn out not to, do better."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mpx.choices import PAPER
from mpx.engine.capabilities import PartsUp, Question
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import SMALL_FILE_BYTES
from mpx.errors import UsageError
from mpx.options import CopyOptions, flag_of
from mpx.report import Report, Severity
from mpx.transfer.congestion_plan import SERVER_CHOOSES, named
from mpx.transfer.ends import Ends
from mpx.transfer.refusals import check_source_ports, sessions_for_files
from mpx.transfer.transport import Transport
from mpx.units import counted

OF_OUR_STREAMS = (
    "congestion",
    "policy",
    "probe_first_s",
    "probe_mode",
    "classifier",
    "transport",
    "block_size_bytes",
    "port_range",
    "source_ports",
    "data_address",
    "data_address_from_server",
    "data_ports",
    "controller",
    "in_place",
)
WHOLE_FILES = "each file that has no final name yet is downloaded again, in one stream from its first byte"


def to_mode_s(transport: Transport, ends: Ends, report: Report, why: str) -> Transport:
    """Return the transport in MODE S; raises UsageError if that cannot honour what was asked for by hand."""
    plan, congestion = transport.plan, transport.congestion
    if ends.far_is_source:  # no server is told in MODE S which congestion control to use
        if plan.congestion and (name := named(transport.options.congestion)):
            report.note(f"--congestion {name} is not available: {SERVER_CHOOSES}", Severity.NOTICE)
        plan = replace(plan, congestion=None, selects=False)
        congestion = None
        report.decisions = {**report.decisions, "congestion": None}
    options = within_mode_s(
        transport.options,
        report,
        why=why,
        uploads=not ends.far_is_source,
        restarts=ends.far.find_out().restarts,
    )
    found = {} if ends.far_is_source else transport.found
    return replace(transport, options=options, plan=plan, congestion=congestion, mode_e=False, found=found)


def to_whole_files(transport: Transport, report: Report, why: str) -> Transport:
    """Return the transport in MODE S with one stream for each file, from its first byte.

    For downloads from a server that does not show that it begins within a file where it is asked to. What was
    asked for by hand is not refused any more, as this is found out during the copy.
    """
    report.note(
        f"{WHOLE_FILES}: the server does not show that the parts it sends are those asked for ({why})",
        Severity.NOTICE,
    )
    transport.checksums.is_required = transport.checksums.is_by_hand  # nothing is relied on any more
    plan = replace(transport.plan, congestion=None, selects=False)
    report.decisions = {**report.decisions, "congestion": None}
    before = transport.options.with_tuner_auto()
    options = replace(
        before,
        resume=False,
        streams=min(before.streams, before.max_sessions) if before.streams else None,
        max_streams=min(before.max_streams, before.max_sessions),
    )
    return replace(
        transport, options=options, plan=plan, congestion=None, mode_e=False, parts=False, found={}
    )


def to_whole_uploads(transport: Transport, ends: Ends, report: Report) -> Transport:
    """Return the transport for a server that stores whole files, each in one stream (HTTP: PUT).

    Whether it stores parts as well is tried later: see to_stored_parts.
    """
    options = transport.options
    if options.tuner == PAPER:
        report.note(
            "--tuner paper is not available: data does not stop between chunks of a file", Severity.NOTICE
        )
    options = in_place_where_needed(options, ends, report)
    return replace(transport, options=options.with_tuner_auto(), one_stream_each=True, parts=False)


def to_stored_parts(
    transport: Transport, ends: Ends, infos: Sequence[FileInfo], are_there: Callable[[], bool]
) -> Transport:
    """Return the transport for a server that stores whole files, and may store parts of them, which is tried.

    Only for large files, and, as others in a tree may be large, there in each folder once it is there. A
    server that stores no parts goes on with no file. `infos`: of the sources; `are_there`: nothing is to be
    copied, so that nothing is tried. Raises UsageError where it is asked for by hand that it does.
    """
    options, parts_up = transport.options, ends.far.capabilities.parts_up
    is_upload = not (ends.far_is_source or ends.is_between_servers)
    if not is_upload or parts_up not in (PartsUp.NONE, PartsUp.TRIED):
        return transport
    asked = options.resume and options.was_given("resume")
    may_be = parts_up is PartsUp.TRIED and not options.in_place
    is_open = may_be and any(info.kind is Kind.FOLDER for info in infos)
    is_large = any(info.known_bytes > SMALL_FILE_BYTES for info in infos)
    stores = is_open
    if may_be and (is_large or asked):
        if not is_open and are_there():
            return transport
        stores = ends.far.find_out(Question.PARTS_UP).parts_up is PartsUp.OFFSETS
    if asked and not stores:
        raise UsageError(f"--continue is not possible here: uploads to {ends.host} start at the first byte")
    options = replace(options, resume=options.resume and (stores or is_open))
    return replace(transport, options=options, one_stream_each=not stores, parts=stores)


def in_place_where_needed(options: CopyOptions, ends: Ends, report: Report) -> CopyOptions:
    """Return the options for a destination that may be unable to rename files; asks it."""
    if options.in_place or ends.far.find_out(Question.RENAMES).renames:
        return options
    report.note(
        f"not atomic: {ends.host} cannot rename files, so each appears under its final name while it is "
        "stored",
        Severity.WARNING,
    )
    return replace(options, in_place=True)


def to_object_parts(transport: Transport, report: Report) -> Transport:
    """Return the transport for a server that stores parts of fixed sizes (S3)."""
    if transport.options.tuner == PAPER:
        report.note(
            "--tuner paper is not available: data does not stop between chunks of a part", Severity.NOTICE
        )
    return replace(transport, options=transport.options.with_tuner_auto())


def without_streams(options: CopyOptions, ends: Ends, report: Report) -> CopyOptions:
    """Return the options as they can be applied where a program moves the data (SFTP: ssh).

    Raises UsageError for options that were given by hand and that nothing can be done about then.
    """
    can = ends.far.capabilities
    is_upload = not (ends.far_is_source or ends.is_between_servers)
    may: tuple[str, ...] = ("congestion", "policy", "in_place") if can.sets_congestion else ()
    if can.parts_up is PartsUp.IN_TURN:  # XRootD: its library writes to partial files, and sends what goes up
        may = ("congestion", "policy") if can.sets_congestion and is_upload else ()
    for name in (each for each in OF_OUR_STREAMS if each not in may):
        if options.was_given(name) and getattr(options, name):
            raise UsageError(f"{flag_of(name)} is not possible here: {can.why_program}")
    if options.tuner == PAPER:
        stops = f"over {can.program} data does not stop between chunks"
        report.note(f"--tuner paper is not available: {stops}", Severity.NOTICE)
    sessions = options.max_sessions
    for flag, count in ((f"--streams {options.streams}", options.streams or 1), _first_streams(options)):
        if count > sessions:
            raise UsageError(
                f"{flag} needs --max-sessions {count}: over {can.program} each stream is a session"
            )
    return replace(options.with_tuner_auto(), max_streams=min(options.max_streams, sessions))


def no_more_than_files(transport: Transport, ends: Ends, infos: Sequence[FileInfo]) -> Transport:
    """Return the transport with no more streams than there are files, where each stream carries a whole one.

    `infos`: of the sources. Where one is a folder the number of files is not known, and nothing changes.
    """
    parts = ends.far_is_source and transport.parts and ends.far.find_out().restarts
    by_offset = transport.mode_e or not ends.far.capabilities.owns_streams
    by_offset = by_offset and not transport.one_stream_each
    if by_offset or parts or any(info.kind is Kind.FOLDER for info in infos):
        return transport
    before, most = transport.options, len(infos)
    options = replace(
        before,
        streams=min(before.streams, most) if before.streams else None,
        initial_streams=min(before.initial_streams, most) if before.initial_streams else None,
        max_streams=min(before.max_streams, most),
    )
    return replace(transport, options=options)


def within_mode_s(
    options: CopyOptions, report: Report, *, why: str, uploads: bool, restarts: bool, mode: str = "MODE S"
) -> CopyOptions:
    """Return the options as MODE S can apply them, with a note about its limits.

    `why`: the reason for MODE S; `restarts`: the server can begin at an offset (REST). `mode`: what data move
    in, to people; empty where each stream has a session too, and neither end is FTP. Raises UsageError for
    options that were given by hand and that MODE S cannot apply.
    """
    within = f"in {mode} " if mode else "there "
    whole_files = uploads or not restarts
    sessions = options.max_sessions

    def refuse(flag: str, reason: str) -> UsageError:
        return UsageError(f"{flag} is not possible here: {why}, and {within}{reason}")

    if options.block_size_bytes:
        raise refuse("--block-size", "data has no blocks")
    if options.tuner == PAPER:
        report.note(
            f"--tuner paper is not available: {within}data does not stop between chunks", Severity.NOTICE
        )
    if options.resume and whole_files and options.was_given("resume"):
        raise refuse(
            "--continue", "uploads start at the first byte" if uploads else "it does not support REST"
        )
    streams = options.streams or 1
    if streams > 1 and whole_files:
        raise refuse(f"--streams {streams}", "a file is one connection; give --files instead")
    for flag, count in ((f"--streams {streams}", streams), _first_streams(options)):
        if count > sessions:
            raise refuse(flag, f"each stream needs a session; give --max-sessions {count} too")
    if whole_files and options.files is not None and options.files > sessions:
        raise UsageError(sessions_for_files(options.files))
    check_source_ports(options)
    content = "one whole file" if whole_files else "one part of a file"
    most = counted(sessions, "stream")
    using = f"using {mode} ({why})" if mode else why
    report.note(f"{using}: at most {most}, with one session and {content} each")
    return replace(
        options.with_tuner_auto(),
        resume=options.resume and not whole_files,
        max_streams=min(options.max_streams, sessions),
    )


def _first_streams(options: CopyOptions) -> tuple[str, int]:
    given = options.initial_streams or 1
    return f"--initial-streams {given}", given
