"""Which way a target is probed: the first of these that is answered.

1. The echo of `mpx serve`, where the server announces one: nothing but the network is in the RTT.
2. An idle GridFTP session, where a GridFTP or FTP server greets.
3. TCP handshakes, where the port is open, and else where it refuses.
4. ICMP echo, where TCP stays silent and this user may send it.

The first address whose port is open is taken, then the first that refuses, then the first that answers ICMP
echo: a name often has an IPv6 address while its server listens at the IPv4 one only.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from mpx.endpoints.ftp.extensions import echo as echo_wire
from mpx.endpoints.ftp.session import Session, SessionOptions
from mpx.endpoints.ftp.wire import Reply, command, parse_features
from mpx.errors import ConnectionLost, TransferTimeout, UsageError
from mpx.location import Location
from mpx.net import tcp
from mpx.rtt.method import Way
from mpx.rtt.methods.echo import EchoWay
from mpx.rtt.methods.handshake import HandshakeWay
from mpx.rtt.methods.icmp import IcmpWay
from mpx.rtt.methods.session import SessionWay
from mpx.rtt.runner import Run
from mpx.rtt.schedule import SINGLE_INTERVAL_S, single

ATTEMPTS = 3
_FIRST_NUMBER = 1 << 32  # of attempts: a late answer to one is none to a probe of the run
TIMEOUT_S = 5.0  # for a greeting; some servers first look up who asks
_MAIL = re.compile(r"\bE?SMTP\b", re.IGNORECASE)  # they too greet with 220 and answer NOOP, for a while


@dataclass(frozen=True, slots=True)
class Chosen:
    """A way that was answered, where, and why it was taken; `opened` closes all that was opened for it."""

    way: Way
    address: tcp.Address
    reason: str
    opened: ExitStack
    session: Session | None = None  # that it goes over, or that keeps it


def choose(
    host: str, addresses: Sequence[tcp.Address], stop: Callable[[], bool], *, is_open: bool = False
) -> Chosen:
    """Return how to probe a host that has these addresses.

    Where it is known that the port `is_open` nobody knocks there first. Raises ConnectionLost when nothing
    answers, and Interrupted soon after `stop` says so.
    """
    with ExitStack() as opened:
        refusing: tuple[Way, tcp.Address] | None = None
        silent: list[tuple[tcp.Address, str]] = []
        for address in addresses:
            handshake = opened.enter_context(closing(HandshakeWay(address)))
            if is_open:
                way, reason, session = _at_open_port(handshake, address, opened, stop)
                return Chosen(way, address, reason, opened.pop_all(), session)
            if not _answers(handshake, stop):
                silent.append((address, f"TCP port {address[1]}: {_trouble(handshake)}"))
            elif handshake.is_open:
                way, reason, session = _at_open_port(handshake, address, opened, stop)
                return Chosen(way, address, reason, opened.pop_all(), session)
            else:
                refusing = refusing or (handshake, address)
        if refusing:
            return Chosen(*refusing, "nothing listens there, and the reset is the answer", opened.pop_all())
        way, address, reason = _over_icmp(host, silent, opened, stop)
        return Chosen(way, address, reason, opened.pop_all())


def _at_open_port(
    handshake: HandshakeWay, address: tcp.Address, opened: ExitStack, stop: Callable[[], bool]
) -> tuple[Way, str, Session | None]:
    """Return the best way to a port where somebody listens, why it is, and the session that it needs."""
    try:
        options = SessionOptions(connect_timeout_s=TIMEOUT_S, timeout_s=TIMEOUT_S, stop=stop)
        session = opened.enter_context(Session(Location("ftp", "/", *address), options))
        session.greet()
        if _MAIL.search(session.banner):
            return handshake, "a mail server listens there, and its sessions are not for that", None
        told = session.call(command("FEAT"))
        if told.code != 211 and not 500 <= told.code < 600:
            return handshake, f"who answers FEAT with {told.code} is no FTP server", None
        echo, why_no_echo = _echo(session, address[0], told, opened, stop)
        if echo:
            return echo, "the server announces it", session
        over_session = SessionWay(session)
        if _answers(over_session, stop):
            return over_session, why_no_echo, session
        return handshake, f"the server's session: {_trouble(over_session)}", None
    except (ConnectionLost, TransferTimeout, OSError) as error:
        return handshake, f"no GridFTP session is to be had: {error}", None


def _echo(
    session: Session, host: str, told: Reply, opened: ExitStack, stop: Callable[[], bool]
) -> tuple[EchoWay | None, str]:
    """Return the echo that the features of a server announce, if it answers, or else why there is none."""
    features = parse_features(told) if told.code == 211 else {}
    place = echo_wire.parse_place(features.get(echo_wire.FEATURE, ""))
    if not place:
        return None, "the server announces no echo"
    for line in (command("USER", "anonymous"), command("PASS", "mpx@")):
        session.call(line)  # mpx serve lets anybody in, and ends a session without a login after a minute
    try:
        echo = opened.enter_context(
            closing(EchoWay(session, host, place, can_dip=echo_wire.DIP_FEATURE in features))
        )
    except OSError as error:
        return None, f"no socket for the server's echo: {error.strerror}"
    if _answers(echo, stop):
        return echo, ""
    return None, f"the server's echo at UDP port {place.port}: {_trouble(echo)}"


def _over_icmp(
    host: str, silent: list[tuple[tcp.Address, str]], opened: ExitStack, stop: Callable[[], bool]
) -> tuple[Way, tcp.Address, str]:
    """Return the way to the first address that answers, and why it is taken; raises ConnectionLost."""
    failures = []
    for address, why in silent:
        try:
            icmp = opened.enter_context(closing(IcmpWay(address[0])))
        except (UsageError, OSError) as error:
            failures.append(f"{address[0]} ({why}; {error})")
            continue
        if _answers(icmp, stop):
            return icmp, address, why
        failures.append(f"{address[0]} ({why}; ICMP echo: {_trouble(icmp)})")
    raise ConnectionLost(
        f"cannot reach {host}: {', '.join(failures)}; if a firewall keeps us out, name a port that it lets "
        "through, as HOST:22"
    )


def _answers(way: Way, stop: Callable[[], bool]) -> bool:
    """Tell whether a way is answered: one of a few probes may be lost."""
    run = Run(way, first=_FIRST_NUMBER)
    run.go(single(ATTEMPTS * SINGLE_INTERVAL_S), stop)
    return any(probe.rtt_s is not None for probe in run.probes())


def _trouble(way: Way) -> str:
    return way.trouble or "no answer"
