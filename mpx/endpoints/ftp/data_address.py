"""Data connections that we open: the address that a server names, and how we connect to it."""

import contextlib
import ipaddress
import socket
from collections.abc import Iterator, Sequence

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.refusals import reply_error
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.errors import ConnectionLost, OffsetsUnproven, TransferTimeout
from mpx.net import tcp

FIRST_PORT = 1024  # that data may go to


def passive_address(session: ClientSession, settings: Sequence[bytes] = ()) -> tcp.Address:
    """Ask for a port to connect to, and send `settings` in the same write, whatever the answers to these.

    They come behind, as firewalls and translators of addresses look for the port where a segment begins.
    Raises ConnectionLost, TransferTimeout.
    """
    with asking(session):
        reply, *_ = session.pipeline([passive_command(session), *settings])
    return passive_reply(session, reply)


def passive_command(session: ClientSession) -> bytes:
    """Return the command that asks for a port: the first of the usual ones that was not refused before.

    EPSV names no address, so nobody can send us elsewhere with it; PASV is for what has no EPSV, and for
    a server whose word on the address of its data is taken.
    """
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
        in_vain.add(passive_command(session))
        if in_vain.issuperset(_ways(session)):
            in_vain.clear()
        raise


def passive_reply(session: ClientSession, reply: Reply) -> tcp.Address:
    """Read the answer to `passive_command`; where that is refused, or senseless, ask in the other ways.

    Raises ConnectionLost.
    """
    while True:
        try:
            return _named_address(session, reply)
        except _NoneNamed as error:
            session.passive = session.passive[1:]
            if not session.passive:
                raise ConnectionLost(str(error)) from None
        with asking(session):
            reply = session.call(session.passive[0])


def address_from(session: ClientSession, offset: int) -> tcp.Address:
    """Ask for a port and, in the same write, to begin at an offset; return the port's address.

    Raises ConnectionLost, TransferTimeout, and OffsetsUnproven where the server cannot begin there.
    """
    session.has_restarted |= offset > 0  # some servers keep an offset for all that follows
    ask_passive, restart = passive_command(session), command("REST", offset)
    with asking(session):
        replies = session.pipeline([ask_passive, restart] if session.has_restarted else [ask_passive])
    address = passive_reply(session, replies[0])
    if session.has_restarted:
        is_last = passive_command(session) == ask_passive  # nothing else was asked meanwhile
        reply = replies[1] if is_last else session.call(restart)
        if not reply.is_accepted:
            raise OffsetsUnproven(f"{session.peer} cannot start at an offset: {reply.reason}")
    return address


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


def believed_host(named: str, peer: str) -> str:
    """Return where to connect to when a server that we reach at `peer` names `named` and is to be believed.

    Another host is fine: a server may have its data elsewhere. But an address that reaches less far than
    the one we use (private where that is public, loopback where it is not) means nothing here, or something
    that is no business of the server; then, as for 0.0.0.0, it is the server itself.
    """
    return peer if _reach(named) < _reach(peer) else named


def _reach(host: str) -> int:
    """Return how far an address reaches: nowhere, this host, this link, this organisation, everywhere."""
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_unspecified or address.is_multicast or host.startswith("0."):
        return 0
    if address.is_loopback:
        return 1
    if address.is_link_local:
        return 2
    return 4 if address.is_global else 3


def connect_data(
    session: ClientSession, address: tcp.Address, *, congestion: str | None = None, over_mptcp: bool = False
) -> socket.socket:
    """Connect to a port that the server named, as the options of its session say.

    Raises ConnectionLost, Interrupted, and UsageError when no source port is free.
    """
    options = session.options
    try:
        with asking(session):
            return tcp.connect(
                address,
                options.connect_timeout_s,
                source_ports=options.source_ports,
                source_host=options.data_address,
                congestion=congestion,
                paced=True,
                over_mptcp=over_mptcp,
                stop=options.stop,
            )
    except ConnectionLost as error:
        raise unreachable(error, from_server=options.data_address_from_server) from None


def unreachable(error: ConnectionLost, *, from_server: bool) -> ConnectionLost:
    """Return the error of a data connection that could not be opened, with the option that may help.

    `from_server`: that was given already.
    """
    if from_server:
        return error
    return ConnectionLost(
        f"{error}; a server that has its data at another address needs --data-address-from-server"
    )
