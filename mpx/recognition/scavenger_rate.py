"""How fast a copy may be that yields to all others (--policy scavenger): as fast as leaves no queue behind.

A queue says that the path is full, and not by whom. One that comes although we do not send more is somebody
else's. One that comes while we ask for more may be ours: then we send less for a moment, by as much as would
drain it, and one that stays is not. Beside others we send next to nothing until there was no queue for some
seconds. As long as the path is ours we stay a little below what it carries, and ask for more only now and
then. LEDBAT (RFC 6817) has the same aim; this is in rates instead of windows, for all streams together.
Pure: time and delays are passed in.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum

from mpx.rtt.series import Probe

SEGMENT_BYTES = 1448
TARGET_S = 0.005  # of queueing delay, or ...
TARGET_RTT = 0.05  # ... of round trips, whichever is more: longer ones are told less exactly
HINT = 1 / 3  # of that: from there on we do not ask for more ...
PATIENCE = 3  # ... for so many rounds, and then for little: hosts may be that slow for ever
CAREFUL, SOON_S = 0.5, 1.0  # of the rate, when a single probe has seen a queue; two are sure in that time
FATE_S = 10.0  # older probes tell nothing new; that one is lost is known seconds after those that came later
LOOK_S = 0.15  # for so long probes are sent before something is decided by them, a round trip later
UP = 1.5  # a round, far from what is known to fill the path
SLOWLY = 0.01  # a round, near it; doubles with each round that shows no queue
RISE_S = 6.0  # from nothing to what filled the path: by large steps its queue would run over before we see it
NEAR = 0.9  # of what filled the path last
LEVEL = 0.98  # of that: what we stay at
ROUGH = 0.1  # a larger step than that tells only roughly what fills the path
HOLD_S = 5.0  # before more is asked for again
MOSTLY = 0.5  # of that is what others have if less than that fills it
FORGET = 0.97  # what filled the path once, each time that less does
LEAST_DRAIN, MOST_DRAIN = 0.1, 0.8  # what we send of it to drain a queue
SHRINKS = 0.25  # of what should have drained, at least, or it is not ours
STUBBORN = 2  # rounds in which it did not
FREE_S = 2.0  # without a queue, before we ask for more
ARRIVED_S = 10.0  # for so long nothing is asked for after others have come: their beginning may be slow
LEAST_SEGMENTS = 4  # a round
GRAIN = 4  # times that, below which a round may bring nothing though we send
MINUTE_S, BASE_MINUTES = 60.0, 10  # as LEDBAT remembers it; a path that has become longer is known by then
LOST_S = 10.0  # the delay of a probe that is lost, and the longest
UNKNOWN_S = 0.1  # of round trips, before there is any
AHEAD = 1.5  # of what arrives: a source that is slow must not store up a rate that is never tried


class Phase(Enum):
    """What a copy that yields does."""

    GROW = "asks for more"
    HOLD = "stays below what fills the path"
    DRAIN = "sees whether a queue is its own"
    YIELD = "leaves the path to others"


class Yielding:
    """One copy's rate, all streams together."""

    def __init__(self) -> None:
        self.phase = Phase.GROW
        self.queue_s = 0.0  # the last delay that was too long; LOST_S where probes are lost
        self._bases: deque[tuple[int, float]] = deque()  # the shortest round trip of each minute
        self._rate_bps = 0.0
        self._alone_bps: float | None = None  # what filled the path when it was ours for a while
        self._full_bps = math.inf  # of ours, what fills the path
        self._free_bps = 0.0  # what was sent in the last round without a queue
        self._is_rough = True  # what fills the path, as the last step was large
        self._steps = self._hints = 0  # rounds of growth near what fills the path; rounds with a short queue
        self._left_s = 0.0  # of a queue, at most, if it is ours
        self._stubborn = 0
        self._began_s = 0.0  # the phase, or the round: probes that were sent before tell of what was before
        self._full_at_s = -math.inf  # the last queue
        self._theirs_until_s = -math.inf  # the path, as they have just come
        self._hint_at_s = -math.inf  # the last probe that saw one while we held
        self._seen: set[float] = set()  # when the probes were sent that were looked at
        self._lost_s = -math.inf  # when the last one was sent that was lost
        self._asked_s = (-math.inf, math.inf)  # from when until when we asked for more the last time
        self._last_s = self._before_s = 0.0  # the queueing delays of the last two probes
        self._arrived: deque[tuple[float, int]] = deque()

    @property
    def target_s(self) -> float:
        """How much queueing delay is ours to cause."""
        return max(TARGET_S, TARGET_RTT * self._base_s)

    @property
    def gives_way(self) -> bool:
        """Whether others are there."""
        return self.phase is Phase.YIELD

    def observe(self, now_s: float, probes: Sequence[Probe], arrived_bytes: int) -> float:
        """Return the rate to send with from now on, bit/s.

        `probes` are those since the last call or more, on the clock of `now_s`; one that is lost has met a
        full queue. `arrived_bytes` has been counted since the copy began.
        """
        self._arrived.append((now_s, arrived_bytes))
        while len(self._arrived) > 2 and self._arrived[1][0] <= now_s - self._base_s - LOOK_S:
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
        return 8 * LEAST_SEGMENTS * SEGMENT_BYTES / (self._base_s + LOOK_S)

    def _decide(self, now_s: float, sent_s: float) -> None:
        """Act on a probe: one that waited may have waited for a processor, two have met a queue."""
        queue_s = min(self._before_s, self._last_s)
        is_round = sent_s >= self._began_s + LOOK_S
        if queue_s > self.target_s:
            self._full_at_s = now_s
            self.queue_s = queue_s
        if self.phase is Phase.YIELD:
            if now_s >= max(self._full_at_s + FREE_S, self._theirs_until_s):
                self._begin(Phase.GROW, now_s, 0.0)
        elif self.phase is Phase.DRAIN:
            if is_round:
                self._look(now_s, queue_s)
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
        if phase is Phase.YIELD:  # what we had beside others says nothing of the path
            self._full_bps, self._free_bps = self._alone_bps or math.inf, 0.0
            self._full_at_s = now_s  # whatever told us: there may have been good probes in between
        asks = phase in (Phase.GROW, Phase.DRAIN)
        if asks != (self._asked_s[1] == math.inf):
            self._asked_s = (now_s, math.inf) if asks else (self._asked_s[0], now_s + self._base_s)
        self.phase, self._began_s, self._rate_bps = phase, now_s, max(rate_bps, self._least_bps)
        self._steps = self._stubborn = self._hints = 0

    def _lose(self, now_s: float, sent_s: float) -> None:
        """Take a probe that is lost: one may be chance, two within a second have met a full queue.

        As we asked for more it may have been ours, so we go back, and see whether it goes on.
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
        """Leave the path to whoever has come."""
        self._theirs_until_s = now_s + ARRIVED_S
        self._begin(Phase.YIELD, now_s, 0.0)

    def _hold(self, now_s: float) -> None:
        """Leave the path to whoever came, as we did not send more; ask for more where nobody did for long."""
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
        """See whether a queue is ours, that came as we asked for more."""
        self._full_bps = max(self._free_bps, self._least_bps)  # our goodput is more than that beside others
        self._begin(Phase.DRAIN, now_s, 0.0)
        self._drain(now_s, queue_s)

    def _drain(self, now_s: float, queue_s: float) -> None:
        share = LEAST_DRAIN
        if not self._stubborn:
            share = min(MOST_DRAIN, max(share, 1 - 4 * queue_s / LOOK_S))  # others may have some of it, too
        self._rate_bps = share * self._full_bps
        self._left_s = max(self.target_s, queue_s - SHRINKS * (1 - share) * LOOK_S)
        self._began_s = now_s

    def _look(self, now_s: float, queue_s: float) -> None:
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
