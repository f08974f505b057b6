"""Downloads in MODE E: a new channel, and the command that tells the server of it."""

import socket
from typing import Protocol

from mpx import choices
from mpx.endpoints.ftp.asked_ahead import TICKET_DOWN
from mpx.endpoints.ftp.data_address import DataPort, ticket_port
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.framing import BlockHeader
from mpx.endpoints.ftp.mode_e.data_dialer import DataDialer
from mpx.endpoints.ftp.mode_e.data_listener import DataListener
from mpx.endpoints.ftp.mode_e.secured_listener import SecuredListener
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import command, port_command
from mpx.engine.carrier import CarrierContext
from mpx.errors import MpxError
from mpx.net import mptcp, tcp

Inbound = DataListener | SecuredListener | DataDialer


class ConnectionTaker(Protocol):
    """What takes the connections of a channel; from any thread, but for `start` and `dial`."""

    context: CarrierContext
    parallelism: int  # how many there are

    def start(self, inbound: Inbound) -> None:
        """Let connections come about as `inbound` makes them, before the server is told."""
        ...

    def dial(self, port: DataPort) -> None:
        """Open the connections, where that is up to us: the server has answered."""
        ...

    def was_reached(self, host: str) -> None:
        """Note that a connection has come in from that host."""
        ...

    def admit(self, connection: socket.socket, header: BlockHeader) -> bool:
        """Take a connection whose first header is this; False if it does not belong here."""
        ...

    def join_dialed(self, connection: socket.socket) -> bool:
        """Take a connection that we have opened, or that has shown who it is; False if it is not wanted."""
        ...

    def fail(self, error: MpxError) -> None:
        """Take why a connection did not come about."""
        ...


def open_channel(control: ClientSession, channel: ConnectionTaker, path: str) -> list[bytes]:
    """Let the connections of a channel on a path come about; return what the server is to be sent for it:

    their number, and where they come about, if it has not told that already.

    The server connects to a port of ours, but inside TLS we connect to it. Raises UsageError when no port is
    free to listen on.
    """
    context, connections = channel.context, channel.parallelism
    over_mptcp = context.streams.over_mptcp
    transport = f"Transport={choices.TRANSPORT};" if over_mptcp and mptcp.FEATURE in control.features else ""
    number = f"Parallelism={connections},{connections},{connections};{transport}"
    opts = command("OPTS", "RETR", number)
    steer = context.streams.paths.register(path, "sink")
    if control.tickets:
        channel.start(
            DataDialer(context, connections, bound=steer, admit=channel.join_dialed, failed=channel.fail)
        )
        # A ticket that came with the login is for so many as a server admits that was told nothing.
        ticket = control.ahead.answer(TICKET_DOWN) if connections == 1 else None
        if ticket is None:
            return [opts, TICKET_DOWN]
        channel.dial(ticket_port(control, ticket, Direction.DOWN))
        return [opts]
    host = context.options.data_address or control.local_host
    listener = tcp.listen(host, context.streams.listen_ports, over_mptcp=over_mptcp)
    if steer:
        steer(int(listener.getsockname()[1]))
    secured = control.security.secured if control.security else None
    inbound: DataListener | SecuredListener
    if secured:
        inbound = SecuredListener(
            listener,
            connections,
            secured,
            context.options.connect_timeout_s,
            connected=channel.was_reached,
            admit=channel.join_dialed,
            stays_open=over_mptcp,
        )
    else:
        inbound = listening(channel, listener, control.peer_host)
    channel.start(inbound)
    return [opts, port_command(inbound.address)]


def listening(channel: ConnectionTaker, listener: socket.socket, server_host: str) -> DataListener:
    """Return what lets connections to `listener` in; `server_host`: most likely their other end."""
    return DataListener(
        listener,
        channel.parallelism,
        server_host=server_host,
        connected=channel.was_reached,
        admit=channel.admit,
        stays_open=channel.context.streams.over_mptcp,
    )
