"""Slows connections of this host down for a moment, by the kernel's pacing (SO_MAX_PACING_RATE)."""

import contextlib
import math
import socket
import time
from collections.abc import Callable, Sequence

from mpx.net import congestion_control, pacing, tcp_info

LEAST_BETWEEN_S = 0.3  # two readings of what was acknowledged: a rate over less time is mostly noise
PIECES = 2  # segments that a kernel sends at once at least when it paces
SEGMENT_BITS = 8 * 1448
LEAST_DEPTH = 0.3  # a smaller reduction shows too little
SHORTEST_RTT_S = 0.0125  # over shorter ones no pulse is made (pulses/pulse.py), and pacing would stay on


class ConnectionPacer:
    """Connections of one peer but for near ones. Their rates are known from the second `measure` on."""

    def __init__(
        self,
        connections: Callable[[], Sequence[socket.socket]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._acknowledged: dict[socket.socket, int] = {}  # bytes, at the last measurement
        self._rates_bps: dict[socket.socket, float] = {}
        self._slow: list[socket.socket] = []
        self._depth = 0.0
        self._measured_s = -math.inf

    def measure(self) -> None:
        """Note what each has had acknowledged since the last call, unless that was just now."""
        now_s, before = self._clock(), self._acknowledged
        since_s = now_s - self._measured_s
        if since_s < LEAST_BETWEEN_S:
            return
        self._measured_s = now_s
        self._acknowledged, rates = {}, {}
        for connection in self._connections():
            info = tcp_info.tcp_info(connection)
            if info is None or info.rtt_s < SHORTEST_RTT_S:
                continue
            self._acknowledged[connection] = info.bytes_acked
            if connection in before:
                rates[connection] = 8 * (info.bytes_acked - before[connection]) / since_s
        self._rates_bps = rates if len(rates) == len(self._acknowledged) else {}  # none, where one is too new

    def moved_bytes(self) -> int:
        """Return how much all connections of the last measurement have had acknowledged."""
        known = (tcp_info.tcp_info(connection) for connection in self._acknowledged)
        return sum(info.bytes_acked for info in known if info is not None)

    def sends_by(self, congestion: str) -> bool:
        """Return whether a connection of the last measurement uses that congestion control."""
        for connection in self._acknowledged:
            with contextlib.suppress(OSError):  # it has ended
                if congestion_control.congestion_of(connection) == congestion:
                    return True
        return False

    def slow(self, share: float, seconds: float) -> bool:
        """Have each send this share of its recent rate, for about so long.

        Returns False, and changes nothing, where the rates are not known or the reduction would be too small.
        """
        self._depth = self._slow_down(share, seconds)
        return self._depth > 0

    def depth(self) -> float:
        """Return by which share all of them reduced their rate the last time."""
        return self._depth

    def _slow_down(self, share: float, seconds: float) -> float:
        rates = self._rates_bps
        total_bps = sum(rates.values())
        if not total_bps:
            return 0.0
        least_bps = PIECES * SEGMENT_BITS / seconds  # else the next piece would come long after the pulse
        paces = {each: max(least_bps, share * rate_bps) for each, rate_bps in rates.items()}
        depth = 1 - sum(min(rate_bps, paces[each]) for each, rate_bps in rates.items()) / total_bps
        if depth < LEAST_DEPTH:
            return 0.0
        for connection, pace_bps in paces.items():
            self._slow.append(connection)
            with contextlib.suppress(OSError):  # it has ended
                pacing.limit_pace(connection, pace_bps)
        return depth

    def restore(self) -> None:
        """Remove the limit."""
        for connection in self._slow:
            with contextlib.suppress(OSError):
                pacing.limit_pace(connection, None)
        self._slow.clear()
