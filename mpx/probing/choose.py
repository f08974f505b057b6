"""Which way a target is probed: the first of these that is answered, at any of its addresses.

1. The echo of `mpx serve`, where the server announces one: nothing but the network is in the RTT.
2. An idle GridFTP session, where a GridFTP or FTP server greets.
3. TCP handshakes, where the port is open, and else where it refuses.
4. ICMP echo, where TCP stays silent and this user may send it.
"""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from mpx import echo_wire, tcp
from mpx.errors import ConnectionLost, TransferTimeout, UsageError
from mpx.gridftp_session import Session, SessionOptions
from mpx.gridftp_wire import command, parse_features
from mpx.location import Location
from mpx.probing.echo_way import EchoWay
from mpx.probing.handshake_way import HandshakeWay
from mpx.probing.icmp_way import IcmpWay
from mpx.probing.run import Run
from mpx.probing.schedule import SINGLE_INTERVAL_S, single
from mpx.probing.session_way import SessionWay
from mpx.probing.way import Way

ATTEMPTS = 3
_FIRST_NUMBER = 1 << 32  # of attempts: a late answer to one is none to a probe of the run
TIMEOUT_S = 5.0  # for a greeting; some servers first look up who asks


@dataclass(frozen=True, slots=True)
class Chosen:
    """A way that was answered, where, and why it was taken; `opened` closes all that was opened for it."""

    way: Way
    address: tcp.Address
    reason: str
    opened: ExitStack


def choose(host: str, port: int, family: int, stop: Callable[[], bool]) -> Chosen:
    """Return how to probe a host, at the first of its addresses where the best way is to be had.

    Raises ConnectionLost when its name is unknown or nothing answers, UsageError for an address of another
    family than `family`, Interrupted soon after `stop` says so.
    """
    with ExitStack() as opened:
        refusing: tuple[Way, tcp.Address] | None = None
        silent: list[tuple[tcp.Address, str]] = []
        for _, address in tcp.resolve(host, port, family, stop):
            handshake = opened.enter_context(closing(HandshakeWay(address)))
            if not _answers(handshake, stop):
                silent.append((address, f"TCP port {port}: {_trouble(handshake)}"))
            elif handshake.is_open:
                way, reason = _at_open_port(handshake, address, opened, stop)
                return Chosen(way, address, reason, opened.pop_all())
            else:
                refusing = refusing or (handshake, address)
        if refusing:
            return Chosen(*refusing, "nothing listens there, and the reset is the answer", opened.pop_all())
        way, address, reason = _over_icmp(host, silent, opened, stop)
        return Chosen(way, address, reason, opened.pop_all())


def _at_open_port(
    handshake: HandshakeWay, address: tcp.Address, opened: ExitStack, stop: Callable[[], bool]
) -> tuple[Way, str]:
    """Return the best way to a port where somebody listens, and why it is."""
    try:
        options = SessionOptions(connect_timeout_s=TIMEOUT_S, timeout_s=TIMEOUT_S, stop=stop)
        session = opened.enter_context(Session(Location("ftp", "/", *address), options))
        session.greet()
        features = parse_features(session.call(command("FEAT")))
        echo_port = features.get(echo_wire.FEATURE, "")
        why_no_echo = "the server announces no echo"
        if echo_port.isdecimal() and 0 < int(echo_port) < 65536:
            echo = opened.enter_context(closing(EchoWay(session, (address[0], int(echo_port)))))
            if _answers(echo, stop):
                return echo, "the server announces it"
            why_no_echo = f"the server's echo at UDP port {echo_port}: {_trouble(echo)}"
        over_session = SessionWay(session)
        if _answers(over_session, stop):
            return over_session, why_no_echo
        return handshake, f"the server's session: {_trouble(over_session)}"
    except (ConnectionLost, TransferTimeout) as error:
        return handshake, f"no GridFTP session is to be had: {error}"


def _over_icmp(
    host: str, silent: list[tuple[tcp.Address, str]], opened: ExitStack, stop: Callable[[], bool]
) -> tuple[Way, tcp.Address, str]:
    """Return the way to the first address that answers, and why it is taken; raises ConnectionLost."""
    failures = []
    for address, why in silent:
        try:
            icmp = opened.enter_context(closing(IcmpWay(address[0])))
        except UsageError as error:
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
