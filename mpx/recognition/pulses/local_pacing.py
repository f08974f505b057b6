"""Connections that send more slowly for a moment, by the pace that the kernel keeps (SO_MAX_PACING_RATE)."""

import contextlib
import math
import socket
import time
from collections.abc import Callable, Sequence

from mpx.net import congestion_control, pacing, tcp_info
from mpx.recognition.pulses.pulse import LEAST_RTT, LEAST_S
from mpx.rtt.method import Way

LEAST_BETWEEN_S = 0.3  # two looks at what was acknowledged: a rate over less is mostly chance
PIECES = 2  # the least that a kernel paces at once, in segments
SEGMENT_BITS = 8 * 1448
LEAST_DEPTH = 0.3  # what is less tells little
SHORTEST_RTT_S = LEAST_RTT * LEAST_S  # over shorter ones no dip tells anything, and the pacing would stay on


class LocalPacer:
    """Connections of one copy but for near ones. What they send is known from the second `look` on."""

    def __init__(
        self,
        connections: Callable[[], Sequence[socket.socket]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._looks: dict[socket.socket, int] = {}  # acknowledged at the last look, bytes
        self._rates_bps: dict[socket.socket, float] = {}
        self._slow: list[socket.socket] = []
        self._depth = 0.0
        self._looked_s = -math.inf

    def over(self, way: Way) -> None:
        """Whatever the way is, we are the sender."""

    def look(self) -> None:
        """Note what each has had acknowledged since the last look, unless that was just now."""
        now_s, before = self._clock(), self._looks
        since_s = now_s - self._looked_s
        if since_s < LEAST_BETWEEN_S:
            return
        self._looked_s = now_s
        self._looks, rates = {}, {}
        for connection in self._connections():
            info = tcp_info.tcp_info(connection)
            if info is None or info.rtt_s < SHORTEST_RTT_S:
                continue
            self._looks[connection] = info.bytes_acked
            if connection in before:
                rates[connection] = 8 * (info.bytes_acked - before[connection]) / since_s
        self._rates_bps = rates if len(rates) == len(self._looks) else {}  # nothing, where one is too new

    @property
    def can(self) -> bool:
        """Whether there are connections of ours that send at all."""
        return True

    def moved_bytes(self) -> int:
        """Return what all of those that were looked at last have had acknowledged."""
        known = (tcp_info.tcp_info(connection) for connection in self._looks)
        return sum(info.bytes_acked for info in known if info is not None)

    def sends_by(self, congestion: str) -> bool:
        """Return whether any of those that were looked at last uses that congestion control."""
        for connection in self._looks:
            with contextlib.suppress(OSError):  # it has ended
                if congestion_control.congestion_of(connection) == congestion:
                    return True
        return False

    def slow(self, share: float, seconds: float) -> bool:
        """Have each send this share of what it has sent lately, for about so long.

        Returns False where it is not known what they have sent, or would be too little less: nothing is
        changed then.
        """
        self._depth = self._slow_down(share, seconds)
        return self._depth > 0

    def depth(self) -> float:
        """Return how much less all of them have sent the last time, as a share."""
        return self._depth

    def _slow_down(self, share: float, seconds: float) -> float:
        rates = self._rates_bps
        total_bps = sum(rates.values())
        if not total_bps:
            return 0.0
        least_bps = PIECES * SEGMENT_BITS / seconds  # or the next piece would be late long after
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
        """Let them send as fast as they may again."""
        for connection in self._slow:
            with contextlib.suppress(OSError):
                pacing.limit_pace(connection, None)
        self._slow.clear()
