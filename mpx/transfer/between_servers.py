"""Between two servers: whether data go straight from one to the other (third party), or through this host."""

from dataclasses import replace

from mpx.choices import NEVER, ONLY, PAPER, PULL, PUSH
from mpx.engine.endpoint import Endpoint
from mpx.errors import UsageError
from mpx.location import WEB_PORTS
from mpx.options import CopyOptions
from mpx.report import Report, Severity
from mpx.transfer import between_web_servers
from mpx.transfer.congestion_plan import named
from mpx.transfer.ends import Ends
from mpx.transfer.fallback import in_place_where_needed, within_mode_s
from mpx.transfer.transport import Transport

STRAIGHT = ("ftp", "gsiftp")  # schemes of servers that are told where to send to, or whom to expect
OURS = ("mpx", "ssh")  # at which mpx serves


def choose_between(transport: Transport, ends: Ends, report: Report) -> Transport:
    """Return how data get from one server to another.

    Raises UsageError where they cannot as it was asked for.
    """
    options = transport.options
    if options.third_party == NEVER:
        return through_us(transport, ends, report, f"--third-party {NEVER}")
    are_web = all(end.location.scheme in WEB_PORTS for end in (ends.near, ends.far))
    why = between_web_servers.why_not_straight(options.third_party, ends) if are_web else ""
    if why := why or why_not_straight(options, ends.near, ends.far):
        return through_us(transport, ends, report, why)
    if are_web:
        return between_web_servers.straight(transport, ends, report)
    mode_s = ends.near.why_fallback() or ends.far.why_fallback()
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
    """Return how data go on where servers turn out not to send to each other that way; as choose_between."""
    return between_web_servers.next_way(transport, ends, report, why) or through_us(
        transport, ends, report, why
    )


def _may_send_parts(transport: Transport, ends: Ends) -> bool:
    """Tell whether parts of files are sent: checksums show that they are those, or both servers are known."""
    servers = ends.near, ends.far
    if not all(server.can_carry_parts() for server in servers):
        return False
    return transport.checksums.rely() or all(server.stores_faithfully() for server in servers)


def through_us(transport: Transport, ends: Ends, report: Report, why: str) -> Transport:
    """Return how data get from one server to another through this host.

    Parts of files only where checksums show that they are those that were asked for. Raises UsageError where
    this is not permitted, or options cannot be applied so.
    """
    if (given := transport.options.third_party) in (ONLY, PULL, PUSH):
        raise UsageError(f"--third-party {given} is not possible here: {why}")
    from_web, to_web = (ends.web_of(end) is not None for end in (ends.near, ends.far))
    are_sftp = all(ends.lanes_of(end) for end in (ends.near, ends.far))
    mode_e = not ends.far.why_fallback()
    can = mode_e and not to_web and ends.far.can_carry_parts() and ends.near.can_restart()
    # What comes by HTTP says where in the file it belongs, and so do the blocks of SFTP.
    parts = can and (from_web or are_sftp or transport.checksums.rely())
    how = "data pass through this host"
    report.note(f"{how}: {why}", Severity.NOTICE)
    mode = "" if are_sftp or from_web or to_web else "MODE S"
    options = within_mode_s(transport.options, report, why=how, mode=mode, uploads=not parts, restarts=parts)
    if to_web:
        options = in_place_where_needed(options, ends, report)
    is_untold = transport.plan.congestion or not ends.far.owns_streams()  # that it is not had
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
        mode_e=mode_e,
        one_stream_each=to_web,
        parts=parts,
    )


def why_not_straight(options: CopyOptions, source: Endpoint, destination: Endpoint) -> str:
    """Return why data do not go straight from one server to the other, as far as that is known here.

    Empty if they may.
    """
    if why := why_no_straight_way(source, destination):
        return why
    if options.rate_bps is not None:
        return "servers keep to no rate of ours (--rate)"
    return ""


def why_no_straight_way(source: Endpoint, destination: Endpoint) -> str:
    """Return why two servers have no way to send to each other; empty if there is one.

    It is by GridFTP, where one is told where to send to, and the other whom to expect; or by HTTP, where one
    is told which URL to copy from or to.
    """
    schemes = source.location.scheme, destination.location.scheme
    if all(scheme in WEB_PORTS for scheme in schemes):
        return ""
    if schemes == ("s3", "s3"):  # of one server, as there is one --endpoint-url
        return ""
    if all(scheme in OURS for scheme in schemes):
        older = next((end for end in (source, destination) if not end.sends_to_servers()), None)
        if older is not None:
            return f"there is no mpx at {older.location.host} that sends to or receives from other servers"
    elif schemes[0] != schemes[1] or schemes[0] not in STRAIGHT:
        return f"servers of {schemes[0]}:// do not send to those of {schemes[1]}://"
    return ""
