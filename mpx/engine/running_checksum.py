"""Checksums that are taken while the bytes of a file pass, so that they are not read again afterwards.

Adler-32 of stretches combines in any order. Hashes do not: they are taken of units (a block of 256 KiB for
xxh3, a section for the others) whose bytes pass in order; what did not is read again.
"""

import functools
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from mpx.engine import block_digests, checksum
from mpx.engine.checksum import SECTION_BYTES, Digest, adler32, adler32_combine
from mpx.engine.holes import adler32_of_zeros
from mpx.engine.ranges import RangeSet

Stop = Callable[[], bool]


class Unread(Exception):
    """Some bytes did not pass in order, and there is no file to read them from."""


class Running(Protocol):
    """The checksum of one file whose bytes pass. Safe for several threads."""

    algorithm: str

    def passed(self, start: int, data: memoryview) -> None:
        """Record bytes that passed by; those that pass twice count once."""
        ...

    def passed_zeros(self, start: int, end: int) -> None:
        """As `passed`, of bytes that are all zero, at no cost for each."""
        ...

    def forget(self, start: int, end: int) -> None:
        """Drop what is known of [start, end): these bytes pass once more, or are needed no more."""
        ...

    def hex(self, start: int, end: int, fd: int | None, stop: Stop) -> str:
        """Return the checksum of [start, end), which begins a section, reading what did not pass from `fd`.

        Raises OSError, and Unread where there is no `fd` and it would be needed.
        """
        ...


