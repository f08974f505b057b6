"""Connections to our own server at the other end of ssh."""

import socket
from collections.abc import Callable

from mpx.endpoints.ftp.extensions.dialing import TOKEN_USER, Direction, Ticket
from mpx.endpoints.ftp.extensions.third_party import MOST_ADDRESSES, Target
from mpx.endpoints.ftp.openings import Openings
from mpx.endpoints.ftp.secured import Security
from mpx.endpoints.ftp.ssh.options import SshOptions
from mpx.endpoints.ftp.ssh.remote_server import RemoteServer
from mpx.endpoints.ftp.ssh.servers import RemoteServers
from mpx.endpoints.ftp.token_security import token_refused
from mpx.endpoints.ftp.wire import Reply
from mpx.errors import ConnectionLost, MpxError
from mpx.location import Location
from mpx.net import tcp
from mpx.net.dial import Dial


class SshSecurity(Security):
    """See Security: who has an account there has started the server, and is let in by it."""

    def __init__(self, location: Location, options: SshOptions) -> None:
        self._own = RemoteServers() if options.servers is None else None
        servers = self._own or options.servers
        assert servers
        self._remote = servers.at(location, options.program, options.data_ports)

    @property
    def login(self) -> tuple[str, str]:
        """See Security."""
        return TOKEN_USER, self._remote.secret

    @property
    def tickets(self) -> "SshSecurity":
        """See Security."""
        return self

    def control(
        self,
        reach: Callable[[], socket.socket],  # noqa: ARG002  ssh does
        timeout_s: float,
        stop: Callable[[], bool],
    ) -> socket.socket:
        """See Security: ssh reaches the server."""
        return self._remote.control(timeout_s, stop)

    def dialer(self, ticket: Ticket, direction: Direction) -> "_SshDialer":
        """See Security."""
        return _SshDialer(self._remote, ticket, direction)

    def address(self) -> tcp.Address | None:
        """See Security: where it answers directly."""
        return self._remote.direct

    def target(self, ticket: Ticket, peer_host: str) -> Target:  # noqa: ARG002  which may be that of an ssh
        """See Security. Where we cannot reach the server directly another one may."""
        addresses = self._remote.addresses()
        if not addresses:
            raise ConnectionLost(f"no address of {self._remote.name} is known, where others could reach it")
        key, pem = self._remote.guest()
        return Target(addresses[:MOST_ADDRESSES], key, ticket, pem)

    def refused(self, reply: Reply, peer: str) -> MpxError | None:
        """See Security."""
        return token_refused(reply, peer)

    def close(self) -> None:
        """See Security."""
        if self._own:
            self._own.close()


class _SshDialer:
    """See Dialer."""

    def __init__(self, remote: RemoteServer, ticket: Ticket, direction: Direction) -> None:
        self._remote = remote
        self._openings = Openings(ticket, direction)

    def open(
        self,
        address: tcp.Address,  # noqa: ARG002  the server has told
        dial: Dial,
        timeout_s: float,
        stop: Callable[[], bool],
    ) -> socket.socket:
        """See Dialer: directly, where the server answers so, else through ssh."""
        connection = self._remote.data(dial, timeout_s, stop)
        self._openings.send(connection, self._remote.name)
        return connection
