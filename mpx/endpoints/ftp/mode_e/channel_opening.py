"""Downloads in MODE E: a new channel, and the command that tells the server of it."""

import socket

from mpx import choices
from mpx.endpoints.ftp.asked_ahead import TICKET_DOWN
from mpx.endpoints.ftp.data_address import ticket_port
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.mode_e.data_dialer import DataDialer
from mpx.endpoints.ftp.mode_e.data_listener import DataListener
from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.endpoints.ftp.mode_e.secured_listener import SecuredListener
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import command, port_command
from mpx.engine.carrier import CarrierContext
from mpx.net import mptcp, tcp


def open_channel(
    control: ClientSession, context: CarrierContext, path: str, connections: int
) -> tuple[DownloadDataChannel, list[bytes]]:
    """Return a channel of so many connections on a path, and what the server is to be sent for it:

    their number, and where they come about, if it has not told that already.

    The server connects to a port of ours, but inside TLS we connect to it. Raises UsageError when no port is
    free to listen on.
    """
    over_mptcp = context.streams.over_mptcp
    transport = f"Transport={choices.TRANSPORT};" if over_mptcp and mptcp.FEATURE in control.features else ""
    number = f"Parallelism={connections},{connections},{connections};{transport}"
    opts = command("OPTS", "RETR", number)
    steer = context.streams.paths.register(path, "sink")
    channel = DownloadDataChannel(context, connections, control.peer_host, path=path)
    if control.tickets:
        channel.start(
            DataDialer(context, connections, bound=steer, admit=channel.join_dialed, failed=channel.fail)
        )
        # A ticket that came with the login is for so many as a server admits that was told nothing.
        ticket = control.ahead.answer(TICKET_DOWN) if connections == 1 else None
        if ticket is None:
            return channel, [opts, TICKET_DOWN]
        channel.dial(ticket_port(control, ticket, Direction.DOWN))
        return channel, [opts]
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
    return channel, [opts, port_command(inbound.address)]


def listening(channel: DownloadDataChannel, listener: socket.socket, server_host: str) -> DataListener:
    """Return what lets connections to `listener` in; `server_host`: most likely their other end."""
    return DataListener(
        listener,
        channel.parallelism,
        server_host=server_host,
        connected=channel.was_reached,
        admit=channel.admit,
        stays_open=channel.context.streams.over_mptcp,
    )
