"""Makes dips (pulse.py) between the probes of a watch, one each second."""

import bisect
import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import count
from statistics import median
from typing import Protocol

from mpx.recognition.pulses.pulse import (
    AROUND_S,
    DEPTH,
    MARGIN_S,
    PROBES,
    SPACING_S,
    Look,
    QueueResponse,
    RatePulse,
    fall,
    length_s,
)
from mpx.rtt.method import Way
from mpx.rtt.runner import Run
from mpx.rtt.schedule import single_s
from mpx.rtt.series import Probe

EVERY = 10  # probes
LATEST = 3  # probes say how long the queue is
KEEP_S = 60.0
LOST_S = 5.0  # what has not come back by then will not tell
EXACT_S = 1e-6  # the time of a probe is told as a sum
LATE_S, RESTS_S = 0.02, 30.0  # where this program is so late to end one it costs goodput: none for a while


class Pacing(Protocol):
    """The connections of a copy, and how they are slowed down for a moment."""

    @property
    def can(self) -> bool:
        """Whether it can be done at all."""
        ...

    def over(self, way: Way) -> None:
        """Say by which way the path is probed from now on."""
        ...

    def look(self) -> None:
        """Note what they have moved since the last look."""
        ...

    def moved_bytes(self) -> int:
        """Return what all of them have moved."""
        ...

    def slow(self, share: float, seconds: float) -> bool:
        """Have them send this share of what they do for so long; False where that is not to be had."""
        ...

    def restore(self) -> None:
        """Let them send as fast as they may again."""
        ...

    def depth(self) -> float:
        """Return how much less was sent the last time, as a share; 0 where that is not known."""
        ...


class PulseMaker:
    """Those of one copy."""

    def __init__(self, slowed: Pacing, clock: Callable[[], float] = time.monotonic) -> None:
        self._slowed = slowed
        self._clock = clock
        self._extra: deque[float] = deque()  # when probes were sent that are there for dips alone
        self._waiting: deque[RatePulse] = deque()  # some of their probes may still be under way
        self._told: deque[QueueResponse] = deque()
        self._late_until_s = self._rests_until_s = -math.inf

    @property
    def can(self) -> bool:
        """Whether there can be any."""
        return self._slowed.can

    def over(self, way: Way) -> None:
        """Say by which way the path is probed from now on: some carry what asks for dips."""
        self._slowed.over(way)

    def times(self, run: Run, least_s: Callable[[], float]) -> Generator[float]:
        """Yield when the probes of a run are due, for ever; those of dips are among them.

        What is done between two of them is done in between. `least_s` is the shortest round trip known.
        """
        dip: Iterator[float] = iter(())
        due_s = math.inf
        try:
            for number in count():
                at_s = single_s(number)
                while due_s < at_s:
                    yield due_s
                    self._note_extra(run.sent_s)
                    due_s = next(dip, math.inf)
                yield at_s
                if self.can and number % EVERY == EVERY - 1 and math.isinf(due_s):
                    self._slowed.look()
                    dip = self._dip(run, least_s())
                    due_s = next(dip, math.inf)
        finally:
            self._slowed.restore()

    def rest(self, until_s: float) -> None:
        """Begin none until then; what was said before no longer counts."""
        self._rests_until_s = until_s

    def falls(self, probes: Sequence[Probe], from_s: float) -> list[QueueResponse]:
        """Return what the dips since then tell, as far as `probes`, all in order, know it."""
        now_s = self._clock()
        while self._waiting:
            dip = self._waiting[0]
            told = fall(dip, _within(probes, dip.from_s - AROUND_S, dip.until_s))
            if told is None and dip.until_s >= now_s - LOST_S:
                break
            self._waiting.popleft()
            if told:
                self._told.append(told)
        while self._told and self._told[0].t_s < now_s - KEEP_S:
            self._told.popleft()
        return [each for each in self._told if each.t_s >= from_s]

    def without(self, probes: Sequence[Probe]) -> list[Probe]:
        """Return the probes that would be there without dips."""
        extra = list(self._extra)

        def is_extra(probe: Probe) -> bool:
            at = bisect.bisect_left(extra, probe.t_s - EXACT_S)
            return at < len(extra) and extra[at] <= probe.t_s + EXACT_S

        return [probe for probe in probes if not is_extra(probe)]

    def _dip(self, run: Run, least_s: float) -> Iterator[float]:
        """Make one; yields when its probes are due, in seconds of the run, and goes on once each is sent."""
        known = [probe.rtt_s for probe in run.probes()[-2 * EVERY :] if probe.rtt_s is not None][-LATEST:]
        rtt_s = median(known) if known else 0.0
        seconds = length_s(rtt_s - min(rtt_s, least_s), rtt_s)
        if not seconds or self._clock() < max(self._late_until_s, self._rests_until_s):
            return
        now_s = self._clock() - run.began_s
        yield from (now_s + (number + 1) * SPACING_S for number in range(PROBES))
        from_s, begun = self._clock(), self._look()
        if not self._slowed.slow(1 - DEPTH, seconds):
            return
        at_s = from_s - run.began_s
        yield from (at_s + seconds + (number + 1 - PROBES) * SPACING_S for number in range(PROBES))
        self._slowed.restore()
        until_s = self._clock()
        if until_s > from_s + seconds + LATE_S:
            self._late_until_s = until_s + RESTS_S
        yield max(until_s - run.began_s, at_s + rtt_s - MARGIN_S)
        due = self._look()
        yield until_s - run.began_s + rtt_s + MARGIN_S
        if depth := self._slowed.depth():
            self._waiting.append(RatePulse(from_s, until_s, depth, (begun, due, self._look())))

    def _note_extra(self, sent_s: float | None) -> None:
        """Note when a probe was sent, if it was, that is there for a dip alone."""
        if sent_s is None:
            return
        self._extra.append(sent_s)
        while self._extra[0] < sent_s - KEEP_S:
            self._extra.popleft()

    def _look(self) -> Look:
        return Look(self._clock(), self._slowed.moved_bytes())


def _within(probes: Sequence[Probe], from_s: float, until_s: float) -> Sequence[Probe]:
    first = bisect.bisect_left(probes, from_s, key=lambda probe: probe.t_s)
    return probes[first : bisect.bisect_right(probes, until_s, key=lambda probe: probe.t_s)]
