"""One file on its way: what of it is still to be handed out, and what has arrived.

Carriers take pieces from here and report what arrived; nothing here knows of journals or sockets.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterable

from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.endpoint import FileInfo
from mpx.engine.ranges import Range, RangeSet
from mpx.engine.running_checksum import running
from mpx.engine.verified_ranges import Verified
from mpx.errors import ConnectionLost
from mpx.files.guarded_folders import LocalFolders
from mpx.files.partial_file import PartialFile
from mpx.files.source_trees import ANYWHERE

MOST_PIECES = 1 << 16  # of a file, with gaps between them: several hundred streams leave some thousand
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # a fifo would have us wait
SMALL_FILE_BYTES = 4 * 1024 * 1024  # sent so soon that it may be sent again


class FileTransfer:
    """One file on its way. Safe for several threads; sizes and offsets in bytes.

    A file of unknown size, or one whose size is not believed (`streamed`), is read in order to its end by
    one reader, who says what arrived (`landed`, by which `size_bytes` grows) and at last where the end
    was (`ended`).
    """

    def __init__(
        self,
        source: str,
        final: str,
        partial: str,
        info: FileInfo,  # of the source, as it was listed
        *,
        streamed: bool = False,
        sums: str = "none",  # the checksum that is taken of what passes
        hole_bytes: int = 0,
        folders: LocalFolders | None = None,
    ) -> None:
        # As it was listed; the scan sets the last four before others see the file.
        self.source = source
        self.final = final
        self.partial = partial
        self.listed_bytes = info.size_bytes  # None: unknown
        self.modified_s = info.modified_s
        self.mode = info.mode
        self.tag = info.tag
        self.hole_bytes = hole_bytes  # of its size that take no room at the destination
        self.was_begun = False  # by an earlier run
        self.replaces: FileInfo | None = None  # what had its final name when it was listed
        self.trees = ANYWHERE  # by which the source is opened, where this host has it
        self.named: Callable[[], str] = lambda: source  # for people: where a server has it, its URL
        # Owned by the one worker that has the file in hand:
        self.sent_whole = False  # every byte was sent and the answer was lost: all of it may be there
        self.failures = 0  # attempts that failed
        self.was_stored = False  # some of it may be there, as its storing has begun before
        self.was_read = False  # of a source that is streamed
        self.is_read_once = False  # the source cannot be read twice: a pipe
        # Owned by the one session that commits the file; sections are only added, by whoever compares one:
        self.retried_sections: set[int] = set()  # sent once more after a checksum mismatch
        self.rename_asked = False  # for its final name; the answer may have been lost
        self.was_misfit = False  # the server stored another number of bytes than were sent, once
        self.is_synced = False  # the worker that has brought all of it has synced it, and none is lost since
        # Changed here only, with `_lock` held; one value at a time is read without it:
        self.size_bytes = info.known_bytes
        self.is_streamed = streamed or info.size_bytes is None  # until its end has been seen
        self.resumed_bytes = 0  # had arrived before this run
        self._claimed = self._given_up = False
        # Each has a lock of its own:
        self.verified = Verified()
        self.sums = running(sums)  # of what passes
        self.far_digest: tuple[int, str] | None = None  # the server has, of so many bytes, by `sums`
        self.is_unchanged = False  # the source was looked at after all of it was read, and is the same
        self.written = PartialFile(partial, folders)  # where this host is the destination
        # Used with `_lock` held:
        self._lock = threading.Lock()
        self._todo = RangeSet([(0, self.size_bytes)])
        self._arrived = RangeSet()
        self._fresh: list[Range] = []  # arrived and not yet journaled
        self._held = RangeSet()  # written, but not yet believed
        self._lost = RangeSet()  # no longer counts as arrived, and not yet journaled as such
        self._always_streamed = self.is_streamed
        self._fd: int | None = None  # of the source, where this host is that
        self._users = 0

    @property
    def is_small(self) -> bool:
        """Whether it goes in a batch with others, and again from its start rather than on from a journal."""
        return (self.listed_bytes or 0) <= SMALL_FILE_BYTES

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

    def take(self, limit: int, *, end_first: bool = False) -> Range | None:
        """Hand out the next bytes to move, at most `limit` and within one section; None when none is left.

        With `end_first` those at the end of the file go before all others.
        """
        with self._lock:
            size = self.size_bytes
            if end_first and self._todo.size > limit and self._todo.covers(size - 1, size):
                return self._todo.take_last(min(limit, (size - 1) % SECTION_BYTES + 1))
            if (piece := self._todo.take_first(limit)) is None:
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
            if self._always_streamed:
                self.size_bytes, self.is_streamed = 0, True

    def stream(self) -> bool:
        """Have it read to its end from now on, from its first byte; False if it is already."""
        with self._lock:
            if self.is_streamed or self._claimed:
                return False
            self._take_back(0, self.size_bytes)
            self._todo = RangeSet()
            self.size_bytes, self.resumed_bytes = 0, 0
            self.is_streamed = self._always_streamed = True
            return True

    def give_back(self, start: int, end: int) -> None:
        """Return bytes that were taken and not moved, unless streamed; who holds some returns those."""
        with self._lock:
            if not self._given_up and not self.is_streamed:
                self._todo.update(self._arrived.missing(start, end).without(self._held))

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

    def _take_back(self, start: int, end: int) -> None:
        """Count bytes as neither arrived nor compared."""
        self.is_synced = False
        fresh = RangeSet(self._fresh)
        fresh.remove(start, end)
        self._fresh = list(fresh)
        self._lost.update(self._arrived.within(start, end))
        self._arrived.remove(start, end)
        self.verified.remove(start, end)
        self.sums.forget(start, end)

    @property
    def todo_bytes(self) -> int:
        """How many bytes wait to be handed out."""
        with self._lock:
            return self._todo.size

    # --- what has arrived ----------------------------------------------------------------------------

    def landed(self, start: int, end: int) -> int:
        """Record bytes that arrived; return how many of them arrived for the first time.

        Raises ConnectionLost where they come in more separate pieces than any program sends.
        """
        with self._lock:
            return self._landed(start, end)

    def _landed(self, start: int, end: int) -> int:
        if self.is_streamed:
            self.size_bytes = max(self.size_bytes, end)
        if new := self._add(self._arrived, start, end):
            self._fresh.append((start, end))
        return new

    def _add(self, pieces: RangeSet, start: int, end: int) -> int:
        before = len(pieces)
        new = pieces.add(start, end)
        if before < len(pieces) > MOST_PIECES:
            raise ConnectionLost(
                f"{self.source} is sent in more than {MOST_PIECES} separate pieces; the server is broken"
            )
        return new

    def hold(self, start: int, end: int) -> list[Range]:
        """Return which of these bytes are to be written, although they count only once they are believed.

        Not what has arrived, or is held already: what may be wrong is never written over what is right.
        Raises as `landed`.
        """
        with self._lock:
            new = self._arrived.missing(start, end).without(self._held)
            for each in new:
                self._add(self._held, *each)
            return list(new)

    def not_here(self, start: int, end: int) -> RangeSet:
        """Return what of [start, end) has neither arrived nor is held."""
        with self._lock:
            return self._arrived.missing(start, end).without(self._held)

    def believe(self, held: Iterable[Range]) -> int:
        """Count bytes that were held as arrived; return how many of them arrived for the first time."""
        ranges = list(held)
        with self._lock:
            for start, end in ranges:
                self._held.remove(start, end)
            return sum(self._landed(start, end) for start, end in ranges)

    def disbelieve(self, held: Iterable[Range]) -> None:
        """Let go of bytes that were held and do not count."""
        with self._lock:
            for start, end in held:
                self._held.remove(start, end)
                if not self._arrived.covers(start, end):
                    self.sums.forget(start, end)

    def ended(self, size_bytes: int) -> None:
        """Record the size of the source, whose end has been seen; it replaces the size that was listed."""
        with self._lock:
            if size_bytes < self.size_bytes:
                self._take_back(size_bytes, self.size_bytes)
                self._todo.remove(size_bytes, self.size_bytes)
            self.size_bytes, self.is_streamed = size_bytes, False

    def all_landed(self) -> None:
        """Record that everything has arrived but what is to be moved once more (`redo`)."""
        with self._lock:
            for start, end in self._todo.missing(0, self.size_bytes):
                if self._arrived.add(start, end):
                    self._fresh.append((start, end))

    def found_same(self, start: int, end: int, algorithm: str) -> None:
        """Record that both ends have the same bytes in [start, end), by their checksums."""
        with self._lock:
            self.verified.add(start, end, algorithm)
        self.sums.forget(start, end)

    @property
    def can_read_again(self) -> bool:
        """Whether the source is a file: a pipe, or what has no known size, may give other bytes, or none."""
        return not self._always_streamed and not self.is_read_once

    @property
    def has_news(self) -> bool:
        """Whether there is anything to journal; asked of thousands of files at a time, so without a lock."""
        return bool(self._fresh or self._lost)

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
        with self._lock:
            return self._is_whole()

    def _is_whole(self) -> bool:
        return not self.is_streamed and self._arrived.covers(0, self.size_bytes)

    @property
    def arrived_bytes(self) -> int:
        """How many bytes have arrived, with those of earlier runs."""
        with self._lock:
            return self._arrived.size

    def claim_whole(self) -> bool:
        """Return True to the first who asks once every byte has arrived."""
        with self._lock:
            if self._claimed or not self._is_whole():
                return False
            self._claimed = True
            return True

    @property
    def is_claimed(self) -> bool:
        """Whether no more of it needs to be moved: it is whole, or given up."""
        return self._claimed

    def claim_given_up(self) -> bool:
        """Return True to the first caller that gives this file up, which then cannot be claimed whole.

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
        """Whether it was given up."""
        return self._given_up

    def missing_within(self, start: int, end: int) -> RangeSet:
        """Return what of [start, end) has not arrived."""
        with self._lock:
            return self._arrived.missing(start, end)

    @property
    def missing_room_bytes(self) -> int:
        """How much room what has not arrived takes at the destination."""
        with self._lock:
            return max(0, self.size_bytes - self.hole_bytes - self._arrived.size)

    # --- the local file ------------------------------------------------------------------------------

    def open(self, name: str, flags: int) -> int:
        """Open the local side, or use it once more; return its descriptor. Raises OSError.

        It lives until each `open` has been met by a `close`, so that a straggler never writes to a
        descriptor that means another file by then; a partial file lives until `release`. Once the file is
        claimed nothing is created: it may have its final name already.
        """
        if flags & os.O_ACCMODE != os.O_RDONLY:
            with self._lock:  # so that nobody claims it, and has it renamed or removed, in between
                return self.written.open(create=bool(flags & os.O_CREAT) and not self._claimed)
        with self._lock:
            if self._fd is None:
                self._check_unread()
                self._fd = self.trees.open(name, READING)
            self._users += 1
            return self._fd

    def open_source(self) -> int:
        """Open the source for one reader, who closes it. Raises OSError, also for a pipe that was read."""
        self._check_unread()
        return self.trees.open(self.source, READING)

    def _check_unread(self) -> None:
        if self.is_read_once and self.was_read:
            raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))

    def close(self) -> bool:
        """Let go of the local side, where the last one closes a source; return whether this was the last."""
        with self._lock:
            if self._fd is None:
                self.written.close()
                return False
            self._users -= 1
            if self._users == 0:
                fd, self._fd = self._fd, None
                os.close(fd)
            return self._users == 0

    def release(self) -> None:
        """Keep the partial file open no longer than it is used: it is committed or given up."""
        self.written.release()
