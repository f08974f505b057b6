"""Data connections that we open: the address that a server names, and how we connect to it."""

import ipaddress
import socket

from mpx import gridftp_wire as wire
from mpx import tcp
from mpx.errors import ConnectionLost
from mpx.gridftp_refusals import reply_error
from mpx.gridftp_session import Session
from mpx.gridftp_wire import Reply, command


def passive_address(session: Session) -> tcp.Address:
    """Ask for a port to connect to: EPSV over IPv6, PASV otherwise; raises ConnectionLost."""
    return passive_reply(session, session.call(passive_command(session)))


def passive_command(session: Session) -> bytes:
    """Return the command whose answer names such a port."""
    return command("EPSV", "2") if session.is_ipv6 else command("PASV")


def passive_reply(session: Session, reply: Reply) -> tcp.Address:
    """Read the answer to EPSV or PASV; raises ConnectionLost."""
    try:
        if reply.code == 229:
            return session.peer_host, wire.parse_extended_address(reply.text)[1]
        if reply.code == 227:
            host, port = wire.parse_host_port(reply.text)
            return believed_host(host, session.peer_host), port
    except ValueError as error:
        raise ConnectionLost(f"{session.peer} offers {error}") from None
    raise reply_error(reply, f"{session.peer} offers no port for data", ConnectionLost)


def believed_host(named: str, peer: str) -> str:
    """Return where to connect to when a server that we reach at `peer` names `named` for data.

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
    session: Session, address: tcp.Address, *, congestion: str | None = None, over_mptcp: bool = False
) -> socket.socket:
    """Connect to a port that the server named, as the options of its session say.

    Raises ConnectionLost, Interrupted, and UsageError when no source port is free.
    """
    options = session.options
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
