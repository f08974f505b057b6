"""What a session needs of connections that are not in the clear, whatever makes them so."""

import socket
from collections.abc import Callable
from typing import Protocol

from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket
from mpx.net import tcp

Connect = Callable[[tcp.Address], socket.socket]


class Dialer(Protocol):
    """Opens the data connections of one channel; from any thread."""

    def open(
        self, address: tcp.Address, connect: Connect, timeout_s: float, stop: Callable[[], bool]
    ) -> socket.socket:
        """Return a connection that is ready for data; `connect` reaches an address.

        Raises AuthenticationError where another server answers, ConnectionLost, Interrupted, as `connect`.
        """
        ...


class Security(Protocol):
    """What the connections of one session have in common."""

    @property
    def secret(self) -> str:
        """What the login says, once the control channel is open."""
        ...

    def control(
        self, reach: Callable[[], socket.socket], timeout_s: float, stop: Callable[[], bool]
    ) -> socket.socket:
        """Return the control channel, ready for commands; `reach` connects to the server.

        Raises AuthenticationError where it is not the server that is meant, ConnectionLost, Interrupted.
        """
        ...

    def dialer(self, ticket: Ticket, direction: Direction) -> Dialer:
        """Return what opens the data connections of a channel."""
        ...

    def address(self) -> tcp.Address | None:
        """Return where the server is reached without what is in between, if that is known here."""
        ...

    def close(self) -> None:
        """End what only this session needs."""
        ...
