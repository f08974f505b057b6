"""How the data of a copy moves: mode, TCP or Multipath TCP, congestion control, checksums."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from mpx import choices
from mpx.engine.capabilities import StreamKind
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import Rtt
from mpx.net import congestion_control, mptcp
from mpx.options import CopyOptions
from mpx.recognition.policy import why_not_from
from mpx.report import Report, Severity
from mpx.transfer.congestion_plan import SERVER_CHOOSES, Plan, plan
from mpx.transfer.ends import Ends
from mpx.transfer.option_checks import (
    check_congestion,
    check_links,
    choose_checksums,
    choose_checksums_of_service,
)
from mpx.transfer.refusals import check_options
from mpx.transfer.straight_way import is_by_service, is_steered


@dataclass(frozen=True, slots=True)
class Transport:
    """What is decided before data moves; a fallback (fallback.py) makes another."""

    options: CopyOptions  # as far as they can be honoured
    checksums: ChecksumChoice
    rtt: Rtt | None  # on the control channel; None: no network is in between
    plan: Plan
    congestion: str | None  # that streams begin with, as far as it is known
    over_mptcp: bool = False  # streams are of Multipath TCP
    mode_e: bool = True
    is_third_party: bool = False  # data go straight from one server to another
    ways: tuple[str, ...] = ()  # ... in which one of two servers is told to copy, the present one first
    way_refused: str = ""  # ... and why it did not go the way before
    why_fixed: str = ""  # why the number of streams is not ours to choose; empty where it is
    streams_each: int = 1  # ... of one large file
    one_stream_each: bool = False  # a file is one stream, whole
    parts: bool = True  # of files are asked for, where the server can begin within one
    found: Mapping[str, str] = field(
        default_factory=dict
    )  # congestion controls by path, as --probe-first found
    bandwidth_bps: float | None = None  # that the path can carry, by hand or as bursts have shown

    def begins_with(self, path: str) -> str | None:
        """Return what the streams of a path are opened with; None: their kernel's choice."""
        return self.found.get(path, self.plan.congestion)

    def congestion_of(self, path: str) -> str | None:
        """Return the congestion control of the first streams of a path, as far as it is known."""
        return self.found.get(path, self.congestion)


def choose_transport(options: CopyOptions, ends: Ends, report: Report) -> Transport:
    """Return how the data of a copy is to move; its first question also connects and logs in.

    What was asked for by hand and cannot be had is refused (UsageError); what cannot be had of the defaults
    is noted.
    """
    near_server = ends.near if ends.is_between_servers else None
    near = near_server.location if near_server else None
    check_options(options, ends.far.location, far_is_source=ends.far_is_source, near=near)
    over_mptcp = _uses_mptcp(options, ends, report)
    rtt = ends.far.measure_rtt()
    if ends.is_between_servers:
        rtt = _rtt_between(ends.near.measure_rtt(), rtt)
    we_send = not (ends.is_local or ends.far_is_source or ends.is_between_servers)
    chosen = _plan_congestion(options, ends, rtt)
    if chosen.note:
        report.note(chosen.note, chosen.severity)
    if over_mptcp and chosen.selects:  # what is read is one path, and pulses need a pace
        chosen = replace(chosen, selects=False)
        report.note("the background is not read over Multipath TCP, which has several paths")
    if ends.is_between_servers and chosen.selects:
        chosen = replace(chosen, selects=False)
        report.note("the background is not read between two servers: their path is not ours")
    if over_mptcp and chosen.yields:
        report.note("queues are looked for on one path only of those that Multipath TCP uses")
    kernels = rtt.congestion if rtt and we_send else None  # where the server sends, its kernel's is not known
    congestion = chosen.congestion or kernels
    report.decisions = {
        "rtt_s": rtt.asked_s if rtt else None,
        "tcpi_rtt_s": rtt.kernel_s if rtt else None,
        "congestion": congestion,
        "congestion_not_had": chosen.note or None,
    }
    check_congestion(options, why_not_congestion(options, ends, rtt))
    check_links(options, ends.destination)
    if near_server and is_by_service(options, near_server.capabilities, ends.far.capabilities):
        checksums = choose_checksums_of_service(options, report)
    else:
        checksums = choose_checksums(options, [ends.far, near_server] if near_server else [ends.far], report)
    return Transport(
        options,
        checksums,
        rtt,
        chosen,
        congestion,
        over_mptcp,
        mode_e=ends.is_local or ends.far.capabilities.owns_streams,
        bandwidth_bps=options.bandwidth_bps,
    )


def _rtt_between(near: Rtt | None, far: Rtt | None) -> Rtt | None:
    """Return a round-trip time between two servers: as if their path led through us, it is no longer."""
    if near is None or far is None:
        return None
    kernel_s = near.kernel_s + far.kernel_s if near.kernel_s and far.kernel_s else None
    return Rtt(near.asked_s + far.asked_s, kernel_s)


def _uses_mptcp(options: CopyOptions, ends: Ends, report: Report) -> bool:
    """Tell whether streams are to be of Multipath TCP; note where this kernel cannot."""
    if options.transport != choices.TRANSPORT or ends.is_local:
        return False
    if why := mptcp.why_not():
        plain = f"plain TCP instead of Multipath TCP: this kernel cannot, {why}"
        report.note(plain, Severity.NOTICE)
        return False
    report.mptcp = []
    return True


def _plan_congestion(options: CopyOptions, ends: Ends, rtt: Rtt | None) -> Plan:
    """Return what the streams begin with, and whether the background decides later."""
    can = ends.far.capabilities
    by_program = can.sets_congestion and not (ends.far_is_source or ends.is_between_servers)
    if not (can.owns_streams or by_program):
        return Plan(None)
    why_not = why_not_congestion(options, ends, rtt)
    why_not_open = why_not_congestion(options, ends, rtt, are_open=True)
    found = plan(options.congestion, options.policy, why_not, why_not_open)
    if ends.is_between_servers and can.streams is StreamKind.REQUESTS and found.note == SERVER_CHOOSES:
        found = replace(found, note="")  # nothing of which is seen here: servers copy by themselves
    if can.owns_streams:
        return found
    by_losses = can.switches_congestion and found.selects
    return replace(found, selects=False, yields=False, by_losses=by_losses)


def why_not_congestion(
    options: CopyOptions, ends: Ends, rtt: Rtt | None, *, are_open: bool = False
) -> Callable[[str], str] | None:
    """Return what says why a congestion control may not be used; None where the sender is not told.

    `are_open`: of streams that are to be switched.
    """
    if ends.is_between_servers:
        tells = options.third_party != choices.NEVER and is_steered(ends.near, ends.far)
        return ends.near.find_out().why_not_congestion if tells else None
    if ends.far_is_source:
        return ends.far.find_out().why_not_congestion
    route, is_locked = (rtt.congestion, rtt.congestion_is_fixed) if rtt else (None, False)
    return why_not_from(route, congestion_control.why_not_congestion, is_locked=is_locked, are_open=are_open)
