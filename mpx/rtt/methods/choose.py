"""Which method a target is probed by: the first of these that is answered.

1. The echo of `mpx serve`, where the server announces one: its RTT is that of the network alone.
2. An idle GridFTP session, where a GridFTP or FTP server listens.
3. TCP handshakes, where the port is open or refuses connections.
4. ICMP echo, where TCP is not answered and this user may send it.

The first address whose port is open is taken, then the first that refuses, then the first that answers ICMP
echo: a name often has an IPv6 address while its server listens at the IPv4 one only.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from mpx.endpoints.ftp.extensions import echo as echo_wire
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.wire import command, parse_features
from mpx.errors import AuthenticationError, ConnectionLost, TransferTimeout, UsageError
from mpx.location import Location
from mpx.net import tcp
from mpx.rtt.method import Method
from mpx.rtt.methods.echo import EchoMethod
from mpx.rtt.methods.handshake import HandshakeMethod
from mpx.rtt.methods.icmp import IcmpMethod
from mpx.rtt.methods.session import SessionMethod
from mpx.rtt.runner import Run
from mpx.rtt.schedule import SINGLE_INTERVAL_S, single

LogIn = Callable[[SessionOptions], ClientSession]
ATTEMPTS = 3
_FIRST_NUMBER = 1 << 32  # of attempts, so that a late answer is not taken for one to a probe of the run
TIMEOUT_S = 5.0  # for a greeting; some servers look up the client's name first
_MAIL = re.compile(r"\bE?SMTP\b", re.IGNORECASE)  # they, too, greet with 220 and answer NOOP, for a while


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen method, its address, and why it was chosen; `opened` closes all that was opened for it."""

    method: Method
    address: tcp.Address
    reason: str
    opened: ExitStack
    session: ClientSession | None = None  # that it uses, or that it needs to stay open


def choose(
    host: str,
    addresses: Sequence[tcp.Address],
    stop: Callable[[], bool],
    *,
    is_open: bool = False,
    bound: Callable[[int], None] | None = None,
    log_in: LogIn | None = None,
    why_no_session: str = "",
) -> Chosen:
    """Return how to probe a host that has these addresses.

    Where the port is known to be open (`is_open`), no handshake is tried first. `bound` is told the port of
    the session before that connects, so that it takes a path of its own; datagrams would not. `log_in` opens
    the session where it is not in the clear; then only the echo is used. `why_no_session`: no GridFTP server
    is looked for at an open port. Raises ConnectionLost when nothing answers, and Interrupted soon after
    `stop` returns True.
    """
    with ExitStack() as opened:
        refusing: tuple[Method, tcp.Address] | None = None
        silent: list[tuple[tcp.Address, str]] = []
        for address in addresses:
            handshake = opened.enter_context(closing(HandshakeMethod(address)))
            if why_no_session and (is_open or (_answers(handshake, stop) and handshake.is_open)):
                return Chosen(handshake, address, why_no_session, opened.pop_all())
            if is_open:
                method, reason, session = _at_open_port(handshake, address, opened, stop, bound, log_in)
                return Chosen(method, address, reason, opened.pop_all(), session)
            if not _answers(handshake, stop):
                silent.append((address, f"TCP port {address[1]}: {_trouble(handshake)}"))
            elif handshake.is_open:
                method, reason, session = _at_open_port(handshake, address, opened, stop, log_in=log_in)
                return Chosen(method, address, reason, opened.pop_all(), session)
            else:
                refusing = refusing or (handshake, address)
        if refusing:
            return Chosen(*refusing, "the port is closed, and its resets are timed", opened.pop_all())
        method, address, reason = _over_icmp(host, silent, opened, stop)
        return Chosen(method, address, reason, opened.pop_all())


