"""The files that wait to be moved: filled by the scan, emptied by the workers, settled by the committer."""

import threading
from collections import deque
from collections.abc import Callable

from mpx.engine.file_transfer import FileTransfer
from mpx.errors import Interrupted

LOOK_S = 0.2  # between two looks of who waits whether the copy is stopped


class FileQueue:
    """The files waiting to be moved, filled by the scan and emptied by the carrier's workers.

    Bounded in what waits and in what is not settled yet, so that a million names take no more memory than
    a few thousand, whatever is slowest: the scan, the workers or the committer.
    """

    def __init__(self, cancel: threading.Event, limit: int = 1000, most_unsettled: int = 5000) -> None:
        self._cancel = cancel
        self._limit = limit
        self._most_unsettled = most_unsettled
        self._waiting: deque[FileTransfer] = deque()
        self._waiting_bytes = 0
        self._lock = threading.Lock()
        # Each file wakes only who can go on with it: a thread that wakes in vain costs more than a file.
        self._filled = threading.Condition(self._lock)  # files wait, or no more will
        self._emptied = threading.Condition(self._lock)  # there is much room, or nothing is unsettled
        self._ended = threading.Condition(self._lock)  # nothing is left
        self._unsettled: set[FileTransfer] = set()
        self._listing = True
        # Written with `_lock` held, each read by itself:
        self.listed_files = 0  # put so far
        self.listed_bytes = 0  # of all of them
        self.listed_todo_bytes = 0  # of which had not arrived before

    def put(self, file: FileTransfer, idle: Callable[[], None] = lambda: None) -> None:
        """Add a file; waits while the queue is full, and calls `idle` again and again meanwhile.

        Raises Interrupted when the copy is stopped, and what `idle` raises.
        """
        while True:
            with self._lock:
                if len(self._waiting) < self._limit and len(self._unsettled) < self._most_unsettled:
                    self._put(file)
                    return
                self._wait(self._emptied)
            idle()

    def _put(self, file: FileTransfer) -> None:
        self._waiting.append(file)
        self._waiting_bytes += file.size_bytes
        self._unsettled.add(file)
        self.listed_files += 1
        self.listed_bytes += file.size_bytes  # one of unknown size adds nothing
        self.listed_todo_bytes += file.size_bytes - file.resumed_bytes
        if self.listed_files == 1:
            self._filled.notify_all()  # all workers wait for the first
        else:
            self._filled.notify()

    def put_again(self, file: FileTransfer, *, last: bool = False) -> None:
        """Add a file once more that is not settled yet; it goes first, or `last` of those that wait."""
        with self._lock:
            if last:
                self._waiting.append(file)
            else:
                self._waiting.appendleft(file)
            self._waiting_bytes += file.size_bytes
            self._filled.notify()

    def take(self, idle: Callable[[], None] = lambda: None) -> FileTransfer | None:
        """Return the next file, waiting for one; None when all are settled and no more will come.

        Calls `idle` as `put` does.
        """
        while True:
            with self._lock:
                if self._waiting:
                    return self._take()
                if not self._listing and not self._unsettled:
                    return None
                self._wait(self._filled)
            idle()

    def take_more(self, fits: Callable[[FileTransfer], bool]) -> FileTransfer | None:
        """Return the next file if one waits and `fits`; never waits."""
        with self._lock:
            if not self._waiting or not fits(self._waiting[0]):
                return None
            return self._take()

    def has_waiting(self, file: FileTransfer) -> bool:
        """Tell whether a file waits."""
        with self._lock:
            return file in self._waiting

    @property
    def waiting(self) -> tuple[int, int, int]:
        """How many files wait, their sizes added up, and how many are not settled, with these."""
        with self._lock:
            return len(self._waiting), self._waiting_bytes, len(self._unsettled)

    @property
    def waiting_bytes(self) -> int:
        """The sizes of the files that wait, added up."""
        with self._lock:
            return self._waiting_bytes

    def settle(self, file: FileTransfer) -> None:
        """Say that a file is committed or given up."""
        file.release()
        with self._lock:
            self._unsettled.discard(file)
            if len(self._unsettled) == self._most_unsettled * 3 // 4 or not self._unsettled:
                self._emptied.notify_all()
            self._tell_the_end()

    @property
    def is_listed(self) -> bool:
        """Whether no more files will be put."""
        with self._lock:
            return not self._listing

    @property
    def has_others(self) -> bool:
        """Whether there is more than one file, or may be: one that fails need not end the copy."""
        with self._lock:
            return self._listing or self.listed_files > 1

    def end_listing(self) -> None:
        """Say that no more files will be put."""
        with self._lock:
            self._listing = False
            self._filled.notify_all()
            self._tell_the_end()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left and nothing more will come."""
        with self._lock:
            return not self._listing and not self._unsettled

    def wait_begun(self, timeout_s: float) -> bool:
        """Wait until a file was put, or none will be, at most for this time; return whether that is so."""
        with self._lock:
            if self._listing and not self.listed_files:
                self._filled.wait(timeout_s)
            return not self._listing or self.listed_files > 0

    def wait_settled(self, timeout_s: float) -> None:
        """Wait until every file is settled, at most for this time."""
        with self._lock:
            if self._listing or self._unsettled:
                self._ended.wait(timeout_s)

    def release(self) -> None:
        """Have no file open any more that is not settled: the copy has ended before its end."""
        with self._lock:
            files = list(self._unsettled)
        for file in files:
            file.release()

    def wait_all_settled(self, idle: Callable[[], None] = lambda: None) -> None:
        """Wait until every file put so far is settled. Calls `idle`, and raises, as `put` does."""
        while True:
            with self._lock:
                if not self._unsettled:
                    return
                self._wait(self._emptied)
            idle()

    @property
    def resumed_bytes(self) -> int:
        """How many bytes of the listed files had arrived before this run."""
        with self._lock:
            return self.listed_bytes - self.listed_todo_bytes

    @property
    def missing_bytes(self) -> int:
        """How much room those bytes take that have not arrived of the files waiting or on their way."""
        with self._lock:
            files = list(self._unsettled)
        return sum(file.missing_room_bytes for file in files)

    def _take(self) -> FileTransfer:
        file = self._waiting.popleft()
        self._waiting_bytes -= file.size_bytes
        if len(self._waiting) == self._limit // 2:
            self._emptied.notify_all()
        return file

    def _tell_the_end(self) -> None:
        if not self._listing and not self._unsettled:
            self._filled.notify_all()
            self._ended.notify_all()

    def _wait(self, changed: threading.Condition) -> None:
        if self._cancel.is_set():
            raise Interrupted("stopped")
        changed.wait(LOOK_S)
