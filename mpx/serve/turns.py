"""Turns: few threads work for clients at the same time, first those of clients that used little so far.

Python runs one thread at a time, so whoever wants to run waits for all others that do. With turns they are
few however many clients are busy, and a client that asks for little does not notice the others: while there
are such clients, one turn is kept for them. A turn is for work that takes well below a millisecond and never
waits for a client. It may wait for a file system: where no turn has ended for so long as who waits has
patience, the work is done without one.
"""

import heapq
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TypeVar

Line = TypeVar("Line")

AT_ONCE = 2
PATIENCE_S = 0.02  # without the end of any turn
LONG_PATIENCE_S = 0.1  # of what goes on for long anyway
MOST_WAIT_S = 1.0  # even while turns end
LINES_OF_A_TURN = 8  # of a listing
_LITTLE_S = 0.05
_MODEST_S = 1.0  # so long after such a client had a turn one is kept for the next
_HALF_LIFE_S = 1.0  # in which what a client used counts half


class Share:
    """What one client has used lately, in seconds of the processor."""

    def __init__(self) -> None:
        # Until _at_s, the older the less. Who has just come is behind those known to use little.
        self._used_s = 2 * _LITTLE_S
        self._at_s = time.monotonic()
        self._without_pause_s = 0.0

    def used_s(self, now_s: float) -> float:
        """Return what counts now."""
        return self._used_s * math.pow(2.0, (self._at_s - now_s) / _HALF_LIFE_S)

    def rank(self, now_s: float) -> float:
        """Return who comes first: it is 0 for all who use little and wait for their client in between."""
        return self._without_pause_s + max(0.0, self.used_s(now_s) - _LITTLE_S)

    def pause(self) -> None:
        """Note that there was nothing to do."""
        self._without_pause_s = 0.0

    def add(self, seconds: float, now_s: float) -> None:
        """Count a turn."""
        self._without_pause_s += seconds
        self._used_s, self._at_s = self.used_s(now_s) + seconds, now_s


class Grant(Enum):
    """What became of who waited for a turn."""

    NONE = "none"  # the patience ended first
    MODEST = "modest"  # a turn, for a client that used little
    BUSY = "busy"


@dataclass(order=True, slots=True)
class _Waiting:
    """Who waits; `mine` is held until the turn comes."""

    rank: float
    number: int
    grant: Grant = field(compare=False)  # that is waited for
    mine: threading.Lock = field(default_factory=threading.Lock, compare=False)


class Turns:
    """Gives turns to the threads of a server."""

    def __init__(self, at_once: int = AT_ONCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # of what follows, and of all shares
        self._at_once = at_once
        self._held = {Grant.MODEST: 0, Grant.BUSY: 0}
        self._waiting: list[_Waiting] = []  # a heap
        self._count = 0
        self._ended_s = -math.inf  # when a turn ended last
        self._modest_s = -math.inf  # when a client that uses little asked last

    def take(self, share: Share, patience_s: float) -> Grant:
        """Wait for a turn; return Grant.NONE where none has ended for `patience_s`, or it takes too long."""
        with self._lock:
            began_s = now_s = self._clock()
            rank = share.rank(now_s)
            grant = Grant.BUSY if rank else Grant.MODEST
            if grant is Grant.MODEST:
                self._modest_s = now_s
            if self._may_have(grant, now_s):
                self._held[grant] += 1
                return grant
            self._count += 1
            waiting = _Waiting(rank, self._count, grant)
            waiting.mine.acquire()
            heapq.heappush(self._waiting, waiting)
        until_s = began_s + patience_s
        while not waiting.mine.acquire(timeout=max(0.0, until_s - self._clock())):
            with self._lock:
                if waiting not in self._waiting:
                    break  # it came at the last moment
                now_s, until_s = self._clock(), min(self._ended_s + patience_s, began_s + MOST_WAIT_S)
                if now_s >= until_s:
                    self._waiting.remove(waiting)
                    heapq.heapify(self._waiting)
                    return Grant.NONE
        return grant

    def end(self, share: Share, used_s: float, had: Grant) -> None:
        """Count what a turn took, and pass it on; `had` is what `take` returned."""
        with self._lock:
            now_s = self._clock()
            share.add(used_s, now_s)
            if had is not Grant.NONE:
                self._held[had] -= 1
                self._ended_s = now_s
            while self._waiting and self._may_have(self._waiting[0].grant, now_s):
                first = heapq.heappop(self._waiting)
                self._held[first.grant] += 1
                first.mine.release()

    def _may_have(self, grant: Grant, now_s: float) -> bool:
        """Tell whether one more turn may be given; while there are modest clients the last one is theirs."""
        free = self._at_once - sum(self._held.values())
        keeps_one = grant is Grant.BUSY and self._at_once > 1 and now_s < self._modest_s + _MODEST_S
        return free > keeps_one


class Turn:
    """The turns of one thread that works for a client; `with` takes one. `take` and `end` may be repeated."""

    def __init__(self, turns: Turns, share: Share, alone: "threading.Lock | None" = None) -> None:
        """Of all who have the same `alone`, one at a time asks for a turn, however long the others wait."""
        self._turns = turns
        self._share = share
        self._alone = alone
        self._taken = False
        self._had = Grant.NONE
        self._began_s = 0.0

    def take(self, patience_s: float = PATIENCE_S) -> None:
        """Wait for a turn, unless this has one; go on without one if it takes too long."""
        if not self._taken:
            if self._alone:
                self._alone.acquire()
            self._taken, self._had = True, self._turns.take(self._share, patience_s)
            self._began_s = time.thread_time()

    def end(self) -> None:
        """Let others have it."""
        if self._taken:
            self._taken = False
            self._turns.end(self._share, time.thread_time() - self._began_s, self._had)
            if self._alone:
                self._alone.release()

    def __enter__(self) -> "Turn":
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def in_turns(turn: Turn, lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Make some of the lines of a long listing in each turn, and yield them while it is over."""
    left = iter(lines)
    while True:
        turn.take(LONG_PATIENCE_S)
        try:
            some = list(islice(left, LINES_OF_A_TURN))
        finally:
            turn.end()
        if not some:
            return
        yield some
