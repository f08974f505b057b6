"""Turns: few threads work for clients at the same time, first those of clients that used little so far.

Python runs one thread at a time, so whoever wants to run waits for all others that do. With turns they are
few however many clients are busy, and a client that asks for little does not notice the others. A turn is for
work that takes well below a millisecond and never waits for a client. It may wait for a file system, so
nobody waits for a turn longer than PATIENCE_S: then the work is done without one.
"""

import heapq
import math
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Self, TypeVar

Line = TypeVar("Line")

AT_ONCE = 2
PATIENCE_S = 0.02
LONG_PATIENCE_S = 0.1  # of what goes on for long anyway: many of these are to wait, rather than all to run
LINES_OF_A_TURN = 8  # of a listing
_LITTLE_S = 0.02
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
        return self._used_s * math.exp2((self._at_s - now_s) / _HALF_LIFE_S)

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


class Turns:
    """Gives turns to the threads of a server."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._lock = threading.Lock()  # of what follows, and of all shares
        self._free = at_once
        self._waiting: list[
            tuple[float, int, threading.Lock]
        ] = []  # a heap: rank, number, held until its turn
        self._count = 0

    def take(self, share: Share, patience_s: float) -> bool:
        """Wait for a turn; return False if the patience ended first."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            self._count += 1
            mine = threading.Lock()
            mine.acquire()
            waiting = (share.rank(time.monotonic()), self._count, mine)
            heapq.heappush(self._waiting, waiting)
        if mine.acquire(timeout=patience_s):
            return True
        with self._lock:
            if waiting not in self._waiting:
                return True  # it came at the last moment
            self._waiting.remove(waiting)
            heapq.heapify(self._waiting)
            return False

    def end(self, share: Share, used_s: float, *, had: bool) -> None:
        """Count what a turn took, and pass it on; `had` is what `take` returned."""
        with self._lock:
            share.add(used_s, time.monotonic())
            if had and self._waiting:
                heapq.heappop(self._waiting)[2].release()
            elif had:
                self._free += 1


class Turn:
    """The turns of one thread that works for a client; `with` takes one. `take` and `end` may be repeated."""

    def __init__(self, turns: Turns, share: Share, alone: "threading.Lock | None" = None) -> None:
        """Of all who have the same `alone`, one at a time asks for a turn, however long the others wait."""
        self._turns = turns
        self._share = share
        self._alone = alone
        self._taken = self._had = False
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
            self._turns.end(self._share, time.thread_time() - self._began_s, had=self._had)
            if self._alone:
                self._alone.release()

    def __enter__(self) -> Self:
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
