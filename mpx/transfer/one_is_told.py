"""Between two servers of which one is told to copy from or to the other (HTTP-TPC): whether, and which."""

import ipaddress
from dataclasses import replace

from mpx.choices import AUTO, ONLY, PAPER, PULL, PUSH
from mpx.engine.capabilities import Question
from mpx.errors import UsageError
from mpx.report import Report, Severity
from mpx.transfer.congestion_plan import named
from mpx.transfer.ends import Ends
from mpx.transfer.fallback import in_place_where_needed
from mpx.transfer.transport import Transport

STREAMS = 4  # of one large file
CHOOSE = "servers choose the congestion control that they send with"
_WAYS = {AUTO: (PULL, PUSH), ONLY: (PULL, PUSH), PULL: (PULL,), PUSH: (PUSH,)}


def is_way_of(ends: Ends) -> bool:
    """Tell whether one of two servers is told to copy, where data go straight."""
    third_party = ends.far.capabilities.third_party
    return third_party is not None and bool(third_party.ways) and not third_party.is_by_service


def why_not(third_party: str, ends: Ends) -> str:
    """Return why neither of two servers copies from or to the other, as far as that is known; or nothing.

    Asks them something, if nobody has: their answers tell what they are.
    """
    near, far = ends.near.location, ends.far.location
    if _is_loopback(near.host) != _is_loopback(far.host):
        return "localhost is another host to the other server"
    for end in (ends.near, ends.far):
        end.find_out(Question.THIRD_PARTY)
    if not _ways(third_party, ends):
        return f"{_told(third_party, ends)} is known not to copy from or to other servers"
    return ""


def straight(transport: Transport, ends: Ends, report: Report) -> Transport:
    """Return how one of two servers copies whole files from or to the other.

    Raises UsageError for what was asked for by hand and cannot be had so.
    """
    options = transport.options
    if options.resume and options.was_given("resume"):
        raise UsageError(f"--continue is not possible here: files begin at their first byte at {ends.host}")
    if options.tuner == PAPER:
        report.note("--tuner paper is not available: servers do not stop between chunks", Severity.NOTICE)
    options = in_place_where_needed(options, ends, report)
    ways = _ways(options.third_party, ends)
    if name := named(options.congestion):
        report.note(f"--congestion {name} is not available: {CHOOSE}", Severity.NOTICE)
    report.decisions = {**report.decisions, "congestion": None}
    report.note(_how(ways[0], ends))
    return replace(
        transport,
        plan=replace(transport.plan, congestion=None, selects=False),
        congestion=None,
        options=replace(options.with_tuner_auto(), resume=False),
        is_third_party=True,
        ways=ways,
        streams_each=options.streams or STREAMS,
        one_stream_each=False,
        mode_e=False,
        parts=False,
    )


def next_way(transport: Transport, ends: Ends, report: Report, why: str) -> Transport | None:
    """Return the other way of copying straight after one was refused; None where there is no other."""
    if len(transport.ways) < 2:
        return None
    ways = transport.ways[1:]
    report.note(f"{_how(ways[0], ends)}: {why}", Severity.NOTICE)
    return replace(transport, ways=ways, way_refused=why)


def _ways(asked: str, ends: Ends) -> tuple[str, ...]:
    """Return the ways that may be tried, of those that were asked for."""
    told = {PULL: ends.far.capabilities.third_party, PUSH: ends.near.capabilities.third_party}
    return tuple(
        way for way in _WAYS[asked] if (server := told[way]) and way in server.ways and server.is_told
    )


def _told(third_party: str, ends: Ends) -> str:
    """Return who would be told, for a message: with ports, as one host may have several servers."""
    hosts = {PULL: ends.far.location.authority, PUSH: ends.near.location.authority}
    return " or ".join(dict.fromkeys(hosts[way] for way in _WAYS[third_party]))


def _how(way: str, ends: Ends) -> str:
    source, destination = ends.near.location.authority, ends.far.location.authority
    told = f"{destination} reads" if way == PULL else f"{source} writes"
    return f"data go straight from {source} to {destination}, as {told} them ({way})"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
