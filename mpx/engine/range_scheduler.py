"""The files that the workers of a download work on together: who takes which range next.

Several workers share one large file; a small one goes to one worker whole. When nothing is left to hand
out, a quick worker takes over part of what a slow one still has to bring.
"""

import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary, WeakSet

from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.ranges import RangeSet
from mpx.engine.source_change import END_DECIDES
from mpx.errors import MpxError, NoSpace
from mpx.files.local_error import local_error
from mpx.report import Severity
from mpx.units import counted

TAKEOVER_S = 0.3  # what a worker needs longer for is taken over by an idle one
TAIL = 4  # towards the end of a file pieces shrink to this part of what is left
SMALLEST_PIECE = 256 * 1024  # no file is cut smaller for a retrieve in MODE E
STUCK_S, STUCK_ANSWERS = 2.0, 2.0  # as is what was asked for longer ago, in seconds and in usual waits


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of a file that a worker is to bring; no bytes: one that is streamed, or all there already."""

    file: FileTransfer
    start: int
    end: int


class Fetch(Protocol):
    """A range of a file that a worker has asked a server for."""

    file: FileTransfer
    start: int  # of the range
    end: int
    sent_s: float  # when (monotonic clock)

    def missing(self) -> RangeSet:
        """Return what of the file has not come of it yet."""
        ...


@dataclass(frozen=True, slots=True)
class Pending:
    """A range that was asked for, and in how many seconds its worker will have brought it."""

    fetch: Fetch
    in_s: float
    goodput: float  # of the worker, bytes/s, more than 0


@dataclass(frozen=True, slots=True)
class Taker:
    """A worker that may take over: in how many seconds it has brought what it was asked for, and how fast."""

    waits_s: float
    goodput: float  # bytes/s, more than 0
    is_idle: bool  # it was asked for nothing
    answer_s: float = 0.0  # how long an answer is waited for, whoever asks
    least: int = 0  # bytes that are worth a request


def stuck_s(answer_s: float) -> float:
    """Return how long an answer is waited for before it is stuck, where they usually take so long."""
    return STUCK_S + STUCK_ANSWERS * answer_s


class RangeScheduler:
    """Hands out pieces to workers, the end of a file first. Safe for several threads.

    Files of up to `whole_bytes` are handed out in one piece.
    """

    def __init__(
        self, context: CarrierContext, smallest_piece: int = SMALLEST_PIECE, whole_bytes: int = 0
    ) -> None:
        self._context = context
        self._smallest, self._whole_bytes = smallest_piece, whole_bytes
        self._lock = threading.Lock()
        # Used with `_lock` held:
        self._files: deque[FileTransfer] = deque()  # with bytes to hand out
        self._under_way: list[FileTransfer] = []  # counted only where the user bounds them
        self._is_exact = False  # the server refuses to be asked for more than a file has
        self._exactly: WeakSet[FileTransfer] = WeakSet()  # files whose refusal may be due to that
        # What was taken over once already:
        self._doubled: WeakKeyDictionary[Fetch, RangeSet] = WeakKeyDictionary()

    def take(self, limit: int, least: int = 0) -> Piece | None:
        """Return the next piece of at most `limit` bytes, opening further files; None: there is none now.

        `least`: so large it is to be towards the end of a file, too, as fewer bytes are not worth a request.
        """
        with self._lock:
            while True:
                if piece := self._take_begun(limit, least):
                    return piece
                opened = self._open_next()
                if opened is None:
                    return None
                if opened.is_streamed:
                    opened.take_all()
                if opened.is_streamed or opened.is_whole:
                    return Piece(opened, 0, 0)
                self._files.append(opened)

    def _take_begun(self, limit: int, least: int = 0) -> Piece | None:
        """Return the next piece of files that are open."""
        while self._files:
            file = self._files[0]
            tail = max(file.todo_bytes // TAIL, self._smallest, least)
            is_small = file.size_bytes <= self._whole_bytes
            taken = file.take(self._whole_bytes if is_small else min(limit, tail), end_first=True)
            if taken:
                return Piece(file, *taken)
            self._files.popleft()  # its last bytes are on the way
        return None

    def _open_next(self) -> FileTransfer | None:
        """Take the next file from the queue, unless as many are on their way as the user allows."""
        most, queue = self._context.options.files, self._context.queue
        if most is not None:  # one that waits to be carried again is not on its way
            self._under_way = [
                file for file in self._under_way if not (file.is_claimed or queue.has_waiting(file))
            ]
            if len(self._under_way) >= most:
                return None
        opened = queue.take_more(lambda _: True)
        while opened is not None and opened.is_claimed:  # it was given up while it waited
            opened = queue.take_more(lambda _: True)
        if opened is not None and most is not None:
            self._under_way.append(opened)
        return opened

    def give_back(self, file: FileTransfer, start: int, end: int) -> None:
        """Return a piece that was taken and not brought, or not all of it.

        What is streamed is no range: it waits in the queue again, to be read from its first byte.
        """
        if file.is_streamed and start == end:
            if not file.is_claimed:
                self._context.queue.put_again(file)
            return
        file.give_back(start, end)
        self.put_back(file)

    def put_back(self, file: FileTransfer) -> None:
        """Hand out once more what is to be moved of a file."""
        with self._lock:
            if file.todo_bytes and file not in self._files:
                self._files.appendleft(file)

    def let_go(self, file: FileTransfer) -> bool:
        """Close a file that a worker had opened; the first to find it whole says so, and gets True."""
        whole = file.claim_whole()
        file.close()
        if whole:
            self._context.supervisor.whole(file)
        return whole

    def let_go_last(self, file: FileTransfer) -> bool:
        """Close a source that a worker had opened; the last one says that the file is whole, and gets True.

        Where each worker of a file learns only as it ends its part whether all of that is stored.
        """
        whole = file.close() and file.claim_whole()
        if whole:
            self._context.supervisor.whole(file)
        return whole

    def make_empty(self, file: FileTransfer) -> None:
        """Make the file of which nothing is to be brought: it is empty, or all of it is there."""
        try:
            fd = file.open(file.partial, os.O_RDWR | os.O_CREAT)
            try:
                os.ftruncate(fd, file.size_bytes)
            except OSError:
                file.close()
                raise
        except OSError as error:
            self.give_up(file, local_error(error, file.final, writing=True))
        else:
            self.let_go(file)

    def try_exactly(self, file: FileTransfer) -> None:
        """Ask for no byte more than a file has from now on."""
        with self._lock:
            self._exactly.add(file)

    def ask_exactly(self) -> None:
        """Ask for no byte more than a file has from now on, of whatever file."""
        with self._lock:
            self._is_exact = True

    def asks_exactly(self, file: FileTransfer) -> bool:
        """Tell whether no byte more than a file has is to be asked for."""
        with self._lock:
            return self._is_exact or (bool(self._exactly) and file in self._exactly)

    def ended(self, file: FileTransfer, size_bytes: int) -> None:
        """Take the end of the data for the end of the file, whatever was said of its size."""
        listed = file.listed_bytes
        if listed is not None and size_bytes != listed:
            self._context.supervisor.note(
                f"{file.source}: {counted(listed, 'byte')} announced and {size_bytes} came; {END_DECIDES}",
                Severity.NOTICE,
            )
        file.ended(size_bytes)
        if size_bytes != listed:
            self._context.supervisor.forgot(file)  # what was to be verified ended elsewhere

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """Give a file up, once for all workers that work on it; raises NoSpace, which ends the whole copy."""
        if isinstance(error, NoSpace):
            raise error
        if file.claim_given_up():
            self._context.supervisor.given_up(file, error)

    def take_file(self) -> Piece | None:
        """Return the next file whole, from its first byte, whatever of it has arrived; None if none waits."""
        with self._lock:
            opened = self._open_next()
            if opened is None:
                return None
            opened.take_all()
        self._context.supervisor.forgot(opened)
        return Piece(opened, 0, opened.size_bytes)

    def take_rest(self) -> list[Piece]:
        """Return all that is to be moved of the next file, for one worker; nothing if none waits."""
        with self._lock:
            again = [file for file in self._files if file.todo_bytes]
            opened = again[0] if again else self._open_next()
            self._files = deque(again[1:])
        if opened is None:
            return []
        if opened.is_streamed:
            opened.take_all()
        if opened.is_streamed or opened.is_whole:
            return [Piece(opened, 0, 0)]
        rest = RangeSet()
        while taken := opened.take(opened.size_bytes):
            rest.add(*taken)
        return [Piece(opened, start, end) for start, end in rest]

    @property
    def has_more(self) -> bool:
        """Whether there is something to hand out, or may be."""
        queue = self._context.queue
        with self._lock:
            return not queue.is_listed or queue.waiting[0] > 0 or any(each.todo_bytes for each in self._files)

    def take_over(self, pending: list[Pending], limit: int, taker: Taker) -> Piece | None:
        """Return at most `limit` bytes of what comes last at other workers, once for any byte of a fetch.

        So much that it comes here as soon as the rest does there. None if all of it comes soon at the others.
        What was taken over already comes soon where it is now, or is late there, too, and taken over again.
        """
        now, soon_s = time.monotonic(), TAKEOVER_S + taker.waits_s + taker.answer_s
        late_s, least = stuck_s(taker.answer_s), max(self._smallest, taker.least)
        found: tuple[float, Pending, int, int] | None = None
        with self._lock:
            for late in sorted(pending, key=lambda entry: -entry.in_s):
                fetch = late.fetch
                is_stuck = taker.is_idle and now - fetch.sent_s >= late_s
                if (late.in_s < soon_s and not is_stuck) or (found and late.in_s <= found[0]):
                    continue
                missing = fetch.missing().without(self._doubled.get(fetch, RangeSet()))
                for other in pending:
                    if other.fetch.file is fetch.file and other.in_s < late.in_s:
                        missing.remove(other.fetch.start, other.fetch.end)
                if not missing.size:
                    continue
                start, end = list(missing)[-1]
                in_s = late.in_s - (fetch.end - end) / late.goodput  # what is behind it comes from elsewhere
                if (in_s >= soon_s or is_stuck) and (not found or in_s > found[0]):
                    found = in_s, late, start, end
            if not found:
                return None
            in_s, late, start, end = found
            both = max(0.0, in_s - taker.waits_s - taker.answer_s) / (1 / taker.goodput + 1 / late.goodput)
            start = max(start, end - min(limit, max(least, int(both))))
            if not taker.is_idle and taker.waits_s + (end - start) / taker.goodput > in_s:
                return None  # it would come later here
            self._doubled.setdefault(late.fetch, RangeSet()).add(start, end)
            return Piece(late.fetch.file, start, end)
