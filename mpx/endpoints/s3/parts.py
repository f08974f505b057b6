"""How a file is cut into parts, and which of them are stored, under way, or still to be sent."""

import threading
from collections import deque

from mpx.endpoints.s3.uploads import BegunUpload, ReadyUpload, StoredPart, Uploads
from mpx.engine.file_transfer import FileTransfer

WHOLE_BYTES = 16 << 20  # a file of up to so many is sent in one request
LEAST_PART_BYTES = 5 << 20  # S3 takes no smaller one but the last; small ones end at about the same time
MOST_PARTS = 10_000  # S3 permits no more
MOST_PART_BYTES = 5 << 30  # nor larger ones
_MIB = 1 << 20


def part_bytes_of(size_bytes: int) -> int:
    """Return how large the parts of a file are, but the last: as small as MOST_PARTS permits."""
    return max(LEAST_PART_BYTES, -(-size_bytes // MOST_PARTS // _MIB) * _MIB)


class PartedFile:
    """A file that is sent in parts. Safe for several threads; `_lock` guards what changes."""

    def __init__(self, file: FileTransfer, begun: BegunUpload, uploads: Uploads, *, has_crc32: bool) -> None:
        self.file, self.begun, self.has_crc32 = file, begun, has_crc32
        self._uploads = uploads
        # Of a file of unknown size one is added after the other (`grow`).
        self._count = 0 if file.is_streamed else max(1, -(-file.size_bytes // begun.part_bytes))
        self._lock = threading.Lock()
        self._parts: dict[int, StoredPart] = {}  # that are stored
        self._waiting = deque(range(1, self._count + 1))
        self._is_dead = False  # the server has forgotten it

    def range_of(self, number: int) -> tuple[int, int]:
        """Return which bytes a part has: [start, end)."""
        start = (number - 1) * self.begun.part_bytes
        return start, min(start + self.begun.part_bytes, self.file.size_bytes)

    def take(self) -> int | None:
        """Return the number of a part that is to be sent; None where there is none."""
        with self._lock:
            return self._waiting.popleft() if self._waiting and not self._is_dead else None

    def grow(self) -> int:
        """Return the number of one part more, which the caller sends."""
        with self._lock:
            self._count += 1
            return self._count

    def give_back(self, number: int) -> None:
        """Have a part sent that was taken and was not stored, by anybody."""
        with self._lock:
            if number not in self._parts and number not in self._waiting and not self._is_dead:
                self._waiting.appendleft(number)

    def has(self, number: int) -> bool:
        """Tell whether a part is stored."""
        with self._lock:
            return number in self._parts

    def stored(self, part: StoredPart, algorithm: str) -> None:
        """Take a part that is stored, and the same there by a checksum; an empty one where none is told."""
        start = (part.number - 1) * self.begun.part_bytes
        end = start + part.size_bytes
        with self._lock:
            before = self._parts.get(part.number)
            if self._is_dead or (before and before.etag == part.etag):
                return
            # What was taken over is stored twice. Of encrypted parts each has its own tag: the last counts.
            self._parts[part.number] = part
            if self._is_complete:  # before anybody can find the file whole
                parts = tuple(self._parts[number] for number in sorted(self._parts))
                ready = ReadyUpload(self.begun, parts, self.has_crc32)
                self._uploads.ready(self.file.partial, ready)
            if before:
                return
            self.file.landed(start, end)
            if algorithm:
                self.file.found_same(start, end, algorithm)

    def was_stored(self, part: StoredPart, algorithm: str) -> None:
        """As `stored`, of a part that an earlier run has sent; one that the file has not is left out."""
        with self._lock:
            if part.number not in self._waiting:
                return
            self._waiting.remove(part.number)
        self.stored(part, algorithm)

    def die(self) -> bool:
        """Take that the server has forgotten the upload; tell whether this is new.

        It is no news of one whose parts are all stored: it was completed since.
        """
        with self._lock:
            if self._is_dead or self._is_complete:
                return False
            self._is_dead = True
            self._waiting.clear()
            return True

    @property
    def _is_complete(self) -> bool:
        return len(self._parts) == self._count

    @property
    def is_dead(self) -> bool:
        """Whether the server has forgotten it."""
        return self._is_dead
