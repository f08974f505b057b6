"""The rate of a copy that yields to all other traffic (--policy scavenger): the highest that leaves no queue.

A queue shows that the path is full, but not by whose traffic. If it appears while our rate is constant, it is
that of others. If it appears while we increase the rate, it may be ours: then we reduce the rate for a
moment, by as much as would drain it, and if it remains it is not ours. Beside others we send at the lowest
rate, until there was no queue for some seconds. Alone we stay a little below the capacity, and increase the
rate only now and then. LEDBAT (RFC 6817) has the same aim; this controls one rate instead of windows, for all
streams together. Pure: time and delays are passed in.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum

from mpx.rtt.series import Probe

SEGMENT_BYTES = 1448
TARGET_S = 0.005  # allowed queueing delay, or ...
TARGET_RTT = 0.05  # ... share of the RTT, whichever is more: longer ones are measured less exactly
HINT = 1 / 3  # share of that from which the rate is not increased ...
PATIENCE = 3  # ... for so many rounds, and then slowly: some hosts always add such a delay
CAREFUL, SOON_S = (
    0.5,
    1.0,
)  # factor of the rate after one probe has seen a queue; two within SOON_S are certain
FATE_S = 10.0  # older probes are not used; a loss is known seconds after later answers
ROUND_S = 0.15  # a decision is made on the probes of so long, one RTT later
UP = 1.5  # growth per round far below the known capacity
SLOWLY = 0.01  # growth per round near it; doubles with each round without a queue
RISE_S = 6.0  # from zero to the known capacity: with larger steps the queue would overflow before we see it
NEAR = 0.9  # share of the known capacity
LEVEL = 0.98  # share of it that is kept
ROUGH = 0.1  # after a larger step the capacity is known only roughly
HOLD_S = 5.0  # before the rate is increased again
MOSTLY = 0.5  # if less than this share of the capacity fills the path, others have the rest
FORGET = 0.97  # factor of the known capacity each time that less fills the path
LEAST_DRAIN, MOST_DRAIN = 0.1, 0.8  # factors of the rate that drain a queue
SHRINKS = 0.25  # a queue is ours if at least this share of what should have drained has
STUBBORN = 2  # rounds in which it has not
FREE_S = 2.0  # without a queue, before the rate is increased
ARRIVED_S = 10.0  # lowest rate for so long after others have come: they may start slowly
LEAST_SEGMENTS = 4  # per round
GRAIN = 4  # below so many times that, a round may show no goodput
MINUTE_S, BASE_MINUTES = 60.0, 10  # history of the shortest RTT, as in LEDBAT: paths may become longer
LOST_S = 10.0  # counts as the delay of a lost probe, and is the longest
UNKNOWN_S = 0.1  # the RTT before there is a probe
AHEAD = 1.5  # largest rate, over goodput: with a slow source the rate must not grow without being used


class Phase(Enum):
    """What a copy that yields does."""

    GROW = "increases its rate"
    HOLD = "stays below the capacity of the path"
    DRAIN = "drains the queue, to see whether it is its own"
    YIELD = "leaves the path to other traffic"


class Yielding:
    """The rate of one copy, all streams together."""

    def __init__(self) -> None:
        self.phase = Phase.GROW
        self.queue_s = 0.0  # the last delay that was too long; LOST_S where probes are lost
        self._bases: deque[tuple[int, float]] = deque()  # the shortest round trip of each minute
        self._rate_bps = 0.0
        self._alone_bps: float | None = None  # capacity: our rate that filled the path when we were alone
        self._full_bps = math.inf  # our rate that fills the path
        self._free_bps = 0.0  # what was sent in the last round without a queue
        self._is_rough = True  # whether `_full_bps` is known only roughly, as the last step was large
        self._steps = self._hints = 0  # rounds of growth near what fills the path; rounds with a short queue
        self._left_s = 0.0  # the longest queue that may remain if it is ours
        self._stubborn = 0
        self._began_s = 0.0  # of the phase or round: probes sent before it belong to the one before
        self._full_at_s = -math.inf  # the last queue
        self._others_until_s = -math.inf  # until then the path is left to traffic that has come
        self._hint_at_s = -math.inf  # the last probe that saw a queue in the phase HOLD
        self._seen: set[float] = set()  # when the probes were sent that were used
        self._lost_s = -math.inf  # when the last one was sent that was lost
        self._asked_s = (-math.inf, math.inf)  # begin and end of the last increase of the rate
        self._last_s = self._before_s = 0.0  # the queueing delays of the last two probes
        self._arrived: deque[tuple[float, int]] = deque()

    @property
    def target_s(self) -> float:
        """The queueing delay that we may cause, seconds."""
        return max(TARGET_S, TARGET_RTT * self._base_s)

    @property
    def yields(self) -> bool:
        """Whether it yields to other traffic."""
        return self.phase is Phase.YIELD

    def observe(self, now_s: float, probes: Sequence[Probe], arrived_bytes: int) -> float:
        """Return the rate from now on, bit/s.

        `probes` are those since the last call or more, on the clock of `now_s`; a lost one has met a full
        queue. `arrived_bytes` is counted since the copy began.
        """
        self._arrived.append((now_s, arrived_bytes))
        while len(self._arrived) > 2 and self._arrived[1][0] <= now_s - self._base_s - ROUND_S:
            self._arrived.popleft()
        for probe in self._new(probes):
            delay_s = LOST_S
            if probe.rtt_s is not None:
                self._remember(int(now_s // MINUTE_S), probe.rtt_s)
                delay_s = min(LOST_S, probe.rtt_s - self._base_s)
            self._before_s, self._last_s = self._last_s, delay_s
            if probe.rtt_s is None:
                self._lose(now_s, probe.t_s)
            self._decide(now_s, probe.t_s)
        is_hint = self.phase is Phase.HOLD and self._last_s > self.target_s
        return max(self._rate_bps * (CAREFUL if is_hint else 1.0), self._least_bps)

    @property
    def _base_s(self) -> float:
        """The shortest round trip of the last minutes: paths change."""
        return min((rtt_s for _, rtt_s in self._bases), default=UNKNOWN_S)

    @property
    def _least_bps(self) -> float:
        return 8 * LEAST_SEGMENTS * SEGMENT_BYTES / (self._base_s + ROUND_S)

    def _decide(self, now_s: float, sent_s: float) -> None:
        """Act on a probe: one that is late may have waited for a processor, two have met a queue."""
        queue_s = min(self._before_s, self._last_s)
        is_round = sent_s >= self._began_s + ROUND_S
        if queue_s > self.target_s:
            self._full_at_s = now_s
            self.queue_s = queue_s
        if self.phase is Phase.YIELD:
            if now_s >= max(self._full_at_s + FREE_S, self._others_until_s):
                self._begin(Phase.GROW, now_s, 0.0)
        elif self.phase is Phase.DRAIN:
            if is_round:
                self._judge_drained(now_s, queue_s)
        elif self.phase is Phase.HOLD:
            if self._last_s < LOST_S:
                self._hold(now_s)
        elif queue_s > self.target_s:
            self._full(now_s, queue_s)
        elif is_round:
            self._hints = self._hints + 1 if self._last_s > HINT * self.target_s else 0
            if self._hints == 0 or self._hints > PATIENCE:
                self._grow(now_s)
            self._began_s = now_s

    def _begin(self, phase: Phase, now_s: float, rate_bps: float) -> None:
        if phase is Phase.YIELD:  # our rate beside others is not the capacity
            self._full_bps, self._free_bps = self._alone_bps or math.inf, 0.0
            self._full_at_s = now_s  # also where the last probes met no queue
        asks = phase in (Phase.GROW, Phase.DRAIN)
        if asks != (self._asked_s[1] == math.inf):
            self._asked_s = (now_s, math.inf) if asks else (self._asked_s[0], now_s + self._base_s)
        self.phase, self._began_s, self._rate_bps = phase, now_s, max(rate_bps, self._least_bps)
        self._steps = self._stubborn = self._hints = 0

    def _lose(self, now_s: float, sent_s: float) -> None:
        """Take a lost probe: one may be chance, two within a second have met a full queue.

        While we increased the rate, the queue may have been ours: so the rate is reduced first.
        """
        from_s, until_s = self._asked_s
        is_chance = abs(sent_s - self._lost_s) > SOON_S
        self._lost_s = sent_s
        if is_chance:
            return
        self.queue_s = LOST_S
        if not from_s <= sent_s <= until_s:
            self._full_at_s = now_s
            if self.phase is not Phase.YIELD:
                self._come(now_s)
        elif self.phase is Phase.GROW:
            self._full_bps = max(min(self._rate_bps, self._goodput_bps()), self._least_bps)
            self._begin(Phase.HOLD, now_s, CAREFUL * self._full_bps)

    def _come(self, now_s: float) -> None:
        """Leave the path to new traffic."""
        self._others_until_s = now_s + ARRIVED_S
        self._begin(Phase.YIELD, now_s, 0.0)

    def _hold(self, now_s: float) -> None:
        """Yield where a queue appears at a constant rate; increase the rate after HOLD_S without one."""
        if self._last_s > self.target_s:
            self.queue_s = self._last_s
            if now_s < self._hint_at_s + SOON_S:
                self._come(now_s)
            self._hint_at_s = now_s
        elif now_s >= self._began_s + HOLD_S:
            self._alone_bps = max(self._full_bps, FORGET * (self._alone_bps or 0.0))
            self._begin(Phase.GROW, now_s, self._rate_bps)

    def _grow(self, now_s: float) -> None:
        self._free_bps = self._rate_bps
        goodput_bps, seen_bps = self._goodput_bps(), GRAIN * self._least_bps
        if goodput_bps or self._rate_bps <= seen_bps:  # or there was nothing to send
            most_bps = AHEAD * max(goodput_bps, seen_bps)
            if self._rate_bps >= NEAR * self._full_bps:
                step_bps = min(UP - 1, SLOWLY * 2**self._steps) * self._rate_bps
                self._steps += 1
            elif self._alone_bps is None:
                step_bps = (UP - 1) * self._rate_bps
            else:
                step_bps = self._alone_bps * (now_s - self._began_s) / RISE_S
                most_bps += step_bps
            if self._hints:
                step_bps = min(step_bps, SLOWLY * self._rate_bps)
            self._is_rough = step_bps > ROUGH * self._rate_bps
            self._rate_bps = max(self._least_bps, min(self._rate_bps + step_bps, most_bps))

    def _full(self, now_s: float, queue_s: float) -> None:
        """Start to drain a queue that has appeared while the rate was increased."""
        self._full_bps = max(
            self._free_bps, self._least_bps
        )  # our goodput may be more than that beside others
        self._begin(Phase.DRAIN, now_s, 0.0)
        self._drain(now_s, queue_s)

    def _drain(self, now_s: float, queue_s: float) -> None:
        share = LEAST_DRAIN
        if not self._stubborn:
            share = min(
                MOST_DRAIN, max(share, 1 - 4 * queue_s / ROUND_S)
            )  # a part of it may be that of others
        self._rate_bps = share * self._full_bps
        self._left_s = max(self.target_s, queue_s - SHRINKS * (1 - share) * ROUND_S)
        self._began_s = now_s

    def _judge_drained(self, now_s: float, queue_s: float) -> None:
        self._stubborn += queue_s > self._left_s
        is_ours = not self._stubborn or (self._is_rough and self._stubborn <= STUBBORN)
        alone_bps = self._alone_bps or 0.0
        if not is_ours or self._full_bps < MOSTLY * alone_bps:
            self._alone_bps = FORGET * alone_bps or None
            self._begin(Phase.YIELD, now_s, 0.0)
        elif queue_s > self.target_s:
            self._drain(now_s, queue_s)
        else:
            knows = self._full_bps < NEAR * alone_bps or not self._is_rough
            self._begin(Phase.HOLD if knows else Phase.GROW, now_s, LEVEL * self._full_bps)

    def _new(self, probes: Sequence[Probe]) -> Iterator[Probe]:
        oldest_s = max((probe.t_s for probe in probes), default=0.0) - FATE_S
        self._seen = {sent_s for sent_s in self._seen if sent_s >= oldest_s}
        for probe in sorted(probes, key=lambda each: each.t_s):
            if probe.t_s >= oldest_s and probe.t_s not in self._seen:
                self._seen.add(probe.t_s)
                yield probe

    def _remember(self, minute: int, rtt_s: float) -> None:
        if self._bases and self._bases[-1][0] == minute:
            rtt_s = min(rtt_s, self._bases.pop()[1])
        self._bases.append((minute, rtt_s))
        while self._bases[0][0] < minute - BASE_MINUTES:
            self._bases.popleft()

    def _goodput_bps(self) -> float:
        (from_s, before_bytes), (until_s, after_bytes) = self._arrived[0], self._arrived[-1]
        return 8 * (after_bytes - before_bytes) / (until_s - from_s) if until_s > from_s else 0.0
