"""Checksums of what of a file passed through this host, from one server to another, and was stored.

By these what the destination has stored is compared where its own checksums and those of the source have none
in common. Adler-32 and CRC-32 of stretches combine in any order; a hash is of a file that passed in order.
"""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType

from mpx.engine import checksum
from mpx.engine.checksum import SECTION_BYTES, Digest
from mpx.engine.running_checksum import Stop, Unread

_COMBINE: Mapping[str, Callable[[int, int, int], int]] = MappingProxyType(
    {"adler32": checksum.adler32_combine, "crc32": checksum.crc32_combine}
)


class PassedSums:
    """See Running, of a file whose bytes are not kept here. Safe for several threads.

    `algorithm`: that both ends are compared by first, or none; `by`: of what passes.
    """

    def __init__(self, algorithm: str, by: str) -> None:
        self.algorithm, self.by = algorithm, by
        self._lock = threading.Lock()  # guards all below
        # By section, as a file may have thousands: start -> (end, sum). None goes beyond its section.
        self._sections: dict[int, dict[int, tuple[int, int]]] = {}
        self._whole: Digest | None = None  # a hash, of [0, _whole_end)
        self._whole_end = 0

    def begin(self, start: int) -> "PassedPiece":
        """Return what takes the bytes of a piece that begins there, and counts once it is stored."""
        if self.by in _COMBINE:
            return PassedPiece(self, self.by, start)
        with self._lock:
            if not start:
                self._whole = checksum.new(self.by)
            whole = self._whole if self._whole_end == start or not start else None
            self._whole_end = -1  # nothing follows a piece that is not stored
        return PassedPiece(self, self.by, start, whole)

    def passed(self, start: int, data: memoryview) -> None:
        """See Running. What passes counts by pieces (`begin`)."""

    def passed_zeros(self, start: int, end: int) -> None:
        """See Running."""

    def stored(self, piece: "PassedPiece") -> None:
        """Count a piece."""
        with self._lock:
            if self.by not in _COMBINE:
                if piece.whole is not None and piece.whole is self._whole:
                    self._whole_end = piece.end
                return
            for start, end, digest in piece.stretches:
                self._add(start, end, int.from_bytes(digest.digest(), "big"))

    def _add(self, start: int, end: int, value: int) -> None:
        """Count a stretch, and join it with what it touches in its section."""
        self._forget(start, end)
        stretches = self._sections.setdefault(start // SECTION_BYTES, {})
        combine = _COMBINE[self.by]
        before = next((begin for begin, (finish, _) in stretches.items() if finish == start), None)
        if before is not None:
            value, start = combine(stretches.pop(before)[1], value, end - start), before
        if end in stretches:
            after, its_sum = stretches.pop(end)
            value, end = combine(value, its_sum, after - end), after
        stretches[start] = end, value

    def forget(self, start: int, end: int) -> None:
        """See Running."""
        with self._lock:
            self._forget(start, end)
            if self._whole_end < 0 or start < self._whole_end:  # also of a piece that is under way
                self._whole, self._whole_end = None, -1

    def _forget(self, start: int, end: int) -> None:
        for section in range(start // SECTION_BYTES, -(-end // SECTION_BYTES)):
            stretches = self._sections.get(section, {})
            for begin, (finish, _) in list(stretches.items()):
                if begin < end and start < finish:
                    del stretches[begin]

    def hex(self, start: int, end: int, fd: int | None, stop: Stop) -> str:  # noqa: ARG002  nothing is read
        """Return the checksum `by` of [start, end); raises Unread where not all of it passed."""
        with self._lock:
            if self.by not in _COMBINE:
                if self._whole is None or start or end != self._whole_end:
                    raise Unread
                return self._whole.digest().hex()
            position, value = start, 0
            while position < end:
                stretches = self._sections.get(position // SECTION_BYTES, {})
                last, its_sum = stretches.get(position, (end + 1, 0))
                if last > end:
                    raise Unread
                is_first = position == start
                value = its_sum if is_first else _COMBINE[self.by](value, its_sum, last - position)
                position = last
        return f"{value:08x}"


class PassedPiece:
    """The checksums of one piece, whose bytes come in order. For one thread."""

    def __init__(self, sums: PassedSums, by: str, start: int, whole: Digest | None = None) -> None:
        self._sums, self._by = sums, by
        self.end = start
        self.whole = whole  # the hash of all before it, which it continues
        self.stretches: list[tuple[int, int, Digest]] = []  # where sums combine; each within one section

    def add(self, data: memoryview) -> None:
        """Take the bytes that come next."""
        if self._by not in _COMBINE:
            if self.whole is not None:
                self.whole.update(data)
            self.end += len(data)
            return
        while len(data):
            edge = (self.end // SECTION_BYTES + 1) * SECTION_BYTES
            some = data[: edge - self.end]
            is_next = bool(self.stretches) and self.end % SECTION_BYTES > 0
            start, _, digest = self.stretches.pop() if is_next else (self.end, 0, checksum.new(self._by))
            digest.update(some)
            self.end += len(some)
            self.stretches.append((start, self.end, digest))
            data = data[len(some) :]

    def stored(self) -> None:
        """Count it, as all of it is at the destination."""
        self._sums.stored(self)
