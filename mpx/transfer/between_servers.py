"""Between two servers: whether data go straight from one to the other (third party), or through this host."""

from dataclasses import replace

from mpx.choices import NEVER, NONE, ONLY, PAPER, PULL, PUSH
from mpx.engine.capabilities import PartsUp, Question, RangeReads, StreamKind
from mpx.errors import UsageError
from mpx.report import Report, Severity
from mpx.transfer import one_is_told
from mpx.transfer.by_service import by_service
from mpx.transfer.congestion_plan import named
from mpx.transfer.ends import Ends
from mpx.transfer.fallback import in_place_where_needed, within_mode_s
from mpx.transfer.straight_way import is_by_service, why_no_straight_way
from mpx.transfer.transport import Transport

_ONE_STREAM = (PartsUp.NONE, PartsUp.TRIED, PartsUp.IN_TURN, PartsUp.NUMBERED)


def choose_between(transport: Transport, ends: Ends, report: Report) -> Transport:
    """Return how data get from one server to another.

    Raises UsageError where they cannot as it was asked for.
    """
    options = transport.options
    if options.third_party == NEVER:
        return through_us(transport, ends, report, f"--third-party {NEVER}")
    if is_by_service(options, ends.near.capabilities, ends.far.capabilities):
        return by_service(transport, ends, report)
    is_told = one_is_told.is_way_of(ends)
    why = why_no_straight_way(ends.near, ends.far)
    if not why and is_told:
        why = one_is_told.why_not(options.third_party, ends)
    if not why and options.rate_bps is not None:
        why = "servers keep to no rate of ours (--rate)"
    if why:
        return through_us(transport, ends, report, why)
    if is_told:
        return one_is_told.straight(transport, ends, report)
    fallbacks = (end.find_out(Question.FALLBACK).fallback for end in (ends.near, ends.far))
    mode_s = next(filter(None, fallbacks), "")
    if options.tuner == PAPER:
        report.note("--tuner paper is not available: servers do not stop between chunks", Severity.NOTICE)
        options = options.with_tuner_auto()
    if mode_s:
        options = within_mode_s(options, report, why=mode_s, uploads=True, restarts=False)
    report.note(f"data go straight from {ends.near.location.host} to {ends.far.location.host}")
    return replace(
        transport,
        options=options,
        is_third_party=True,
        mode_e=not mode_s,
        parts=not mode_s and _may_send_parts(transport, ends),
    )


def after_refusal(transport: Transport, ends: Ends, report: Report, why: str) -> Transport:
    """Return how data go on where servers turn out not to send to each other that way; as choose_between.

    Numbers of streams that were given by hand are not refused any more, as this is found out during the copy:
    they are those of files at once.
    """
    if other := one_is_told.next_way(transport, ends, report, why):
        return other
    if not transport.ways:  # servers of GridFTP, which have as many streams through this host
        return through_us(transport, ends, report, why)
    given, most = transport.options, transport.options.max_sessions
    streams = min(given.streams, most) if given.streams else None
    first = min(given.initial_streams, most) if given.initial_streams else None
    without = replace(transport, options=replace(given, streams=None, initial_streams=None))
    found = through_us(without, ends, report, why)
    return replace(found, options=replace(found.options, streams=streams, initial_streams=first))


def _may_send_parts(transport: Transport, ends: Ends) -> bool:
    """Tell whether parts of files are sent: checksums show that they are those, or both servers are known."""
    source, destination = ends.near.find_out(), ends.far.find_out()
    if not source.sends_parts or destination.parts_up is not PartsUp.OFFSETS:
        return False
    return transport.checksums.rely() or (source.is_faithful and destination.is_faithful)


def through_us(transport: Transport, ends: Ends, report: Report, why: str) -> Transport:
    """Return how data get from one server to another through this host.

    Parts of files only where checksums show that they are those that were asked for. Raises UsageError where
    this is not permitted, or options cannot be applied so.
    """
    if (given := transport.options.third_party) in (ONLY, PULL, PUSH):
        before = f"{transport.way_refused}; nor the other way: " if transport.way_refused else ""
        raise UsageError(f"--third-party {given} is not possible here: {before}{why}")
    source, destination = ends.near.find_out(), ends.far.find_out(Question.FALLBACK)
    streams = source.streams, destination.streams
    are_of_programs = streams == (StreamKind.PROGRAM, StreamKind.PROGRAM)
    mode_e = not destination.fallback
    can = mode_e and destination.parts_up is PartsUp.OFFSETS and source.restarts
    # Where in the file it belongs is stated, or known of each block that passes from program to program.
    is_known = source.reads is RangeReads.STATED or are_of_programs
    parts = can and (is_known or transport.checksums.rely())
    transport.checksums.compare_passed(ends.far.find_out(Question.CHECKSUMS).checksums)
    if report.algorithm == NONE:
        report.algorithm = transport.checksums.of_passed(None) or NONE
    how = "data pass through this host"
    report.note(f"{how}: {why}", Severity.NOTICE)
    mode = "" if are_of_programs or StreamKind.REQUESTS in streams else "MODE S"
    options = within_mode_s(transport.options, report, why=how, mode=mode, uploads=not parts, restarts=parts)
    if destination.streams is StreamKind.REQUESTS:
        options = in_place_where_needed(options, ends, report)
    is_untold = transport.plan.congestion or not destination.owns_streams  # that it is not had
    if is_untold and (name := named(options.congestion)):
        report.note(f"--congestion {name} is not available: {how}", Severity.NOTICE)
    report.decisions = {**report.decisions, "congestion": None}
    return replace(
        transport,
        options=options,
        plan=replace(transport.plan, congestion=None, selects=False),
        congestion=None,
        is_third_party=False,
        ways=(),
        way_refused="",
        mode_e=mode_e,
        one_stream_each=destination.parts_up in _ONE_STREAM,
        parts=parts,
    )
