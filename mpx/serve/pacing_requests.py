"""Sends to a client more slowly for a moment, as its datagram asks (echo.py), so that it learns its share.

All that is sent to its address is slowed, so all who ask from there share one allowance: however many
sessions one of them opens, less than 4 % is left out of what others at that address are sent (three quarters
of 0.04 s, 1.25 times a second). BBR streams lose more, as others take and keep what they leave: one rate
pulse each second may cost a fifth. So where BBR sends there are only as many as a copy makes that rests in
between.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from mpx.choices import BBR
from mpx.engine.token_bucket import TokenBucket
from mpx.net.connection_pacer import ConnectionPacer

BBR_RATE, BBR_BURST = 0.4, 20  # a copy reads for about 16 s, then rests for 30 s at least (rests.py)
RATE = 1.25  # pulses of one address in a second: one each second is usual, and comes up to 60 ms early

_log = logging.getLogger(__name__)


class PulseService:
    """Rate pulses in all that is sent to a client; clients are told apart by their address."""

    def __init__(
        self,
        connections: Callable[[str], Sequence[socket.socket]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._pacers: dict[str, ConnectionPacer] = {}
        self._allowed: dict[str, TokenBucket] = {}
        self._allowed_bbr: dict[str, TokenBucket] = {}
        self._busy: set[str] = set()

    def begin(self, host: str, seconds: float, share: float) -> float:
        """Begin a pulse for the client at an address; returns the share of its data that is left out, or 0.

        It is 0 the first time, as nobody knows yet what is sent, and for a while after another. One thread
        calls this.
        """
        allowed = self._allowed.setdefault(host, TokenBucket(RATE, burst=1))
        if host in self._busy or not allowed.take(self._clock()):
            return 0.0
        pacer = self._pacers.setdefault(host, ConnectionPacer(partial(self._connections, host), self._clock))
        pacer.measure()
        if pacer.sends_by(BBR):
            of_bbr = self._allowed_bbr.setdefault(host, TokenBucket(BBR_RATE, burst=BBR_BURST))
            if not of_bbr.take(self._clock()):
                return 0.0
        if not pacer.slow(share, seconds):
            return 0.0
        self._busy.add(host)
        ending = threading.Timer(seconds, self._end, (host, pacer))
        ending.name, ending.daemon = "mpx-serve-pulse", True
        try:
            ending.start()
        except RuntimeError as error:  # no more threads are to be had
            _log.warning("no rate pulse: %s", error)
            self._end(host, pacer)
            return 0.0
        return pacer.depth()

    def forget(self, host: str) -> None:
        """Let go of a client that has left."""
        self._pacers.pop(host, None)
        self._allowed.pop(host, None)
        self._allowed_bbr.pop(host, None)

    def _end(self, host: str, pacer: ConnectionPacer) -> None:
        pacer.restore()
        self._busy.discard(host)
