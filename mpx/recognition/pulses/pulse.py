"""A rate pulse: a short reduction of our rate, whose effect on queue and goodput shows our share of the link.

While a queue keeps a link of C bit/s busy, the queueing delay changes by (all rates / C - 1) each second.
When we alone send less by a share `depth`, the delay decreases by `depth` times our share of the link in each
second, as within a round trip no other sender reacts. Alone on the link we lose no goodput, as the queue
feeds the link meanwhile; beside others, who take our place in the queue, we lose `depth` times their share of
it. Nothing else distinguishes an empty path from streams that slow down whenever we do: our goodput is as
steady in both. Where no queue keeps the link busy, the delay does not change, and all that we leave out is
missing. As a queue is not emptied, little is lost. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mpx.rtt.series import Probe

DEPTH = 0.75  # the share of our rate that is left out
OF_QUEUE = 0.8  # length, as a share of the queueing delay: if all of the queue is ours, two fifths remain
LEAST_S, MOST_S = 0.005, 0.04
LEAST_RTT = 2.5  # the shortest round trip, in shortest pulses
PROBES = 4  # before a pulse, and again at its end
SPACING_S = 0.001  # between these
AROUND_S = 2 * PROBES * SPACING_S  # they are sent within that time
MARGIN_S = 0.005  # before and after the time at which the missing data would have arrived
FEWEST = 2  # probes with an answer


@dataclass(frozen=True, slots=True)
class Moved:
    """How much of our data had been moved at a time."""

    t_s: float
    moved_bytes: int  # acknowledged, or received where the other side sends


@dataclass(frozen=True, slots=True)
class RatePulse:
    """A pulse that was made; times on the clock of the probes.

    `moved`: at its begin, and before and after the missing data would have arrived.
    """

    from_s: float
    until_s: float
    depth: float  # the share of what we sent that was left out
    moved: tuple[Moved, Moved, Moved]


@dataclass(frozen=True, slots=True)
class QueueResponse:
    """Our share of the link, by the queue (`share`) and by our goodput (`kept`), as a pulse has shown it.

    Both are between 0 and 1, unless other traffic has changed meanwhile.
    """

    t_s: float
    share: float
    kept: float


def length_s(queue_s: float, rtt_s: float) -> float:
    """Return the length of a pulse at this queueing delay; 0 where the round trip is too short for one."""
    return min(max(OF_QUEUE * queue_s, LEAST_S), MOST_S) if rtt_s >= LEAST_RTT * LEAST_S else 0.0


def response(pulse: RatePulse, probes: Sequence[Probe]) -> QueueResponse | None:
    """Return what a pulse shows; None where too few probes around it were answered, or nothing arrived."""
    before = [probe.rtt_s for probe in probes if pulse.from_s - AROUND_S <= probe.t_s <= pulse.from_s]
    first_s = max(pulse.from_s, pulse.until_s - AROUND_S)
    ends = [(probe.t_s, probe.rtt_s) for probe in probes if first_s < probe.t_s <= pulse.until_s]
    rtts = [rtt_s for rtt_s in before if rtt_s is not None]
    last = [(t_s, rtt_s) for t_s, rtt_s in ends if rtt_s is not None]
    begun, due, over = pulse.moved
    usual = (due.moved_bytes - begun.moved_bytes) / (due.t_s - begun.t_s)
    if len(rtts) < FEWEST or len(last) < FEWEST or usual <= 0:
        return None
    lasted_s = median(t_s for t_s, _ in last) - pulse.from_s
    decrease_s = median(rtts) - median(rtt_s for _, rtt_s in last)
    missing_s = over.t_s - due.t_s - (over.moved_bytes - due.moved_bytes) / usual
    others = missing_s / (pulse.depth * (pulse.until_s - pulse.from_s))
    return QueueResponse(pulse.from_s, decrease_s / (pulse.depth * lasted_s), 1 - others)
