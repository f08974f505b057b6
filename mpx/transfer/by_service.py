"""Between two servers of a service that moves the data itself, by tasks of many files (Globus)."""

from dataclasses import replace

from mpx.choices import PAPER, SERVICE
from mpx.errors import UsageError
from mpx.options import flag_of
from mpx.report import Report, Severity
from mpx.transfer.congestion_plan import named
from mpx.transfer.ends import Ends
from mpx.transfer.transport import Transport

TASKS_AT_ONCE = 2
DECIDES = "Globus decides how it moves data"
# Given by hand, they cannot be kept: the service is told none of them.
_NOT_KEPT = ("streams", "initial_streams", "share", "bandwidth_bps", "files", "resume")


def by_service(transport: Transport, ends: Ends, report: Report) -> Transport:
    """Return how a service moves the data; UsageError for what was asked for by hand and cannot be had so."""
    options = transport.options
    for name in _NOT_KEPT:
        if options.was_given(name) and getattr(options, name):
            raise UsageError(f"{flag_of(name)} is not possible here: {DECIDES}; leave it out")
    if options.tuner == PAPER:
        report.note(f"--tuner paper is not available: {DECIDES}", Severity.NOTICE)
    if chosen := named(options.congestion):
        report.note(f"--congestion {chosen} is not available: {DECIDES}", Severity.NOTICE)
    report.decisions = {**report.decisions, "congestion": None}
    places = ends.near.location.authority, ends.far.location.authority
    report.note(f"Globus moves the data from {places[0]} to {places[1]}, not tunable: {DECIDES}")
    report.note(
        "not atomic: Globus stores each file under its final name, where it is until it is whole",
        Severity.WARNING,
    )
    kept = replace(options.with_tuner_auto(), resume=False, in_place=True, streams=TASKS_AT_ONCE)
    return replace(
        transport,
        plan=replace(transport.plan, congestion=None, selects=False),
        congestion=None,
        options=kept,
        is_third_party=True,
        ways=(SERVICE,),
        why_fixed=DECIDES,
        one_stream_each=False,
        mode_e=False,
        parts=False,
    )