class RunningAdler32:
    """The Adler-32 of every stretch of a file that passed through our hands, in any order.

    Stretches that touch are joined, so it stays small however large the file is.
    """

    algorithm = "adler32"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = RangeSet()
        self._sums: dict[int, tuple[int, int]] = {}  # start: (end, sum)
        self._starts: dict[int, int] = {}  # end: start
        self._order: list[int] = []  # the starts, sorted

    def passed(self, start: int, data: memoryview) -> None:
        """See Running. Ignored if any of it was recorded before."""
        for first, piece in _by_section(start, data):
            value = adler32(piece)
            with self._lock:
                self._add(first, first + len(piece), value)

    def passed_zeros(self, start: int, end: int) -> None:
        """See Running."""
        while start < end:
            last = min(end, (start // SECTION_BYTES + 1) * SECTION_BYTES)
            with self._lock:
                self._add(start, last, adler32_of_zeros(last - start))
            start = last

    def _add(self, start: int, end: int, value: int) -> None:
        """Record that [start, end), within one section, has the Adler-32 `value`."""
        if start >= end or self._seen.add(start, end) < end - start:  # what is new of it is read again
            return
        if start % SECTION_BYTES and start in self._starts:
            before = self._starts[start]
            value = adler32_combine(self._drop(before)[1], value, end - start)
            start = before
        if end % SECTION_BYTES and end in self._sums:
            after, its_sum = self._drop(end)
            value = adler32_combine(value, its_sum, after - end)
            end = after
        self._sums[start] = end, value
        self._starts[end] = start
        insort(self._order, start)

    def _drop(self, start: int) -> tuple[int, int]:
        """Forget one stretch; return its end and its sum."""
        del self._order[bisect_left(self._order, start)]
        end, value = self._sums.pop(start)
        del self._starts[end]
        return end, value

    def _overlapping(self, start: int, end: int) -> list[tuple[int, int, int]]:
        if start >= end:
            return []
        first = max(0, bisect_right(self._order, start) - 1)  # which may begin before
        found = [(begin, *self._sums[begin]) for begin in self._order[first : bisect_left(self._order, end)]]
        return [each for each in found if start < each[1]]

    def forget(self, start: int, end: int) -> None:
        """See Running. Drops every stretch that overlaps it."""
        with self._lock:
            for begin, finish, _ in self._overlapping(start, end):
                self._drop(begin)
                self._seen.remove(begin, finish)
            self._seen.remove(start, end)

    def within(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Return (start, end, sum) of every stretch that lies in [start, end), in order."""
        with self._lock:
            found = self._overlapping(start, end)
        return [each for each in found if start <= each[0] and each[1] <= end]

    def hex(self, start: int, end: int, fd: int | None, stop: Stop) -> str:
        """See Running."""

        def read(first: int, last: int, value: int) -> int:
            if fd is None:
                raise Unread
            for piece in checksum.pieces(fd, first, last, stop):
                value = adler32(piece, value)
            return value

        return f"{sum_of(self.within(start, end), start, end, read):08x}"


def sum_of(
    known: Sequence[tuple[int, int, int]], start: int, end: int, read: Callable[[int, int, int], int]
) -> int:
    """Return the Adler-32 of [start, end) from `known` stretches of it (start, end, sum) in order.

    Calls `read(start, end, value)`, which continues `value`, for what lies between them.
    """
    value, position = 1, start
    for begin, finish, its_sum in known:
        if position < begin:
            value = read(position, begin, value)
        value = adler32_combine(value, its_sum, finish - begin)
        position = finish
    return read(position, end, value) if position < end else value


class _Section:
    """What is known of one section: the digests of its complete units, the state of others."""

    __slots__ = ("begun", "digests", "whole")

    def __init__(self) -> None:
        self.whole: bytes | None = None  # its checksum, once all of it has passed; nothing else is kept then
        self.digests: dict[int, bytes] = {}  # by the start of the unit
        self.begun: dict[int, tuple[int, Digest | None]] = {}  # how far; None while a thread adds to it


class RunningHash:
    """The digests of units of one file whose bytes passed in order."""

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm
        self._is_blocks = algorithm == "xxh3"
        self._unit_bytes = block_digests.BLOCK_BYTES if self._is_blocks else SECTION_BYTES
        self._lock = threading.Lock()
        self._sections: dict[int, _Section] = {}  # by their start

    def _begin(self) -> Digest:
        return block_digests.begin_block() if self._is_blocks else checksum.new(self.algorithm)

    def _join(self, digests: list[bytes]) -> bytes:
        if self._is_blocks:
            return block_digests.of_blocks(b"".join(digests))
        return digests[0] if digests else self._begin().digest()

    def passed(self, start: int, data: memoryview) -> None:
        """See Running. Bytes that do not come next in their unit are left out."""
        while len(data):
            unit = start - start % self._unit_bytes
            piece = data[: unit + self._unit_bytes - start]
            self._add(unit, start, piece)
            start += len(piece)
            data = data[len(piece) :]

    def passed_zeros(self, start: int, end: int) -> None:
        """See Running. Only blocks have a digest for that: what is a hole is cheap to read."""
        block = self._unit_bytes
        if not self._is_blocks:
            return
        for first in range(-(-start // block) * block, end // block * block, block):
            with self._lock:
                section = self._section(first)
                if section.whole is None and first not in section.begun:
                    self._complete(section, first, _zeros_digest(block))

    def _section(self, position: int) -> _Section:
        where = position - position % SECTION_BYTES
        section = self._sections.get(where)
        if section is None:
            section = self._sections[where] = _Section()
        return section

    def _complete(self, section: _Section, unit: int, digest: bytes) -> None:
        section.digests[unit] = digest
        if len(section.digests) * self._unit_bytes == SECTION_BYTES:
            section.whole = self._join([section.digests[unit] for unit in sorted(section.digests)])
            section.digests.clear()

    def _add(self, unit: int, first: int, piece: memoryview) -> None:
        with self._lock:  # a section that is forgotten meanwhile takes what is added here with it
            section = self._section(unit)
            if section.whole is not None or unit in section.digests:
                return
            position, state = section.begun.get(unit, (unit, None))
            if position != first or (state is None and unit in section.begun):
                return
            section.begun[unit] = first, None
        state = state or self._begin()
        state.update(piece)
        end = first + len(piece)
        with self._lock:
            if end < unit + self._unit_bytes:
                section.begun[unit] = end, state
                return
            del section.begun[unit]
            self._complete(section, unit, state.digest())

    def forget(self, start: int, end: int) -> None:
        """See Running. Drops the whole of every section that overlaps it."""
        with self._lock:
            wheres: Iterable[int] = range(start - start % SECTION_BYTES, end, SECTION_BYTES)
            if end - start > len(self._sections) * SECTION_BYTES:  # fewer have begun
                wheres = [s for s in self._sections if start < s + SECTION_BYTES and s < end]
            for where in wheres:
                self._sections.pop(where, None)

    def hex(self, start: int, end: int, fd: int | None, stop: Stop) -> str:
        """See Running."""
        if end - start > SECTION_BYTES and not self._is_blocks:  # hashes of sections do not combine
            if fd is None:
                raise Unread
            return checksum.of_file(self.algorithm, fd, start, end, stop)
        with self._lock:
            section = self._sections.get(start)
            if section is not None and section.whole is not None and end - start == SECTION_BYTES:
                return section.whole.hex()
        units = range(start, end, self._unit_bytes)
        return self._join([self._unit(u, min(u + self._unit_bytes, end), fd, stop) for u in units]).hex()

    def _unit(self, unit: int, end: int, fd: int | None, stop: Stop) -> bytes:
        with self._lock:
            section = self._sections.get(unit - unit % SECTION_BYTES) or _Section()
            if end == unit + self._unit_bytes and unit in section.digests:
                return section.digests[unit]
            position, state = section.begun.get(unit, (unit, None))
            if state is not None and position == end:
                return state.digest()
            if state is None or position > end:
                position, state = unit, self._begin()
            else:
                del section.begun[unit]  # what is read here is not to be added by others
        if fd is None and position < end:
            raise Unread
        if fd is not None:
            for piece in checksum.pieces(fd, position, end, stop):
                state.update(piece)
        return state.digest()


@functools.cache
def _zeros_digest(size_bytes: int) -> bytes:
    state = block_digests.begin_block()
    state.update(bytes(size_bytes))
    return state.digest()


class _Nothing:
    """In the place of a checksum where none is taken."""

    algorithm = "none"

    def passed(self, start: int, data: memoryview) -> None:
        """See Running."""

    def passed_zeros(self, start: int, end: int) -> None:
        """See Running."""

    def forget(self, start: int, end: int) -> None:
        """See Running."""

    def hex(self, start: int, end: int, fd: int | None, stop: Stop) -> str:  # noqa: ARG002
        """See Running."""
        raise Unread


def running(algorithm: str) -> Running:
    """Return what takes a checksum while bytes pass; for "none" nothing does."""
    if algorithm == "none":
        return _Nothing()
    return RunningAdler32() if algorithm == "adler32" else RunningHash(algorithm)


def _by_section(start: int, data: memoryview) -> list[tuple[int, memoryview]]:
    """Cut bytes where sections end."""
    edge = (start // SECTION_BYTES + 1) * SECTION_BYTES
    if start + len(data) <= edge:
        return [(start, data)]
    return [(start, data[: edge - start]), *_by_section(edge, data[edge - start :])]
