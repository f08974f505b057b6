"""Sends to a client more slowly for a moment, as its datagram asks (echo.py), so that it learns its share."""

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial

from mpx.slowed import Slowed

_log = logging.getLogger(__name__)


class Dipping:
    """All that is sent to a client; clients are told apart by their address."""

    def __init__(self, connections: Callable[[str], Sequence[socket.socket]]) -> None:
        self._connections = connections
        self._slowed: dict[str, Slowed] = {}
        self._busy: set[str] = set()

    def dip(self, host: str, seconds: float, share: float) -> float:
        """Begin one for the client at an address; returns the share of its data that is left out, or 0.

        It is 0 the first time, as nobody knows yet what is sent, and while another lasts. One thread calls
        this.
        """
        if host in self._busy:
            return 0.0
        slowed = self._slowed.setdefault(host, Slowed(partial(self._connections, host)))
        slowed.look()
        if not slowed.slow(share, seconds):
            return 0.0
        self._busy.add(host)
        ending = threading.Timer(seconds, self._end, (host, slowed))
        ending.name, ending.daemon = "mpx-serve-dip", True
        try:
            ending.start()
        except RuntimeError as error:  # no more threads are to be had
            _log.warning("no dip: %s", error)
            self._end(host, slowed)
            return 0.0
        return slowed.depth()

    def forget(self, host: str) -> None:
        """Let go of a client that has left."""
        self._slowed.pop(host, None)

    def _end(self, host: str, slowed: Slowed) -> None:
        slowed.restore()
        self._busy.discard(host)
