"""The constants of the adaptive tuner, each with its reason. Where they come from: docs/tuner.md."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A time: so many seconds or so many RTT, whichever is longer."""

    seconds: float
    rtts: float

    def at(self, rtt_s: float) -> float:
        """Return how many seconds it is where the RTT is `rtt_s`."""
        return max(self.seconds, self.rtts * rtt_s)


# Facts of TCP.
SEGMENT_BYTES = 1448  # payload of a full segment on Ethernet
LATE_ACK_S = 0.08  # over the segments of a window: two of them wait 40 ms for one acknowledgement

# Times.
UNKNOWN_RTT_S = 0.05  # until the RTT is known
RAMP = Span(0.3, 12.0)  # new streams are judged after this; a silence of that length is a stall
QUICK = Span(0.3, 7.0)  # by what they carried in the last of it; so soon queues and their losses are seen
SLOW = Span(2.0, 20.0)  # all other comparisons take means over this
REST = Span(3.0, 40.0)  # before a trial, until losses count, at most for a trial of fewer; 2x kept
PATIENCE = Span(3.5, 20.0)  # two lost SYNs, then streams that are not open are given up
SHOWS_S = 0.5  # what a step has brought shows in so long
WAIT_S, RAREST_S = 5.0, 60.0  # until the next trial of more, after one in vain: at first, and at most
LONGEST_S = 120.0  # what was learnt longer ago no longer counts: the path may carry more since

# Numbers of streams, and factors of them.
MANY = 16  # twice as many make a queue overflow where windows limit them
STEP = 2.0  # while more streams carry more
UP = 1.4  # of trials, up and down: the least that shows; by so much they grow rarer
SPARE = 1.1  # more than the bend, as real curves are round there
MOST = 0.85  # of the streams: as good as all, too near the bend to change; of the goodput: a trial may go on

# Goodput, in powers of the factor of the streams, or in shares.
GAIN = 0.5  # by that power more streams have gained ...
MUCH = 0.75  # ... and by that the bend is farther up; losses that grow by more are a policer's (CUBIC: 1.33)
AS_MUCH = 0.97  # that share is as much
SHORT = 0.93  # less than that share of what the path carries is too little
FELL = 0.5  # less than that share soon after a step up ends it
COST = 0.01  # the share that trials of fewer streams may cost
ENDING = 3.0  # no step when less is left than that many times what is moved until it shows

# Queues, windows, losses.
QUEUE = Span(0.001, 0.02)  # a queue is longer than this ...
LONG_QUEUE = 0.1  # ... and long beyond that share of the RTT: routers that keep queues short leave less
MOSTLY = 0.5  # the path is full, or windows are the limit, if they are for that share of the time
LOSSY = 0.1  # no more streams while more than that share is sent again
LOSSES = 20  # so many are needed for an answer
FEW = 3  # losses more or less say nothing
ALIKE = 2.0  # shares of losses that differ by less are alike
