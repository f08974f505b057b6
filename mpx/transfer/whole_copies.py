"""How data move where a program copies each file as a whole, and is told no more than from where to where."""

from dataclasses import replace

from mpx.choices import NEVER, NONE, ONLY, PAPER, SCAVENGER
from mpx.errors import UsageError
from mpx.report import Report, Severity
from mpx.transfer.congestion_plan import SERVER_CHOOSES, named
from mpx.transfer.ends import Ends
from mpx.transfer.fallback import in_place_where_needed
from mpx.transfer.transport import Transport

STREAMS = 4  # of one file, where servers have several between them


def to_whole_copies(transport: Transport, ends: Ends, report: Report) -> Transport:
    """Return how a program (gfal2) copies whole files, from, to or between servers.

    Raises UsageError for what was asked for by hand and cannot be had so.
    """
    options, can = transport.options, ends.far.capabilities
    refused = {
        "--continue": options.resume and options.was_given("resume"),
        "--rate": options.rate_bps is not None,
        f"--policy {SCAVENGER}": options.policy == SCAVENGER,
    }
    if flag := next((flag for flag, is_asked in refused.items() if is_asked), ""):
        raise UsageError(f"{flag} is not possible here: {can.why_program}, each file as a whole")
    if options.checksum == NONE:
        raise UsageError(
            f"--checksum none is not possible here: what {can.program} copies is always compared"
        )
    if ends.is_between_servers and options.tuner == PAPER:
        report.note("--tuner paper is not available: data does not stop between chunks", Severity.NOTICE)
    if options.in_place and not ends.far_is_source:
        named_at_once = "not atomic: each file appears under its final name while it is stored (--in-place)"
        report.note(named_at_once, Severity.WARNING)
    elif not ends.far_is_source:
        options = in_place_where_needed(options, ends, report)
    is_ours = not (ends.far_is_source or ends.is_between_servers)  # who sends
    if not is_ours and (name := named(options.congestion)):
        report.note(f"--congestion {name} is not available: {SERVER_CHOOSES}", Severity.NOTICE)
    if ends.is_between_servers:
        source, destination = ends.near.location.authority, ends.far.location.authority
        where = {ONLY: "straight", NEVER: "through this host"}.get(
            options.third_party, "straight where they can, else through this host"
        )
        report.note(f"{can.program} copies from {source} to {destination}: {where}")
    report.note(f"{can.why_program}, each file as a whole; its streams are not tuned (tunable=False)")
    return replace(
        transport,
        options=replace(options.with_tuner_auto(), resume=False),
        plan=replace(transport.plan, selects=False, yields=False),
        is_third_party=ends.is_between_servers,
        streams_each=options.streams or STREAMS,
        one_stream_each=True,
        mode_e=False,
        parts=False,
    )
