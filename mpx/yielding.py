"""How fast a copy may be that yields to all others (--policy scavenger): as fast as leaves no queue behind.

Once in a round, which is a little more than a round trip, the queueing delay decides. Without a queue the
rate grows, slowly where the path was full last time. A queue of our own making drains when the rate falls a
little below what arrives. One that stays is somebody else's, as CUBIC and BBR keep one: then the rate is
halved again and again, until they are gone. LEDBAT (RFC 6817) has the same aim; this is in rates instead of
windows, for all streams together. Pure: time and delays are passed in.
"""

from collections import deque
from collections.abc import Sequence

from mpx.rtt_series import Probe

SEGMENT_BYTES = 1448
TARGET_S = 0.005  # of queueing delay, or ...
TARGET_RTT = 0.05  # ... of round trips, whichever is more: longer ones are told less exactly
LOOK_S = 0.15  # beside a round trip, a round: what was decided shows in the next probes
FIRST_UP, UP = 1.5, 1.35  # a round: until there was a queue for the first time, and at most afterwards
SLOWLY, SOONER = 0.02, 0.08  # a round more, and for each round without a queue
FULL = 0.9  # of what the path carried when it was full last: from there on slowly
FREE = 1.1  # of that, and still no queue: more is to be had than last time
DRAIN_S = 0.5  # a queue is to be gone within that time
LEAST_DRAIN = 0.7
PATIENCE = 3  # rounds in which a queue does not shrink, though we drain it
SHRINKS = 0.8  # within a round
DOWN = 0.5  # a round
LEAST_SEGMENTS = 4  # a round, or ...
LEAST_SHARE = 0.01  # ... of the best goodput: it has to notice when others are gone
MINUTE_S, BASE_MINUTES = 60.0, 10  # as LEDBAT remembers it; a path that has become longer is known by then
UNKNOWN_S = 0.1  # of round trips, before there is any
AHEAD = 1.5  # of what arrives: a source that is slow must not store up a rate that is never tried


class Yielding:
    """One copy's rate, all streams together."""

    def __init__(self) -> None:
        self.queue_s: float | None = None  # the delay that was seen last
        self._bases: deque[tuple[int, float]] = deque()  # the shortest round trip of each minute
        self._rate_bps = 0.0
        self._best_bps = 0.0
        self._full_bps: float | None = None  # what arrived when there was a queue last
        self._was_full = False
        self._draining_s = 0.0  # the queue in the last round, 0 where it was short enough
        self._stubborn_rounds = self._calm_rounds = 0
        self._decided_s = float("-inf")
        self._newest_s = self._newest_lost_s = float("-inf")  # of the probes that were looked at
        self._rtts: list[float] = []  # in this round
        self._lost = 0
        self._arrived: deque[tuple[float, int]] = deque()

    @property
    def target_s(self) -> float:
        """How much queueing delay is ours to cause."""
        return max(TARGET_S, TARGET_RTT * self._base_s)

    @property
    def gives_way(self) -> bool:
        """Whether a queue of others is there."""
        return self._stubborn_rounds > PATIENCE

    def observe(self, now_s: float, probes: Sequence[Probe], arrived_bytes: int) -> float:
        """Return the rate to send with from now on, bit/s.

        `probes` are those since the last call or more, on the clock of `now_s`; if all of a round were lost
        somebody has filled the path. `arrived_bytes` has been counted since the copy began.
        """
        self._take(now_s, probes)
        self._arrived.append((now_s, arrived_bytes))
        while len(self._arrived) > 2 and self._arrived[1][0] <= now_s - self._round_s:
            self._arrived.popleft()
        if now_s >= self._decided_s + self._round_s and (self._rtts or self._lost):
            self._decided_s = now_s
            if self._rtts:
                self.queue_s = min(self._rtts) - self._base_s
                self._decide(self.queue_s, self._goodput_bps())
            else:
                self._rate_bps *= DOWN
            self._rtts, self._lost = [], 0
        self._rate_bps = max(self._rate_bps, self._least_bps)
        return self._rate_bps

    @property
    def _base_s(self) -> float:
        """The shortest round trip of the last minutes: paths change."""
        return min((rtt_s for _, rtt_s in self._bases), default=UNKNOWN_S)

    @property
    def _round_s(self) -> float:
        """How long until what was decided shows."""
        return self._base_s + LOOK_S

    @property
    def _least_bps(self) -> float:
        return max(8 * LEAST_SEGMENTS * SEGMENT_BYTES / self._round_s, LEAST_SHARE * self._best_bps)

    def _decide(self, queue_s: float, goodput_bps: float) -> None:
        self._best_bps = max(self._best_bps, goodput_bps)
        if queue_s > self.target_s:
            self._drain(queue_s, goodput_bps)
        else:
            self._grow(goodput_bps)

    def _drain(self, queue_s: float, goodput_bps: float) -> None:
        """Fall below what arrives, which drains a queue of ours; give way to one that does not shrink."""
        is_first, shrinks = not self._draining_s, queue_s < SHRINKS * self._draining_s
        self._draining_s, self._was_full, self._calm_rounds = queue_s, True, 0
        self._stubborn_rounds += not (is_first or shrinks)
        if self.gives_way:
            self._full_bps = None  # what arrived beside others says nothing of the path
            self._rate_bps *= DOWN
            return
        # At first much of what arrived had been sent before there was a queue.
        self._full_bps = max(goodput_bps, 0.0 if is_first else self._full_bps or 0.0)
        self._rate_bps = min(self._rate_bps, self._full_bps * max(LEAST_DRAIN, 1 - queue_s / DRAIN_S))

    def _grow(self, goodput_bps: float) -> None:
        self._draining_s, self._stubborn_rounds = 0.0, 0
        self._calm_rounds += 1
        if not goodput_bps:  # there was nothing to send, or it is not there yet
            return
        if not self._was_full:
            self._rate_bps *= FIRST_UP
        elif self._full_bps and FULL * self._full_bps <= self._rate_bps <= FREE * self._full_bps:
            self._rate_bps *= 1 + SLOWLY
        else:
            self._rate_bps *= min(UP, 1 + SOONER * self._calm_rounds)
        self._rate_bps = min(self._rate_bps, AHEAD * goodput_bps)

    def _take(self, now_s: float, probes: Sequence[Probe]) -> None:
        for probe in sorted(probes, key=lambda each: each.t_s):
            if probe.rtt_s is None and probe.t_s > self._newest_lost_s:
                self._newest_lost_s = probe.t_s
                self._lost += 1
            elif probe.rtt_s is not None and probe.t_s > self._newest_s:
                self._newest_s = probe.t_s
                self._rtts.append(probe.rtt_s)
                self._remember(int(now_s // MINUTE_S), probe.rtt_s)

    def _remember(self, minute: int, rtt_s: float) -> None:
        if self._bases and self._bases[-1][0] == minute:
            rtt_s = min(rtt_s, self._bases.pop()[1])
        self._bases.append((minute, rtt_s))
        while self._bases[0][0] < minute - BASE_MINUTES:
            self._bases.popleft()

    def _goodput_bps(self) -> float:
        (from_s, before_bytes), (until_s, after_bytes) = self._arrived[0], self._arrived[-1]
        return 8 * (after_bytes - before_bytes) / (until_s - from_s) if until_s > from_s else 0.0
