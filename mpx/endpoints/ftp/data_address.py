"""Data connections that we open: the port that a server names, and how we connect to it.

Inside TLS (`mpx://`) there is no further port: what the server names is a ticket, see extensions/dialing.py.
"""

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.extensions import dialing
from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket
from mpx.endpoints.ftp.extensions.third_party import Target
from mpx.endpoints.ftp.refusals import reply_error
from mpx.endpoints.ftp.secured import Dialer, NotSecured
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.errors import ConnectionLost, Interrupted, OffsetsUnproven, TransferTimeout
from mpx.net import tcp
from mpx.net.dial import Dial
from mpx.net.reach import believed_host

FIRST_PORT = 1024  # that data may go to


@dataclass(frozen=True, slots=True)
class DataPort:
    """Where the data connections of a channel go, and how each begins; `dialer`: not in the clear."""

    address: tcp.Address
    dialer: Dialer | None = None

    def open(self, dial: Dial, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a connection that is ready for data; raises as `dial` and Dialer.open."""
        if self.dialer is None:
            return dial.connect(self.address)
        return self.dialer.open(self.address, dial, timeout_s, stop)


def passive_port(session: ClientSession, settings: Sequence[bytes], direction: Direction) -> DataPort:
    """Ask for a port to connect to, and send `settings` in the same write, whatever the answers to these.

    They come behind, as firewalls and translators of addresses look for the port where a segment begins.
    Raises ConnectionLost, TransferTimeout.
    """
    with asking(session):
        reply, *_ = session.protected([passive_command(session, direction), *settings])
    return passive_reply(session, reply, direction)


def passive_command(session: ClientSession, direction: Direction) -> bytes:
    """Return the command that asks for a port: the first of the usual ones that was not refused before.

    EPSV names no address, so nobody can send us elsewhere with it; PASV is for what has no EPSV, and for
    a server whose word on the address of its data is taken.
    """
    if session.tickets:
        return command(dialing.VERB, direction.value)
    if not session.passive:
        in_vain = session.options.unreached
        session.passive = tuple(sorted(_ways(session), key=lambda way: way in in_vain))
    return session.passive[0]


def _ways(session: ClientSession) -> tuple[bytes, ...]:
    extended, plain = command("EPSV"), command("PASV")
    if session.is_ipv6:
        return extended, command("EPSV", "2"), plain
    return (plain, extended) if session.options.data_address_from_server else (extended, plain)


@contextlib.contextmanager
def asking(session: ClientSession) -> Iterator[None]:
    """Have further sessions ask for ports in another way first where this one leads to no connection.

    Firewalls and translators of addresses may know one of the ways only, and end sessions that use the
    other, never answer, or let nobody reach the port.
    """
    try:
        yield
    except (ConnectionLost, TransferTimeout):
        in_vain = session.options.unreached
        if not session.tickets:
            in_vain.add(passive_command(session, Direction.UP))  # in the clear it is the same for both
        if in_vain.issuperset(_ways(session)):
            in_vain.clear()
        raise


def passive_reply(session: ClientSession, reply: Reply, direction: Direction) -> DataPort:
    """Read the answer to `passive_command`; where that is refused, or senseless, ask in the other ways.

    Raises ConnectionLost.
    """
    if session.tickets:
        return ticket_port(session, reply, direction)
    while True:
        try:
            return DataPort(
                _named_address(session, reply), session.security.secured if session.security else None
            )
        except _NoneNamed as error:
            session.passive = session.passive[1:]
            if not session.passive:
                raise ConnectionLost(str(error)) from None
        with asking(session):
            reply = session.call(session.passive[0])


def target_of(receiver: ClientSession) -> Target:
    """Return what another server needs to send to this one, for data channels that begin now.

    Raises ConnectionLost, TransferTimeout.
    """
    reply = receiver.call(passive_command(receiver, Direction.UP))
    assert receiver.tickets  # as servers of ours have
    return receiver.tickets.target(_ticket(receiver, reply), receiver.peer_host)


def ticket_port(session: ClientSession, reply: Reply, direction: Direction) -> DataPort:
    """Read the answer to DATA; raises ConnectionLost."""
    ticket, tickets = _ticket(session, reply), session.tickets
    assert tickets
    address = tickets.address() or (session.peer_host, session.location.port)
    return DataPort(address, tickets.dialer(ticket, direction))


def _ticket(session: ClientSession, reply: Reply) -> Ticket:
    if not session.tickets or not reply.is_ok:
        raise reply_error(reply, f"{session.peer} offers no data connections", ConnectionLost)
    try:
        return dialing.parse_ticket(reply.text)
    except ValueError as error:
        raise ConnectionLost(f"{session.peer} offers {error}") from None


def port_from(session: ClientSession, offset: int, direction: Direction) -> DataPort:
    """Ask for a port and, in the same write, to begin at an offset; return the port.

    Raises ConnectionLost, TransferTimeout, and OffsetsUnproven where the server cannot begin there.
    """
    session.has_restarted |= offset > 0  # some servers keep an offset for all that follows
    ask_passive, restart = passive_command(session, direction), command("REST", offset)
    with asking(session):
        replies = session.protected([ask_passive, restart] if session.has_restarted else [ask_passive])
    port = passive_reply(session, replies[0], direction)
    if session.has_restarted:
        is_last = passive_command(session, direction) == ask_passive  # nothing else was asked meanwhile
        reply = replies[1] if is_last else session.call(restart)
        if not reply.is_accepted:
            raise OffsetsUnproven(f"{session.peer} cannot start at an offset: {reply.reason}")
    return port


class _NoneNamed(Exception):
    """The server may name an address in another way."""


def _named_address(session: ClientSession, reply: Reply) -> tcp.Address:
    try:
        if reply.code == 229:
            named, port = wire.parse_extended_address(reply.text)
        elif reply.code == 227:
            named, port = wire.parse_host_port(reply.text)
        else:
            refused = reply_error(reply, f"{session.peer} offers no port for data", ConnectionLost)
            if 400 <= reply.code < 500:
                raise refused
            raise _NoneNamed(str(refused))
        is_believed = named and session.options.data_address_from_server
        host = believed_host(named, session.peer_host) if is_believed else session.peer_host
    except ValueError as error:
        raise _NoneNamed(f"{session.peer} offers {error}") from None
    if port < FIRST_PORT:
        raise _NoneNamed(
            f"{session.peer} offers port {port} for data; mpx connects to none below {FIRST_PORT}, "
            "where other services listen: have the server use higher ports"
        )
    return host, port


def connect_data(
    session: ClientSession, port: DataPort, *, congestion: str | None = None, over_mptcp: bool = False
) -> socket.socket:
    """Connect to a port that the server named, as the options of its session say.

    Raises ConnectionLost, Interrupted, and UsageError when no source port is free. ConnectionLost, too, where
    a handshake waits for a server that has answered the command already: it does not want the connection.
    """
    options = session.options
    is_secured = port.dialer is not None and session.tickets is None
    try:
        with asking(session):
            return port.open(
                Dial(
                    timeout_s=options.connect_timeout_s,
                    source_ports=options.source_ports,
                    source_host=options.data_address,
                    congestion=congestion,
                    paced=True,
                    over_mptcp=over_mptcp,
                    stop=options.stop,
                ),
                options.connect_timeout_s,
                lambda: options.stop() or (is_secured and session.is_answered),
            )
    except Interrupted:
        if options.stop():
            raise
        raise ConnectionLost(f"{session.peer} did not take a data connection") from None
    except NotSecured:
        raise
    except ConnectionLost as error:
        from_server = options.data_address_from_server or session.tickets is not None
        raise unreachable(error, from_server=from_server) from None


def unreachable(error: ConnectionLost, *, from_server: bool) -> ConnectionLost:
    """Return the error of a data connection that could not be opened, with the option that may help.

    `from_server`: that was given already.
    """
    if from_server:
        return error
    return ConnectionLost(
        f"{error}; a server that has its data at another address needs --data-address-from-server"
    )