def _at_open_port(
    handshake: HandshakeMethod,
    address: tcp.Address,
    opened: ExitStack,
    stop: Callable[[], bool],
    bound: Callable[[int], None] | None = None,
    log_in: LogIn | None = None,
) -> tuple[Method, str, ClientSession | None]:
    """Return the best method for an open port, why it is the best, and the session that it needs."""
    try:
        options = SessionOptions(connect_timeout_s=TIMEOUT_S, timeout_s=TIMEOUT_S, stop=stop, bound=bound)
        if log_in is not None:
            session = opened.enter_context(log_in(replace(options, address=address)))
            echo, why_no_echo = _echo(session, address[0], session.features, opened, stop)
            return (echo, "the server announces it", session) if echo else (handshake, why_no_echo, None)
        session = opened.enter_context(ClientSession(Location("ftp", "/", *address), options))
        session.greet()
        if _MAIL.search(session.banner):
            return handshake, "a mail server listens there, whose sessions are not used", None
        reply = session.call(command("FEAT"))
        if reply.code != 211 and not 500 <= reply.code < 600:
            return handshake, f"the server is not an FTP server: it answers FEAT with {reply.code}", None
        echo, why_no_echo = None, "datagrams do not take the path"
        if bound is None:
            features = parse_features(reply) if reply.code == 211 else {}
            if echo_wire.FEATURE in features:  # mpx serve: it ends a session without a login after a minute
                for line in (command("USER", "anonymous"), command("PASS", "mpx@")):
                    session.call(line)
            echo, why_no_echo = _echo(session, address[0], features, opened, stop)
        if echo:
            return echo, "the server announces it", session
        over_session = SessionMethod(session)
        if _answers(over_session, stop):
            return over_session, why_no_echo, session
        return handshake, f"the server's session: {_trouble(over_session)}", None
    except (AuthenticationError, ConnectionLost, TransferTimeout, OSError) as error:
        return handshake, f"no GridFTP session could be opened: {error}", None


def _echo(
    session: ClientSession,
    host: str,
    features: Mapping[str, str],
    opened: ExitStack,
    stop: Callable[[], bool],
) -> tuple[EchoMethod | None, str]:
    """Return the echo that the features of a server announce, if it answers, or else why there is none."""
    place = echo_wire.parse_place(features.get(echo_wire.FEATURE, ""))
    if not place:
        return None, "the server announces no echo"
    try:
        echo = opened.enter_context(
            closing(EchoMethod(session, host, place, can_pulse=echo_wire.PULSE_FEATURE in features))
        )
    except OSError as error:
        return None, f"no socket for the server's echo: {error.strerror}"
    if _answers(echo, stop):
        return echo, ""
    return None, f"the server's echo at UDP port {place.port}: {_trouble(echo)}"


def _over_icmp(
    host: str, silent: list[tuple[tcp.Address, str]], opened: ExitStack, stop: Callable[[], bool]
) -> tuple[Method, tcp.Address, str]:
    """Return ICMP echo to the first address that answers, and why it is chosen; raises ConnectionLost."""
    failures = []
    for address, why in silent:
        try:
            icmp = opened.enter_context(closing(IcmpMethod(address[0])))
        except (UsageError, OSError) as error:
            failures.append(f"{address[0]} ({why}; {error})")
            continue
        if _answers(icmp, stop):
            return icmp, address, why
        failures.append(f"{address[0]} ({why}; ICMP echo: {_trouble(icmp)})")
    raise ConnectionLost(
        f"cannot reach {host}: {', '.join(failures)}; behind a firewall, name an open port, as HOST:22"
    )


def _answers(method: Method, stop: Callable[[], bool]) -> bool:
    """Return whether a method is answered: one of a few probes is enough."""
    run = Run(method, first=_FIRST_NUMBER)
    run.go(single(ATTEMPTS * SINGLE_INTERVAL_S), stop)
    return any(probe.rtt_s is not None for probe in run.probes())


def _trouble(method: Method) -> str:
    return method.trouble or "no answer"
