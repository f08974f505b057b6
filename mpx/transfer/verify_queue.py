"""What waits to be verified and committed, and how much of it a session gets at once.

A file is verified in sections of 64 MiB. Those of a large file are verified as soon as they have arrived,
while the rest is sent; the file is committed once all its sections are proven. Pure bookkeeping: the session
that takes a batch does the work, and reports the result.
"""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.ranges import Range, RangeSet

GROUP = 200  # files verified, or committed, together
LARGEST_SHARE = 1024 * 1024 * 1024  # bytes that one session sums in one go, however much waits
SMALLEST_SHARE = 256 * 1024 * 1024  # so that a round trip weighs little
LONG_BYTES = 2 * SMALLEST_SHARE


class Sections:
    """Which sections of a file are still to be verified. Each is handed out once, when it has arrived."""

    def __init__(self, size_bytes: int, each_bytes: int = SECTION_BYTES) -> None:
        self._size_bytes = size_bytes
        self._each_bytes = each_bytes
        self._open = RangeSet([(0, size_bytes)])

    def take_due(self, missing: Iterable[Range]) -> list[Range]:
        """Hand out the sections that have arrived, given what of the file is `missing`.

        The work is in proportion to the number of stretches and sections, not to the size of the file.
        """
        arrived = self._open.copy()
        for start, end in missing:
            arrived.remove(start, end)
        due = []
        for begin, finish in arrived:
            start = -(-begin // self._each_bytes) * self._each_bytes
            while (end := min(start + self._each_bytes, self._size_bytes)) <= finish and start < end:
                due.append((start, end))
                start = end
        for start, end in due:
            self._open.remove(start, end)
        return due

    def put_back(self, start: int, end: int) -> None:
        """Take a section back: it is to be verified once more."""
        self._open.add(start, end)


@dataclass(slots=True, eq=False)
class Check:
    """How far a file is verified; ends when it is proven, given up, or what arrived is forgotten."""

    file: FileTransfer
    sections: Sections
    out: int = 0  # sections that wait or are being compared
    whole: bool = False  # every byte has arrived, and no worker has anything to do with it
    is_exempt: bool = False  # there is no checksum to compare it by


@dataclass(slots=True, eq=False)
class Section:
    """Bytes of a file that are to be compared at both ends: [start, end)."""

    check: Check
    start: int
    end: int
    file: FileTransfer = field(init=False)

    def __post_init__(self) -> None:
        self.file = self.check.file

    @property
    def is_whole(self) -> bool:
        """Whether it is all that the file has."""
        return self.start == 0 and self.end == self.file.size_bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """What one session does next: sections to compare, or proven files to commit."""

    sections: list[Section] = field(default_factory=list)
    proven: list[FileTransfer] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sections) + len(self.proven)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not len(self)


