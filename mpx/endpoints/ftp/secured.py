"""What a session needs of connections that are not in the clear, whatever makes them so."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket
from mpx.endpoints.ftp.extensions.third_party import Target
from mpx.endpoints.ftp.wire import Reply
from mpx.errors import ConnectionLost, MpxError
from mpx.net import tcp
from mpx.net.dial import Dial

CERTIFICATE, PROXY = "certificate", "proxy"  # of ours, that data connections show


class Dialer(Protocol):
    """Opens the data connections of one channel; from any thread."""

    def open(
        self, address: tcp.Address, dial: Dial, timeout_s: float, stop: Callable[[], bool]
    ) -> socket.socket:
        """Return a connection that is ready for data.

        Raises AuthenticationError where another server answers, ConnectionLost, Interrupted, as `dial`.
        """
        ...


class Secured(Dialer, Protocol):
    """Begins data connections at ordinary ports, the server's and ours; from any thread."""

    def accept(self, connection: socket.socket, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a connection that has come in, ready for data; closed if it is not the server's.

        Raises AuthenticationError, ConnectionLost, Interrupted.
        """
        ...


class TicketedData(Protocol):
    """Data connections of `mpx serve`: we open those of both directions, each with a ticket."""

    def dialer(self, ticket: Ticket, direction: Direction) -> Dialer:
        """Return what opens the data connections of a channel."""
        ...

    def address(self) -> tcp.Address | None:
        """Return where the server is reached without what is in between, if that is known here."""
        ...

    def target(self, ticket: Ticket, peer_host: str) -> Target:
        """Return what another server needs to send to this one, which we reach at `peer_host`.

        Raises ConnectionLost where none can reach it.
        """
        ...


@dataclass(frozen=True, slots=True)
class DataHosts:
    """The addresses of data connections: the server's, and ours that it may connect to (empty: unknown)."""

    server: str
    ours: str


class NoDcsc(ConnectionLost):
    """The server takes no certificate for data connections (DCSC); a new session gives it a proxy of ours."""


class NotSecured(ConnectionLost):
    """A data connection was there, and its handshake failed."""


class Security(Protocol):
    """What the connections of one session have in common. What is written here is that of `mpx serve`."""

    carries_any_name: bool = True  # whatever its bytes, to a Globus server too

    @property
    def login(self) -> tuple[str, str]:
        """What USER and PASS say, once the control channel is open."""
        ...

    def control(
        self, reach: Callable[[], socket.socket], timeout_s: float, stop: Callable[[], bool]
    ) -> socket.socket:
        """Return the control channel, ready for commands; `reach` connects to the server.

        Raises AuthenticationError where it is not the server that is meant, ConnectionLost, Interrupted.
        """
        ...

    @property
    def tickets(self) -> TicketedData | None:
        """How data connections come about; None: by ports, as `secured` says."""
        ...

    @property
    def hosts(self) -> DataHosts | None:
        """Between which addresses data connections are, where the control channel does not tell."""
        return None

    @property
    def is_translated(self) -> bool:
        """Whether the server sees another address of ours than we have, so that it cannot connect to us."""
        return False

    @property
    def settings(self) -> tuple[bytes, ...]:
        """What is sent with the login, for data connections."""
        return ()

    def settled(self, replies: Sequence[Reply]) -> None:
        """Take the answers to `settings`; raises AuthenticationError where no data can pass then."""
        del replies

    def protect(self, *, is_listing: bool) -> tuple[bytes, ...]:  # noqa: ARG002
        """Return what is to be sent before data connections for that are asked for."""
        return ()

    def protected(self, replies: Sequence[Reply]) -> None:
        """Take the answers to what `protect` has returned; raises AuthenticationError if no data may pass."""
        del replies

    @property
    def secured(self) -> Secured | None:
        """How connections at ports begin, after `protect`; None: in the clear."""
        return None

    @property
    def data_identity(self) -> str:
        """What both ends of data connections at ports show of ours; empty: nothing."""
        return ""

    def refused(self, reply: Reply, peer: str) -> MpxError | None:
        """Return what it means that a server refuses the login; None: what it always means."""
        ...

    def close(self) -> None:
        """End what only this session needs."""
        ...
