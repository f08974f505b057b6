"""What round trips show: times in round trips, and whether a queue stands."""

import enum
import math
from dataclasses import dataclass

SEGMENT_BYTES = 1448  # payload of a full segment on Ethernet
LATE_ACK_S = 0.08  # two segments wait 40 ms for one acknowledgement


@dataclass(frozen=True, slots=True)
class Span:
    """A time: so many seconds or so many RTT, whichever is longer."""

    seconds: float
    rtts: float

    def at(self, rtt_s: float) -> float:
        """Return how many seconds it is where the RTT is `rtt_s`."""
        return max(self.seconds, self.rtts * rtt_s)


QUEUE = Span(0.001, 0.02)  # a queue is longer than this
USUAL_S = 5.0  # over which a stream's usual round trip is a mean
SHOWS = Span(0.3, 7.0)  # so soon a queue shows, and what was lost in it is missed


def least_queue_s(stream_bps: float, rtt_s: float) -> float:
    """Return by how much round trips are longer at least where a queue counts, seconds.

    Receivers acknowledge every other segment, and one alone only after 40 ms; so where windows are a few
    segments, the smoothed RTT is longer than the path by a part of these.
    """
    segments = max(1.0, stream_bps * rtt_s / 8 / SEGMENT_BYTES)
    return max(QUEUE.at(rtt_s), LATE_ACK_S / segments)


class Queueing(enum.Enum):
    """Where a stream carried something, and lost some of it."""

    CLEAR = enum.auto()
    QUEUED = enum.auto()  # while a queue stood in its way
    UNTOLD = enum.auto()  # its window is so small that queues come and go between two looks


class InQueue:
    """Tells of one stream whether a queue stands in its way that it does not always meet.

    By its own round trips, as routers may have a queue for each stream, against what they usually are: late
    acknowledgements lengthen those of small windows all the time.
    """

    def __init__(self) -> None:
        self._looked_s: float | None = None
        self._queued_s = -math.inf  # when a queue showed last
        self._usual_rtt_s = self._usual_bps = 0.0

    def place(self, now_s: float, rtt_s: float, least_s: float, carried_bytes: int) -> Queueing:
        """Return where what was carried since the last look counts.

        `rtt_s`, `least_s`: the smoothed round trip, and the shortest; 0: unknown.
        """
        took_s = USUAL_S if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        if not least_s or took_s <= 0:
            return Queueing.UNTOLD
        weight = min(1.0, took_s / USUAL_S)
        self._usual_rtt_s += weight * (rtt_s - self._usual_rtt_s)
        self._usual_bps += weight * (8 * carried_bytes / took_s - self._usual_bps)
        if rtt_s > self._usual_rtt_s + QUEUE.at(least_s):
            self._queued_s = now_s
        # A window grows by a segment a round trip at least, from half of what it was (RFC 5681).
        window = self._usual_bps * least_s / 8 / SEGMENT_BYTES
        if window / 2 * least_s < 2 * SHOWS.at(least_s):
            return Queueing.UNTOLD
        return Queueing.QUEUED if now_s - self._queued_s <= SHOWS.at(least_s) else Queueing.CLEAR