class VerifyQueue:
    """Safe for several threads.

    `sessions`: how many share the work at most. Without `verifies` files are committed as they are; without
    `by_section` each is compared as a whole, once all of it is there.
    """

    def __init__(self, *, verifies: bool, sessions: int, by_section: bool = True) -> None:
        self._lock = threading.RLock()  # guards all below, and what the checks say
        self._changed = threading.Condition(self._lock)
        self._verifies, self._by_section = verifies, by_section
        self._sessions = sessions
        self._checks: dict[FileTransfer, Check] = {}
        self._growing: dict[FileTransfer, Check] = {}  # of several sections, verified while they are sent
        self._sections: deque[Section] = deque()
        self._section_bytes = 0
        self._proven: deque[FileTransfer] = deque()
        self._discarded: deque[FileTransfer] = deque()  # given up, with a partial file that is worth nothing

    # --- what comes in -------------------------------------------------------------------------------

    def watch(self, file: FileTransfer) -> None:
        """Verify sections of a file while it is sent."""
        if self._verifies and self._by_section and file.size_bytes > SECTION_BYTES:
            with self._lock:
                self._growing[file] = self._check(file)

    def whole(self, file: FileTransfer) -> bool:
        """Queue a file that has arrived as its worker says; False if some of it has to be sent again."""
        with self._lock:
            check = self._check(file)
            check.whole = True
            self._growing.pop(file, None)
            self._collect(check)
            self._changed.notify()
            return self._judge(check)

    def drop(self, file: FileTransfer) -> None:
        """Forget a file that was given up."""
        with self._lock:
            self._checks.pop(file, None)
            self._growing.pop(file, None)

    def discard(self, file: FileTransfer) -> None:
        """Queue a file that was given up, so that its partial file is removed."""
        with self._lock:
            self._discarded.append(file)

    def forgot(self, file: FileTransfer) -> None:
        """Begin anew with a file: what had arrived of it is lost, and so is what was verified."""
        with self._lock:
            self.drop(file)
            file.verified.remove(0, file.size_bytes)
            self.watch(file)

    def again(self, file: FileTransfer, start: int, end: int) -> None:
        """Have bytes of a file moved, and verified, once more; results that are still out do not count."""
        with self._lock:
            self.drop(file)
            file.redo(start, end)
            self.watch(file)

    # --- what goes out -------------------------------------------------------------------------------

    def take(self, wait_s: float, most: int = GROUP) -> Batch:
        """Return the next batch, waiting so long for one: proven files first, as they are nearly done.

        `most`: how many files or sections it may have.
        """
        with self._lock:
            if not self._proven and not self._sections:
                self._changed.wait(wait_s)
            for check in self._growing.values():
                self._collect(check)
            if self._proven:
                return Batch(proven=[self._proven.popleft() for _ in range(min(most, len(self._proven)))])
            return Batch(sections=self._some_sections(most))

    def wake(self) -> None:
        """Have nobody wait for a batch any longer: all is settled."""
        with self._lock:
            self._changed.notify_all()

    def take_discarded(self) -> FileTransfer | None:
        """Return a file whose partial file is to be removed, None where there is none."""
        with self._lock:
            return self._discarded.popleft() if self._discarded else None

    @property
    def full_batches(self) -> int:
        """For how many further sessions enough work waits."""
        with self._lock:
            compare = max(len(self._sections) // GROUP, self._section_bytes // LONG_BYTES)
            return compare + len(self._proven) // GROUP

    def put_back(self, batch: Batch) -> None:
        """Take back a batch of which nothing is known, since its session was lost."""
        with self._lock:
            self._proven.extendleft(reversed(batch.proven))
            for section in reversed(batch.sections):
                self._push(section, first=True)

    # --- how it went ---------------------------------------------------------------------------------

    def same(self, section: Section, algorithm: str) -> bool:
        """Record bytes that have the same checksum; False if their file has to be sent again."""
        with self._lock:
            if not self.is_current(section):
                return True
            section.check.out -= 1
            section.file.found_same(section.start, section.end, algorithm)
            return self._judge(section.check)

    def damaged(self, section: Section) -> bool:
        """Have a section sent once more whose checksums differ; False if no worker has its file in hand."""
        with self._lock:
            if not self.is_current(section):
                return True
            section.check.out -= 1
            section.check.sections.put_back(section.start, section.end)
            section.file.redo(section.start, section.end)
            return self._judge(section.check)

    def unknown(self, section: Section) -> bool:
        """Record bytes that cannot be compared; False if their file is to be given up.

        While a file is still being sent it is not given up: they are compared again when it is whole.
        """
        with self._lock:
            if not self.is_current(section):
                return True
            if section.check.whole:
                self.drop(section.file)
                return False
            section.check.out -= 1
            section.check.sections.put_back(section.start, section.end)
            self._growing.pop(section.file, None)
            return True

    def in_one_piece(self, section: Section) -> bool:
        """Have a file compared as a whole, as the server has no checksums of parts of files.

        False if it has to be sent again. Results of its sections do not count any more.
        """
        with self._lock:
            if not self.is_current(section):
                return True
            file, was = section.file, section.check
            self._growing.pop(file, None)
            check = Check(file, Sections(file.size_bytes, max(file.size_bytes, 1)), whole=was.whole)
            self._checks[file] = check
            self._collect(check)
            return self._judge(check)

    def exempt(self, section: Section) -> bool:
        """Have a file committed although there is no checksum of it; False if it has to be sent again."""
        with self._lock:
            if not self.is_current(section):
                return True
            section.check.out -= 1
            section.check.is_exempt = True
            return self._judge(section.check)

    # --- inside --------------------------------------------------------------------------------------

    def _check(self, file: FileTransfer) -> Check:
        if file not in self._checks:
            each_bytes = SECTION_BYTES if self._by_section else max(file.size_bytes, 1)
            self._checks[file] = Check(file, Sections(file.size_bytes, each_bytes))
        return self._checks[file]

    def is_current(self, section: Section) -> bool:
        """Tell whether the result of a section still counts: its file was not given up or begun anew."""
        with self._lock:
            return self._checks.get(section.file) is section.check

    def _collect(self, check: Check) -> None:
        """Queue the sections that have arrived since the last time."""
        if self._verifies:
            file = check.file
            for start, end in check.sections.take_due(file.missing_within(0, file.size_bytes)):
                if file.verified.covers(start, end):  # by who has moved it
                    continue
                check.out += 1
                self._push(Section(check, start, end))

    def _push(self, section: Section, *, first: bool = False) -> None:
        self._section_bytes += section.end - section.start
        if first:
            self._sections.appendleft(section)
        else:
            self._sections.append(section)

    def _some_sections(self, most: int) -> list[Section]:
        """Return a share of what waits, so that all sessions are done with theirs at about one time."""
        share = min(max(self._section_bytes // self._sessions, SMALLEST_SHARE), LARGEST_SHARE)
        some: list[Section] = []
        while self._sections and len(some) < most and share > 0:
            section = self._sections.popleft()
            self._section_bytes -= section.end - section.start
            if self.is_current(section):
                share -= section.end - section.start
                some.append(section)
        return some

    def _judge(self, check: Check) -> bool:
        """Queue a file that is whole and proven; False if it is not whole after all."""
        file = check.file
        if not check.whole or check.out:
            return True
        if not file.is_whole:
            check.whole = False
            self.watch(file)
            return False
        if not self._verifies or check.is_exempt or file.verified.covers(0, file.size_bytes):
            del self._checks[file]
            self._proven.append(file)
            self._changed.notify()
        return True
