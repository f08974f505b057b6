"""The files on their way: what of each is still to be handed out, what has arrived, how fast it may go.

Carriers take pieces from here and report what arrived; they do not know of journals or checksums, and
nothing here knows of sockets.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from mpx.checksum import SECTION_BYTES, RunningSums, sum_of
from mpx.errors import Interrupted, MpxError
from mpx.ranges import Range, RangeSet

CREDIT_S = 0.05  # time lost to a late wake-up that the pacer lets streams make up for


class Move:
    """One file on its way. Safe for several threads; sizes and offsets in bytes."""

    def __init__(
        self,
        source: str,
        final: str,
        partial: str,
        size_bytes: int,
        modified_s: float | None,
        mode: int | None,
        *,
        sums: bool = False,
    ) -> None:
        self.source = source
        self.final = final
        self.partial = partial
        self.size_bytes = size_bytes
        self.modified_s = modified_s
        self.mode = mode
        self.resumed_bytes = 0  # had arrived before this run
        self.retried_sections: set[int] = set()  # sent once more after a checksum mismatch
        self.verified = RangeSet()
        self.rename_asked = False  # for its final name; the answer may have been lost
        self._lock = threading.Lock()
        self._todo = RangeSet([(0, size_bytes)])
        self._arrived = RangeSet()
        self._fresh: list[Range] = []  # arrived since the journal was told
        self._lost = RangeSet()  # had arrived and does not count any more; the journal was not told
        self._sums = RunningSums() if sums else None
        self._fd: int | None = None
        self._users = 0
        self._claimed = False
        self._given_up = False

    # --- what is to do -----------------------------------------------------------------------------

    def resume(self, arrived: RangeSet) -> None:
        """Start from what an earlier run brought over."""
        with self._lock:
            self._arrived = arrived.within(0, self.size_bytes)

    def forget_arrived(self) -> None:
        """Start from nothing: the partial file is gone."""
        with self._lock:
            self._take_back(0, self.size_bytes)
            self._todo = self._arrived.missing(0, self.size_bytes)
            self.resumed_bytes = 0

    def forget_beyond(self, size_bytes: int) -> None:
        """Believe nothing of what lies beyond the end of the partial file."""
        with self._lock:
            self._take_back(size_bytes, self.size_bytes)

    def plan(self) -> None:
        """Hand out, from now on, what has not arrived."""
        with self._lock:
            self._todo = self._arrived.missing(0, self.size_bytes)
            self.resumed_bytes = self._arrived.size

    def take(self, limit: int) -> Range | None:
        """Hand out the next bytes to move, at most `limit` and within one section; None when none is left."""
        with self._lock:
            piece = self._todo.take_first(limit)
            if piece is None:
                return None
            start, end = piece
            edge = (start // SECTION_BYTES + 1) * SECTION_BYTES
            if end > edge:
                self._todo.add(edge, end)
                end = edge
            return start, end

    def take_all(self) -> None:
        """Hand out everything at once, also what has arrived before."""
        with self._lock:
            self._take_back(0, self.size_bytes)
            self._todo = RangeSet()
            self.resumed_bytes = 0

    def give_back(self, start: int, end: int) -> None:
        """Return bytes that were taken and not moved."""
        with self._lock:
            if self._given_up:
                return
            for missing in self._arrived.missing(start, end):
                self._todo.add(*missing)

    def redo_missing(self) -> int:
        """Put everything that has not arrived back to be handed out; return how many bytes that is."""
        with self._lock:
            self._todo = self._arrived.missing(0, self.size_bytes)
            return self._todo.size

    def redo(self, start: int, end: int) -> None:
        """Move [start, end) once more: it arrived, but wrong."""
        with self._lock:
            if self._given_up:
                return
            self._claimed = False
            self._take_back(start, end)
            self._todo.add(start, end)
            self.verified.remove(start, end)
            if self._sums:
                self._sums.forget(start, end)

    def _take_back(self, start: int, end: int) -> None:
        fresh = RangeSet(self._fresh)
        fresh.remove(start, end)
        self._fresh = list(fresh)
        self._lost.update(self._arrived.within(start, end))
        self._arrived.remove(start, end)

    @property
    def todo_bytes(self) -> int:
        """How many bytes wait to be handed out."""
        with self._lock:
            return self._todo.size

    # --- what has arrived ----------------------------------------------------------------------------

    def landed(self, start: int, end: int) -> int:
        """Record bytes that arrived; return how many of them arrived for the first time."""
        with self._lock:
            new = self._arrived.add(start, end)
            if new:
                self._fresh.append((start, end))
            return new

    def all_landed(self) -> None:
        """Record that everything has arrived but what is to be moved once more (`redo`)."""
        with self._lock:
            for start, end in self._todo.missing(0, self.size_bytes):
                if self._arrived.add(start, end):
                    self._fresh.append((start, end))

    def summed(self, start: int, end: int, value: int) -> None:
        """Record the Adler-32 of bytes that passed by."""
        if self._sums:
            with self._lock:
                self._sums.add(start, end, value)

    def section_sum(self, start: int, end: int, read: Callable[[int, int, int], int]) -> int:
        """Return the Adler-32 of a section, reading with `read(start, end, value)` what did not pass by."""
        with self._lock:
            known = self._sums.within(start, end) if self._sums else []
        return sum_of(known, start, end, read)

    def take_news(self) -> tuple[list[Range], list[Range]]:
        """Return what was lost, and then what has arrived, since the last call; each joined."""
        with self._lock:
            if not self._fresh and not self._lost:
                return [], []
            lost, self._lost = self._lost, RangeSet()
            fresh, self._fresh = self._fresh, []
        return list(lost), list(RangeSet(fresh))

    def has_arrived(self, start: int, end: int) -> bool:
        """Tell whether all of [start, end) has arrived."""
        with self._lock:
            return self._arrived.covers(start, end)

    @property
    def is_whole(self) -> bool:
        """Whether every byte has arrived."""
        return self.has_arrived(0, self.size_bytes)

    @property
    def arrived_bytes(self) -> int:
        """How many bytes have arrived, with those of earlier runs."""
        with self._lock:
            return self._arrived.size

    def claim_whole(self) -> bool:
        """Return True to the first who asks once every byte has arrived."""
        with self._lock:
            if self._claimed or not self._arrived.covers(0, self.size_bytes):
                return False
            self._claimed = True
            return True

    @property
    def is_claimed(self) -> bool:
        """Whether nobody needs to bring anything of it any more: it is whole, or given up."""
        return self._claimed

    def claim_given_up(self) -> bool:
        """Return True to the first who gives this file up; nobody will claim it whole afterwards.

        False, without any effect, if it was claimed before: whole, or given up by another.
        """
        with self._lock:
            if self._claimed:
                return False
            self._claimed = self._given_up = True
            self._todo = RangeSet()
            return True

    @property
    def is_given_up(self) -> bool:
        """Whether somebody has given this file up."""
        with self._lock:
            return self._given_up

    @property
    def is_summed(self) -> bool:
        """Whether those who pass bytes on are to record their Adler-32."""
        return self._sums is not None

    def missing_within(self, start: int, end: int) -> RangeSet:
        """Return what of [start, end) has not arrived."""
        with self._lock:
            return self._arrived.missing(start, end)

    # --- the local file ------------------------------------------------------------------------------

    def open(self, name: str, flags: int) -> int:
        """Open the local side, or use it once more; return its descriptor. Raises OSError.

        It lives until each `open` has been met by a `close`, so that a straggler never writes to a
        descriptor that means another file by then. Once the file is claimed nothing is created: it may
        have its final name already.
        """
        with self._lock:
            if flags & os.O_CREAT:
                flags |= os.O_NOFOLLOW  # a link in the place of a partial file is not ours
            if self._claimed:
                flags &= ~os.O_CREAT
            if self._fd is None:
                self._fd = os.open(name, flags | os.O_CLOEXEC, 0o600)
            self._users += 1
            return self._fd

    def close(self) -> None:
        """Let go of the local side; the last one closes it."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._fd is not None:
                os.close(self._fd)
                self._fd = None


