"""The counters of a connection that receives: the kernel counts only what is sent."""

import math

from mpx.engine.stream import StreamCounters, StreamTotals
from mpx.net.tcp_info import tcp_info

RTT_STEP_S = 0.001  # of the kernel's round trips of what it receives


class ReceivingCounters(StreamCounters):
    """As StreamCounters, of what arrives. `new_bytes` is written by the thread that receives."""

    new_bytes = 0  # that had not come before
    _shortest_s = math.inf  # of the round trips of what came

    def totals(self) -> StreamTotals:
        """Return the counters; what arrived is counted by us."""
        with self._guard:
            self._count_subflows()
            totals = StreamTotals(bytes=self.passed_bytes, new_bytes=self.new_bytes)
            if self.connection is None:
                return totals
            totals.streams = 1
            info = tcp_info(self.connection)
            if info is not None and info.received_rtt_s:
                self._shortest_s = min(self._shortest_s, info.received_rtt_s)
                totals.rtts_s = (info.received_rtt_s,)
                totals.least_rtt_s = min(info.least_rtt_s or math.inf, self._shortest_s + RTT_STEP_S)
            return totals
