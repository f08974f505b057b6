"""Sends the probes of a schedule over a way, without waiting for answers, and puts the two together."""

import math
import time
from collections.abc import Callable, Iterable

from mpx.errors import Interrupted
from mpx.rtt.method import Way
from mpx.rtt.series import Probe

TOO_LATE_S = 0.25  # a probe that is so late is left out: the program stood still, and many are due at once
_LOOK_S = 0.1  # how often a run looks whether it is to stop


class Run:
    """One run, its probes numbered from `first`; what is older than `keep_s` is forgotten.

    Ask for `probes` at any time and from any thread, also when `go` has raised.
    """

    def __init__(
        self,
        way: Way,
        *,
        first: int = 0,
        keep_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.not_sent = 0  # for this program stood still when they were due
        self.sent_s: float | None = (
            None  # when the last one that was due left (by the clock), None: it did not
        )
        self._way = way
        self._next = first
        self._keep_s = keep_s
        self._clock = clock
        self._sent: dict[int, float] = {}
        self._rtts: dict[int, float] = {}
        self.began_s = clock()
        self._ended_s: float | None = None

    @property
    def duration_s(self) -> float:
        """How long it has run."""
        return (self._clock() if self._ended_s is None else self._ended_s) - self.began_s

    def go(self, schedule: Iterable[float], stop: Callable[[], bool]) -> None:
        """Send a probe at each time of `schedule` (seconds from now) and wait until their fate is known.

        Raises Interrupted soon after `stop` says so, and what the way raises when it is lost.
        """
        self.began_s = self._clock()
        try:
            for at_s in schedule:
                due_s = self.began_s + at_s
                self._wait(due_s, stop)
                if self._clock() <= due_s + TOO_LATE_S:
                    self._sent[self._next] = self.sent_s = self._way.ask(self._next)
                    self._next += 1
                    self._forget()
                else:
                    self.sent_s = None
                    self.not_sent += 1
            while (until_s := self._fate_known_s()) > self._clock():
                self._take(until_s, stop)
        finally:
            self._ended_s = self._clock()

    def probes(self) -> list[Probe]:
        """Return the probes whose fate is known; times are since the begin."""
        now_s = self._clock() if self._ended_s is None else self._ended_s
        return [
            Probe(sent_s - self.began_s, self._rtts.get(number))
            for number, sent_s in list(self._sent.items())  # at once, as `go` may be adding to it
            if number in self._rtts or now_s >= sent_s + self._way.lost_after_s
        ]

    def _forget(self) -> None:
        oldest_s = self._clock() - self._keep_s
        while self._sent and self._sent[number := next(iter(self._sent))] < oldest_s:
            del self._sent[number]
            self._rtts.pop(number, None)

    def _fate_known_s(self) -> float:
        """Return when the fate of every probe will be known."""
        waiting = [sent_s for number, sent_s in self._sent.items() if number not in self._rtts]
        return max(waiting) + self._way.lost_after_s if waiting else self._clock()

    def _wait(self, until_s: float, stop: Callable[[], bool]) -> None:
        self._take(until_s, stop)
        while self._clock() < until_s:
            self._take(until_s, stop)

    def _take(self, until_s: float, stop: Callable[[], bool]) -> None:
        """Take the answers there are, waiting for the first until then or for a moment."""
        if stop():
            raise Interrupted
        for answer in self._way.answers(min(until_s, self._clock() + _LOOK_S)):
            if answer.rtt_s <= self._way.lost_after_s:
                self._rtts[answer.number] = answer.rtt_s