class Pool:
    """The files waiting to be moved, filled by the lister and emptied by the carrier's lanes.

    Bounded in what waits and in what is not settled yet, so that a million names take no more memory than
    a few thousand, whatever is slowest: the lister, the lanes or the finisher.
    """

    def __init__(self, cancel: threading.Event, limit: int = 1000, most_unsettled: int = 5000) -> None:
        self._cancel = cancel
        self._limit = limit
        self._most_unsettled = most_unsettled
        self._waiting: deque[Move] = deque()
        self._changed = threading.Condition()
        self._unsettled: set[Move] = set()
        self._listing = True
        self.listed_bytes = 0  # of all files put so far
        self.listed_todo_bytes = 0  # of which had not arrived before
        self.listed_files = 0

    def put(self, move: Move) -> None:
        """Add a file; waits while the pool is full. Raises Interrupted when the copy is stopped."""
        with self._changed:
            while len(self._waiting) >= self._limit or len(self._unsettled) >= self._most_unsettled:
                self._wait()
            self._waiting.append(move)
            self._unsettled.add(move)
            self.listed_files += 1
            self.listed_bytes += move.size_bytes
            self.listed_todo_bytes += move.size_bytes - move.resumed_bytes
            self._changed.notify_all()

    def put_again(self, move: Move) -> None:
        """Add a file once more that is not settled yet; it goes first."""
        with self._changed:
            self._waiting.appendleft(move)
            self._changed.notify_all()

    def take(self) -> Move | None:
        """Return the next file, waiting for one; None when all are settled and no more will come."""
        with self._changed:
            while not self._waiting:
                if not self._listing and not self._unsettled:
                    return None
                self._wait()
            move = self._waiting.popleft()
            self._changed.notify_all()
            return move

    def take_more(self, fits: Callable[[Move], bool]) -> Move | None:
        """Return the next file if one waits and `fits`; never waits."""
        with self._changed:
            if not self._waiting or not fits(self._waiting[0]):
                return None
            self._changed.notify_all()
            return self._waiting.popleft()

    def settle(self, move: Move) -> None:
        """Say that a file is committed or given up."""
        with self._changed:
            self._unsettled.discard(move)
            self._changed.notify_all()

    @property
    def is_listed(self) -> bool:
        """Whether no more files will be put."""
        with self._changed:
            return not self._listing

    def end_listing(self) -> None:
        """Say that no more files will be put."""
        with self._changed:
            self._listing = False
            self._changed.notify_all()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left and nothing more will come."""
        with self._changed:
            return not self._listing and not self._unsettled

    def wait_settled(self, timeout_s: float) -> None:
        """Wait until all is settled, or so long."""
        with self._changed:
            if self._listing or self._unsettled:
                self._changed.wait_for(lambda: not self._listing and not self._unsettled, timeout_s)

    @property
    def resumed_bytes(self) -> int:
        """How many bytes of the listed files had arrived before this run."""
        return self.listed_bytes - self.listed_todo_bytes

    @property
    def missing_bytes(self) -> int:
        """How many bytes of the files that are waiting or on their way have not arrived."""
        with self._changed:
            moves = list(self._unsettled)
        return sum(move.size_bytes - move.arrived_bytes for move in moves)

    def _wait(self) -> None:
        if self._cancel.is_set():
            raise Interrupted("stopped")
        self._changed.wait(0.2)


class Pacer:
    """Holds all streams together to one rate: each byte gets its place on one shared clock."""

    def __init__(self, cancel: threading.Event, rate_bps: float | None = None) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._next_s = 0.0
        self.rate_bps = rate_bps

    def piece(self, largest_bytes: int) -> int:
        """Return how much to pass at once: `largest_bytes`, or about 20 ms of the rate."""
        if self.rate_bps is None:
            return largest_bytes
        return max(1460, min(largest_bytes, int(self.rate_bps * 0.02 / 8)))

    def wait(self, size_bytes: int) -> None:
        """Wait until `size_bytes` more may pass; returns at once when unlimited or stopped."""
        if self.rate_bps is None:
            return
        with self._lock:
            now = time.monotonic()
            begin = max(now - CREDIT_S, self._next_s)
            self._next_s = begin + size_bytes * 8 / self.rate_bps
        if begin > now:
            self._cancel.wait(begin - now)


class Gate:
    """Lets through a chunk and no more, where a tuner wants the mover to stand still in between."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._left: int | None = None
        self._passed = 0

    def open(self, chunk_bytes: int | None) -> None:
        """Let `chunk_bytes` more through; None lets everything through from now on."""
        with self._changed:
            self._left = chunk_bytes
            self._changed.notify_all()

    def take(self, want_bytes: int) -> int:
        """Return how many of `want_bytes` may go now; 0 after a short wait when the gate stays shut."""
        with self._changed:
            if self._left == 0:
                self._changed.wait(0.02)
            allowed = want_bytes if self._left is None else min(self._left, want_bytes)
            if self._left is not None:
                self._left -= allowed
            self._passed += allowed
            return allowed

    def give_back(self, size_bytes: int) -> None:
        """Return what was let through and not used."""
        with self._changed:
            self._passed -= size_bytes
            if self._left is not None:
                self._left += size_bytes

    @property
    def passed_bytes(self) -> int:
        """How many bytes have been let through and used."""
        with self._changed:
            return self._passed

    @property
    def is_used(self) -> bool:
        """Whether only a chunk at a time is let through."""
        with self._changed:
            return self._left is not None

    @property
    def is_shut(self) -> bool:
        """Whether everything that was let through has been taken."""
        with self._changed:
            return self._left == 0


class Failure:
    """The first error that ends the whole copy, and the event that tells every thread to stop."""

    def __init__(self, cancel: threading.Event) -> None:
        self.cancel = cancel
        self.error: MpxError | None = None
        self._lock = threading.Lock()

    def set(self, error: MpxError) -> None:
        """Stop everything because of `error`, unless something else did before."""
        with self._lock:
            if self.error is None and not self.cancel.is_set():
                self.error = error
        self.cancel.set()
