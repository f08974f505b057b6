"""Sends the probes of a schedule, without waiting for answers, and matches answers to probes."""

import math
import time
from collections.abc import Callable, Iterable

from mpx.errors import Interrupted
from mpx.rtt.method import Method
from mpx.rtt.series import Probe

TOO_LATE_S = 0.25  # a probe that is so late is left out: the program was suspended, and many are due at once
_CHECK_S = 0.1  # how often a run checks whether it is to stop


class Run:
    """One run, its probes numbered from `first`; what is older than `keep_s` is forgotten.

    `probes` may be called at any time and from any thread, also when `go` has raised.
    """

    def __init__(
        self,
        method: Method,
        *,
        first: int = 0,
        keep_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.not_sent = 0  # as this program was suspended when they were due
        self.sent_s: float | None = (
            None  # when the last one that was due left (by the clock), None: it did not
        )
        self._method = method
        self._next = first
        self._keep_s = keep_s
        self._clock = clock
        # Written by the thread of `go`; `probes` copies `_sent` in one operation (interpreter lock).
        self._sent: dict[int, float] = {}
        self._rtts: dict[int, float] = {}
        self.began_s = clock()
        self._ended_s: float | None = None

    @property
    def duration_s(self) -> float:
        """How long it has run."""
        return (self._clock() if self._ended_s is None else self._ended_s) - self.began_s

    def go(self, schedule: Iterable[float], stop: Callable[[], bool]) -> None:
        """Send a probe at each time of `schedule` (seconds from now); return when all are answered or lost.

        Raises Interrupted soon after `stop` returns True, and what the method raises.
        """
        self.began_s = self._clock()
        try:
            for at_s in schedule:
                due_s = self.began_s + at_s
                self._wait(due_s, stop)
                if self._clock() <= due_s + TOO_LATE_S:
                    self._sent[self._next] = self.sent_s = self._method.ask(self._next)
                    self._next += 1
                    self._forget()
                else:
                    self.sent_s = None
                    self.not_sent += 1
            while (until_s := self._all_known_s()) > self._clock():
                self._take(until_s, stop)
        finally:
            self._ended_s = self._clock()

    def probes(self) -> list[Probe]:
        """Return the probes that are answered or lost; times are since the begin."""
        now_s = self._clock() if self._ended_s is None else self._ended_s
        return [
            Probe(sent_s - self.began_s, self._rtts.get(number))
            for number, sent_s in list(self._sent.items())  # a copy, as `go` may be adding to it
            if number in self._rtts or now_s >= sent_s + self._method.lost_after_s
        ]

    def _forget(self) -> None:
        oldest_s = self._clock() - self._keep_s
        while self._sent and self._sent[number := next(iter(self._sent))] < oldest_s:
            del self._sent[number]
            self._rtts.pop(number, None)

    def _all_known_s(self) -> float:
        """Return when every probe will be answered or lost."""
        waiting = [sent_s for number, sent_s in self._sent.items() if number not in self._rtts]
        return max(waiting) + self._method.lost_after_s if waiting else self._clock()

    def _wait(self, until_s: float, stop: Callable[[], bool]) -> None:
        self._take(until_s, stop)
        while self._clock() < until_s:
            self._take(until_s, stop)

    def _take(self, until_s: float, stop: Callable[[], bool]) -> None:
        """Take the answers there are; wait for the first until then, or for a moment."""
        if stop():
            raise Interrupted
        for answer in self._method.answers(min(until_s, self._clock() + _CHECK_S)):
            if answer.rtt_s <= self._method.lost_after_s:
                self._rtts[answer.number] = answer.rtt_s
