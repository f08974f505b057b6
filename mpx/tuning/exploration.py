"""When to look at another number of streams: what looks cost is measured, and they must be worth it.

A look costs goodput: new streams push the others back, and after fewer streams the path has to fill again.
On a long path with a short queue that takes seconds; on a quiet one it costs nothing. So nobody needs to
know beforehand how often to look: the next look waits until the last one has been paid for.
"""

import math
from dataclasses import dataclass

LOOK_S, LOOK_RTT = 0.3, 10.0  # a look lasts about that long: the sum of both
SOON, RARER = 4.0, 1.3  # however sure, wait so many looks for the first, and that much longer each time
RAREST_S, RAREST_RTT = 5.0, 40.0  # looks that cost nothing come at least that often: the longer of these
LEAST_COST = 0.01  # share of goodput that looks may always cost ...
STAKE = 0.5  # ... and while it is doubtful whether to stay, that share of the doubt, over the looks so far
OVERDUE_S = 120.0  # a look that is not paid for by then will never be: the network gives less now
PATIENT_S = 2.0  # a look that costs may last so long, the next half of it and so on, but at least ...
PATIENT_RTT, PATIENT_BINS = 14.0, 3.0  # ... the sum of these ...
COSTS = 0.05  # ... if less than this share of goodput is lost it may go on
MOST_LOOKS = 40  # counted, so that the wait stays a number


@dataclass(frozen=True, slots=True)
class _Mark:
    at_s: float
    arrived_bytes: int

    def bps_until(self, now_s: float, arrived_bytes: int) -> float:
        return (arrived_bytes - self.arrived_bytes) * 8 / (now_s - self.at_s)


class Exploration:
    """The looks of one transfer: when the next is due and affordable, and when one has lasted too long."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """The network has changed: looks come quickly again."""
        self._count = 0
        self._ended_s = -math.inf
        self._rest: _Mark | None = None  # since when the streams have been as they are, all up to speed
        self._begun: _Mark | None = None  # of the last look
        self.home_bps = 0.0  # what was carried at rest before the last look
        self._in_vain = 0  # how many streams more (fewer: below 0) it had, if it told nothing

    def rest(self, now_s: float, arrived_bytes: int) -> None:
        """The streams are all up to speed."""
        if self._rest is None:
            self._rest = _Mark(now_s, arrived_bytes)

    def stir(self) -> None:
        """The number of streams changes."""
        self._rest = None

    def due(self, now_s: float, since_s: float, good: float, rtt_s: float) -> bool:
        """Whether it is time: it goes to staying and to looking as the odds that staying is right.

        `since_s` is when the streams last changed, `good` how probably their number is a good one.
        """
        look_s = LOOK_S + LOOK_RTT * rtt_s
        wait_s = look_s * min(good / max(1e-9, 1 - good), SOON * RARER**self._count)
        return now_s - max(self._ended_s, since_s) >= min(wait_s, max(RAREST_S, RAREST_RTT * rtt_s))

    def paid(self, now_s: float, arrived_bytes: int, good: float) -> bool:
        """Whether goodput since the last look began, with all that it cost, is back near that at rest."""
        if self._rest is None or now_s <= self._rest.at_s:
            return False
        if self._begun is None or now_s > self._begun.at_s + OVERDUE_S:
            return True
        share = max(LEAST_COST, STAKE * (1 - good) / (1 + self._count))
        at_rest_bps = self._rest.bps_until(now_s, arrived_bytes)
        return self._begun.bps_until(now_s, arrived_bytes) >= (1 - share) * at_rest_bps

    def begin(self, now_s: float, arrived_bytes: int) -> None:
        """A look begins; only after `paid` said that it may."""
        assert self._rest is not None
        self.home_bps = self._rest.bps_until(now_s, arrived_bytes)
        self._begun = _Mark(now_s, arrived_bytes)
        self._in_vain = 0
        self._count = min(self._count + 1, MOST_LOOKS)

    def end(self, now_s: float) -> None:
        """Back from a look."""
        self._ended_s = now_s

    def told_nothing(self, more: int) -> None:
        """The look that ends had so many streams more (fewer: below 0), and told nothing in its time."""
        self._in_vain = more

    def sides(self, here: int, places: set[int]) -> set[int]:
        """Return the places for the next look: on the other side, where the last one told nothing."""
        return {place for place in places if (place - here) * self._in_vain <= 0} or places

    def too_long(self, now_s: float, arrived_bytes: int, rtt_s: float, bin_s: float) -> bool:
        """Whether a look that still tells nothing, and costs, should end; there is ever less patience.

        What it waits for takes 12 RTT and some bins, so that is the least.
        """
        assert self._begun is not None
        least_s = PATIENT_RTT * rtt_s + PATIENT_BINS * bin_s
        if now_s - self._begun.at_s <= max(least_s, PATIENT_S * 0.5 ** (self._count - 1)):
            return False
        return self._begun.bps_until(now_s, arrived_bytes) < (1 - COSTS) * self.home_bps
