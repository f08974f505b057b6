"""A dip: for a moment we send less. What becomes of the queue and of our data tells our share of the link.

While a queue keeps a link of C bit/s busy, the queueing delay changes by what all send over C, less one, each
second. When we alone leave out `depth` of what we send, it falls by `depth` times our share in each second:
within a round trip nobody else can know of it. Alone nothing of our goodput is missing, as the queue goes on
to feed the link; beside others, who take our place in it, `depth` times their share is. Nothing else tells
alone from beside streams that fall whenever we fall: our goodput is as steady. Where no queue keeps the link
busy, it does not fall, and all that we leave out is missing. As a queue does not run empty, little is lost.
Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mpx.rtt.series import Probe

DEPTH = 0.75  # of what we send
OF_QUEUE = 0.8  # lasts so much of the queueing delay: even if all of the queue is ours, two fifths stay
LEAST_S, MOST_S = 0.005, 0.04
LEAST_RTT = 2.5  # of these in a round trip
PROBES = 4  # before it, and again at its end
SPACING_S = 0.001  # between these
AROUND_S = 2 * PROBES * SPACING_S  # they are sent within that time
MARGIN_S = 0.005  # before and after the time when what is missing does not arrive
FEWEST = 2  # probes with an answer


@dataclass(frozen=True, slots=True)
class Look:
    """What had been moved of all our data at a time."""

    t_s: float
    moved_bytes: int  # acknowledged, or received where the other side sends


@dataclass(frozen=True, slots=True)
class RatePulse:
    """One that was made; times on the clock of the probes.

    The looks are at its beginning, and before and after what is missing does not arrive.
    """

    from_s: float
    until_s: float
    depth: float  # the share of what we sent that was left out
    looks: tuple[Look, Look, Look]


@dataclass(frozen=True, slots=True)
class QueueResponse:
    """What a dip told: our share of the link as the queue has it, and as our goodput has it.

    Both are 0 to 1, but for what else happened meanwhile.
    """

    t_s: float
    share: float
    kept: float


def length_s(queue_s: float, rtt_s: float) -> float:
    """Return how long a dip is to be, with so much queueing delay; 0: the round trip is too short for one."""
    return min(max(OF_QUEUE * queue_s, LEAST_S), MOST_S) if rtt_s >= LEAST_RTT * LEAST_S else 0.0


def fall(dip: RatePulse, probes: Sequence[Probe]) -> QueueResponse | None:
    """Return what a dip tells; None where too few of the probes around it came back, or nothing arrived."""
    before = [probe.rtt_s for probe in probes if dip.from_s - AROUND_S <= probe.t_s <= dip.from_s]
    first_s = max(dip.from_s, dip.until_s - AROUND_S)
    ends = [(probe.t_s, probe.rtt_s) for probe in probes if first_s < probe.t_s <= dip.until_s]
    rtts = [rtt_s for rtt_s in before if rtt_s is not None]
    last = [(t_s, rtt_s) for t_s, rtt_s in ends if rtt_s is not None]
    begun, due, over = dip.looks
    usual = (due.moved_bytes - begun.moved_bytes) / (due.t_s - begun.t_s)
    if len(rtts) < FEWEST or len(last) < FEWEST or usual <= 0:
        return None
    lasted_s = median(t_s for t_s, _ in last) - dip.from_s
    fell_s = median(rtts) - median(rtt_s for _, rtt_s in last)
    missing_s = over.t_s - due.t_s - (over.moved_bytes - due.moved_bytes) / usual
    others = missing_s / (dip.depth * (dip.until_s - dip.from_s))
    return QueueResponse(dip.from_s, fell_s / (dip.depth * lasted_s), 1 - others)
