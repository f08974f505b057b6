"""Connections that send more slowly for a moment, by the pace that the kernel keeps (SO_MAX_PACING_RATE)."""

import contextlib
import socket
import time
from collections.abc import Callable, Sequence

from mpx import tcp

LEAST_BETWEEN_S = 0.3  # two looks at what was acknowledged: a rate over less is mostly chance
PIECES = 2  # the least that a kernel paces at once, in segments
SEGMENT_BITS = 8 * 1448
LEAST_DEPTH = 0.3  # what is less tells little


class Slowed:
    """Connections of one copy. What they send is known from the second `look` on."""

    def __init__(
        self,
        connections: Callable[[], Sequence[socket.socket]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._looks: dict[socket.socket, tuple[float, int]] = {}
        self._rates_bps: dict[socket.socket, float] = {}
        self._slow: list[socket.socket] = []

    def look(self) -> None:
        """Note what each has had acknowledged since the last look."""
        now_s, before = self._clock(), self._looks
        self._looks, rates = {}, {}
        for connection in self._connections():
            info = tcp.tcp_info(connection)
            if info is None:
                continue
            self._looks[connection] = now_s, info.bytes_acked
            since_s, acked = before.get(connection, (now_s, 0))
            if now_s - since_s >= LEAST_BETWEEN_S:
                rates[connection] = 8 * (info.bytes_acked - acked) / (now_s - since_s)
        self._rates_bps = rates if len(rates) == len(self._looks) else {}  # nothing, where one is too new

    def acked_bytes(self) -> int:
        """Return what all of those that were looked at last have had acknowledged."""
        known = (tcp.tcp_info(connection) for connection in self._looks)
        return sum(info.bytes_acked for info in known if info is not None)

    def slow(self, share: float, seconds: float) -> float:
        """Have each send this share of what it has sent lately, for about so long.

        Returns how much less all of them send, as a share; 0.0 where it is not known what they have sent, or
        would be too little less: nothing is changed then.
        """
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
                tcp.limit_pace(connection, pace_bps)
        return depth

    def restore(self) -> None:
        """Let them send as fast as they may again."""
        for connection in self._slow:
            with contextlib.suppress(OSError):
                tcp.limit_pace(connection, None)
        self._slow.clear()
