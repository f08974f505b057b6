"""When to try another number of streams: a trial costs goodput, and the next waits until that is paid.

A trial costs goodput: new streams push the others back, and after fewer streams the path has to fill again.
On a long path with a short queue that takes seconds; on an idle one it costs nothing. So there is no fixed
interval: the next trial waits until goodput has made up for the last one.
"""

import math
from dataclasses import dataclass

TRIAL_S, TRIAL_RTT = 0.3, 10.0  # a trial lasts about that long: the sum of both
SOON, RARER = 4.0, 1.3  # however sure, wait for at most so many trials, each time longer by this factor
RAREST_S, RAREST_RTT = 5.0, 40.0  # trials that cost nothing come at least that often: the longer of these
LEAST_COST = 0.01  # share of goodput that trials may always cost ...
STAKE = 0.5  # ... and while it is doubtful whether to stay, that share of the doubt, over the trials so far
OVERDUE_S = 120.0  # a trial that is not paid for by then never will be: the network carries less now
PATIENT_S = 2.0  # a trial that costs may last so long, the next half as long and so on, but at least ...
PATIENT_RTT, PATIENT_BINS = 14.0, 3.0  # ... the sum of these ...
COSTS = 0.05  # ... if less than this share of goodput is lost it may go on
MOST_TRIALS = 40  # counted at most, so that the wait stays finite


@dataclass(frozen=True, slots=True)
class _Mark:
    at_s: float
    arrived_bytes: int

    def bps_until(self, now_s: float, arrived_bytes: int) -> float:
        return (arrived_bytes - self.arrived_bytes) * 8 / (now_s - self.at_s)


class Exploration:
    """The trials of one transfer: when the next is due and affordable, and when one has lasted too long."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all trials, as the network has changed: the next ones come soon again."""
        self._count = 0
        self._ended_s = -math.inf
        self._rest: _Mark | None = None  # since when the streams have been unchanged and up to speed
        self._begun: _Mark | None = None  # of the last trial
        self.home_bps = 0.0  # goodput at rest before the last trial
        self._in_vain = 0  # how many streams more (fewer: below 0) it had, if it gave no result

    def rest(self, now_s: float, arrived_bytes: int) -> None:
        """Note that all streams are up to speed."""
        if self._rest is None:
            self._rest = _Mark(now_s, arrived_bytes)

    def stir(self) -> None:
        """Note that the number of streams changes."""
        self._rest = None

    def due(self, now_s: float, since_s: float, good: float, rtt_s: float) -> bool:
        """Whether a trial is due: the surer it is that the present number is good, the longer the wait.

        `since_s` is when the streams last changed, `good` the probability that their number is a good one.
        """
        trial_s = TRIAL_S + TRIAL_RTT * rtt_s
        wait_s = trial_s * min(good / max(1e-9, 1 - good), SOON * RARER**self._count)
        return now_s - max(self._ended_s, since_s) >= min(wait_s, max(RAREST_S, RAREST_RTT * rtt_s))

    def paid(self, now_s: float, arrived_bytes: int, good: float) -> bool:
        """Whether mean goodput since the last trial began, its cost included, is near that at rest again."""
        if self._rest is None or now_s <= self._rest.at_s:
            return False
        if self._begun is None or now_s > self._begun.at_s + OVERDUE_S:
            return True
        share = max(LEAST_COST, STAKE * (1 - good) / (1 + self._count))
        at_rest_bps = self._rest.bps_until(now_s, arrived_bytes)
        return self._begun.bps_until(now_s, arrived_bytes) >= (1 - share) * at_rest_bps

    def begin(self, now_s: float, arrived_bytes: int) -> None:
        """Begin a trial; only after `paid` has returned True."""
        assert self._rest is not None
        self.home_bps = self._rest.bps_until(now_s, arrived_bytes)
        self._begun = _Mark(now_s, arrived_bytes)
        self._in_vain = 0
        self._count = min(self._count + 1, MOST_TRIALS)

    def end(self, now_s: float) -> None:
        """End the trial."""
        self._ended_s = now_s

    def without_result(self, more: int) -> None:
        """Note that the trial that ends, of so many streams more (fewer: below 0), gave no result in time."""
        self._in_vain = more

    def sides(self, here: int, counts: set[int]) -> set[int]:
        """Return the counts to try next: on the other side, where the last trial gave no result."""
        return {count for count in counts if (count - here) * self._in_vain <= 0} or counts

    def too_long(self, now_s: float, arrived_bytes: int, rtt_s: float, bin_s: float) -> bool:
        """Whether a trial without a result, that costs goodput, should end; each may last half as long.

        Its result takes 12 RTT and some bins, so it lasts at least as long as that.
        """
        assert self._begun is not None
        least_s = PATIENT_RTT * rtt_s + PATIENT_BINS * bin_s
        if now_s - self._begun.at_s <= max(least_s, PATIENT_S * 0.5 ** (self._count - 1)):
            return False
        return self._begun.bps_until(now_s, arrived_bytes) < (1 - COSTS) * self.home_bps
