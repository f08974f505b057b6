"""Makes rate pulses (pulse.py) between the probes of a watch, one each second."""

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
    Moved,
    QueueResponse,
    RatePulse,
    length_s,
    response,
)
from mpx.rtt.method import Method
from mpx.rtt.runner import Run
from mpx.rtt.schedule import single_s
from mpx.rtt.series import Probe

EVERY = 10  # probes
LATEST = 3  # how many of the latest probes measure the queue
KEEP_S = 60.0
LOST_S = 5.0  # a probe without an answer by then is lost
EXACT_S = 1e-6  # rounding of the time of a probe, which is a sum
LATE_S, RESTS_S = 0.02, 30.0  # ending a pulse so late costs goodput: then there is none for a while


class Pacing(Protocol):
    """The connections of a copy, which can send more slowly for a moment."""

    @property
    def can(self) -> bool:
        """Whether that is possible at all."""
        ...

    def over(self, method: Method) -> None:
        """Note the method by which the path is probed from now on."""
        ...

    def measure(self) -> None:
        """Note how much they have moved since the last call."""
        ...

    def moved_bytes(self) -> int:
        """Return how much all of them have moved."""
        ...

    def slow(self, share: float, seconds: float) -> bool:
        """Have them send this share of their rate for so long; return False where that is not possible."""
        ...

    def restore(self) -> None:
        """Remove the limit."""
        ...

    def depth(self) -> float:
        """Return by which share the rate was reduced the last time; 0 where that is not known."""
        ...


class PulseMaker:
    """Makes the pulses of one copy. Responses are read by another thread than the one that makes pulses."""

    def __init__(self, pacer: Pacing, clock: Callable[[], float] = time.monotonic) -> None:
        self._pacer = pacer
        self._clock = clock
        # Appended to by the prober's thread, read by the control loop's: operations of a deque are atomic.
        self._extra: deque[float] = deque()  # when probes were sent that only a pulse needs
        self._waiting: deque[RatePulse] = deque()  # pulses whose probes may still be in flight
        self._responses: deque[QueueResponse] = deque()  # used by the control loop's thread alone
        self._late_until_s = self._rests_until_s = -math.inf

    @property
    def can(self) -> bool:
        """Whether pulses are possible."""
        return self._pacer.can

    def over(self, method: Method) -> None:
        """Note the method by which the path is probed from now on: the echo carries requests for pulses."""
        self._pacer.over(method)

    def times(self, run: Run, least_s: Callable[[], float]) -> Generator[float]:
        """Yield when the probes of a run are due, for ever, those of pulses among them.

        Rates are changed between two of them. `least_s` returns the shortest round trip known.
        """
        pulse: Iterator[float] = iter(())
        due_s = math.inf
        try:
            for number in count():
                at_s = single_s(number)
                while due_s < at_s:
                    yield due_s
                    self._note_extra(run.sent_s)
                    due_s = next(pulse, math.inf)
                yield at_s
                if self.can and number % EVERY == EVERY - 1 and math.isinf(due_s):
                    self._pacer.measure()
                    pulse = self._pulse(run, least_s())
                    due_s = next(pulse, math.inf)
        finally:
            self._pacer.restore()

    def rest(self, until_s: float) -> None:
        """Make no pulse until then; replaces an earlier call."""
        self._rests_until_s = until_s

    def responses(self, probes: Sequence[Probe], from_s: float) -> list[QueueResponse]:
        """Return the responses to pulses since then, as far as `probes`, in order of time, show them."""
        now_s = self._clock()
        while self._waiting:
            pulse = self._waiting[0]
            found = response(pulse, _within(probes, pulse.from_s - AROUND_S, pulse.until_s))
            if found is None and pulse.until_s >= now_s - LOST_S:
                break
            self._waiting.popleft()
            if found:
                self._responses.append(found)
        while self._responses and self._responses[0].t_s < now_s - KEEP_S:
            self._responses.popleft()
        return [each for each in self._responses if each.t_s >= from_s]

    def without(self, probes: Sequence[Probe]) -> list[Probe]:
        """Return the probes that are not there for pulses alone."""
        extra = list(self._extra)

        def is_extra(probe: Probe) -> bool:
            at = bisect.bisect_left(extra, probe.t_s - EXACT_S)
            return at < len(extra) and extra[at] <= probe.t_s + EXACT_S

        return [probe for probe in probes if not is_extra(probe)]

    def _pulse(self, run: Run, least_s: float) -> Iterator[float]:
        """Make a pulse; yield when its probes are due (seconds of the run), and go on once each is sent."""
        known = [probe.rtt_s for probe in run.probes()[-2 * EVERY :] if probe.rtt_s is not None][-LATEST:]
        rtt_s = median(known) if known else 0.0
        seconds = length_s(rtt_s - min(rtt_s, least_s), rtt_s)
        if not seconds or self._clock() < max(self._late_until_s, self._rests_until_s):
            return
        now_s = self._clock() - run.began_s
        yield from (now_s + (number + 1) * SPACING_S for number in range(PROBES))
        from_s, begun = self._clock(), self._moved()
        if not self._pacer.slow(1 - DEPTH, seconds):
            return
        at_s = from_s - run.began_s
        yield from (at_s + seconds + (number + 1 - PROBES) * SPACING_S for number in range(PROBES))
        self._pacer.restore()
        until_s = self._clock()
        if until_s > from_s + seconds + LATE_S:
            self._late_until_s = until_s + RESTS_S
        yield max(until_s - run.began_s, at_s + rtt_s - MARGIN_S)
        due = self._moved()
        yield until_s - run.began_s + rtt_s + MARGIN_S
        if depth := self._pacer.depth():
            self._waiting.append(RatePulse(from_s, until_s, depth, (begun, due, self._moved())))

    def _note_extra(self, sent_s: float | None) -> None:
        """Note when a probe was sent that only a pulse needs; None: it was not."""
        if sent_s is None:
            return
        self._extra.append(sent_s)
        while self._extra[0] < sent_s - KEEP_S:
            self._extra.popleft()

    def _moved(self) -> Moved:
        return Moved(self._clock(), self._pacer.moved_bytes())


def _within(probes: Sequence[Probe], from_s: float, until_s: float) -> Sequence[Probe]:
    first = bisect.bisect_left(probes, from_s, key=lambda probe: probe.t_s)
    return probes[first : bisect.bisect_right(probes, until_s, key=lambda probe: probe.t_s)]
