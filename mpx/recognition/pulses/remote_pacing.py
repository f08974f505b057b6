"""Connections of `mpx serve` that send more slowly for a moment, as a datagram asks for."""

import itertools
import socket
from collections.abc import Callable, Sequence

from mpx.net import tcp_info
from mpx.recognition.pulses.local_pacing import LEAST_DEPTH
from mpx.rtt.method import Way
from mpx.rtt.methods.echo import EchoWay

ROUNDING = 1e-6  # of a depth that was added up from many connections


class RemotePacer:
    """What a server sends us over these connections; as LocalPacer, but the server keeps pace and time."""

    def __init__(self, connections: Callable[[], Sequence[socket.socket]]) -> None:
        self._connections = connections
        self._way: EchoWay | None = None
        self._numbers = itertools.count(1)
        self._number, self._asked = 0, 0.0  # of the last one: how deep it was to be

    def over(self, way: Way) -> None:
        """Ask over this way of probing from now on, if it can."""
        self._way = way if isinstance(way, EchoWay) and way.can_dip else None

    @property
    def can(self) -> bool:
        """Whether the server does it."""
        return self._way is not None

    def look(self) -> None:
        """The server looks itself."""

    def moved_bytes(self) -> int:
        """Return what has arrived over all of them."""
        known = (tcp_info.tcp_info(connection) for connection in self._connections())
        return sum(info.bytes_received for info in known if info is not None)

    def slow(self, share: float, seconds: float) -> bool:
        """Ask for it; False where nobody can be asked."""
        if self._way is None:
            return False
        self._number, self._asked = next(self._numbers), 1 - share
        self._way.ask_to_dip(self._number, seconds, share)
        return True

    def restore(self) -> None:
        """The server does so itself."""

    def depth(self) -> float:
        """Return how much less was sent the last time, as a share; 0 where the server has not said so.

        What it cannot have done is not believed: shares of the link are counted by it.
        """
        told = self._way.dipped(self._number) if self._way else 0.0
        return told if LEAST_DEPTH <= told <= self._asked + ROUNDING else 0.0
