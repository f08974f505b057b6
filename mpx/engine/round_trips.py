"""What round trips show: times in round trips, and whether a queue stands."""

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
SHOWS = Span(0.3, 7.0)  # so soon a queue shows, and what was lost in it is missed


def least_queue_s(stream_bps: float, rtt_s: float) -> float:
    """Return by how much round trips are longer at least where a queue counts, seconds.

    Receivers acknowledge every other segment, and one alone only after 40 ms; so where windows are a few
    segments, the smoothed RTT is longer than the path by a part of these.
    """
    segments = max(1.0, stream_bps * rtt_s / 8 / SEGMENT_BYTES)
    return max(QUEUE.at(rtt_s), LATE_ACK_S / segments)
