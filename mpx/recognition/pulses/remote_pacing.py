"""Connections of `mpx serve` that send more slowly for a moment, on request by datagram."""

import itertools
import socket
from collections.abc import Callable, Sequence

from mpx.net import tcp_info
from mpx.net.connection_pacer import LEAST_DEPTH
from mpx.rtt.method import Method
from mpx.rtt.methods.echo import EchoMethod

ROUNDING = 1e-6  # of a depth that is a sum over many connections


class RemotePacer:
    """As LocalPacer, for data that a server sends us: the server paces its connections and keeps the time."""

    def __init__(self, connections: Callable[[], Sequence[socket.socket]]) -> None:
        self._connections = connections
        self._method: EchoMethod | None = None
        self._numbers = itertools.count(1)
        self._number, self._asked = 0, 0.0  # of the last request: its number, and the depth that it asks for

    def over(self, method: Method) -> None:
        """Send requests by this method of probing from now on, if it can."""
        self._method = method if isinstance(method, EchoMethod) and method.can_pulse else None

    @property
    def can(self) -> bool:
        """Whether the server offers pulses."""
        return self._method is not None

    def measure(self) -> None:
        """See Pacing: the server does so itself."""

    def moved_bytes(self) -> int:
        """Return how much has arrived over all of them."""
        known = (tcp_info.tcp_info(connection) for connection in self._connections())
        return sum(info.bytes_received for info in known if info is not None)

    def slow(self, share: float, seconds: float) -> bool:
        """Send the request; return False where the server does not offer pulses."""
        if self._method is None:
            return False
        self._number, self._asked = next(self._numbers), 1 - share
        self._method.request_pulse(self._number, seconds, share)
        return True

    def restore(self) -> None:
        """See Pacing: the server does so itself."""

    def depth(self) -> float:
        """Return by which share the rate was reduced the last time; 0 where the server has not confirmed it.

        A depth that it cannot have had is ignored, as shares of the link are computed from it.
        """
        depth = self._method.pulse_depth(self._number) if self._method else 0.0
        return depth if LEAST_DEPTH <= depth <= self._asked + ROUNDING else 0.0
