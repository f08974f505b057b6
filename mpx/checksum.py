"""Checksums of files and of their parts: Adler-32 that combines, and hashes that do not."""

import hashlib
import os
import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence

from zlib_ng import zlib_ng

from mpx.holes import stretches
from mpx.ranges import RangeSet

ALGORITHMS = ("adler32", "md5", "sha256")
_DIGITS = {"adler32": 8, "md5": 32, "sha256": 64}
_ZEROS = 4  # that may be missing in front; five are missing in one of a million
SECTION_BYTES = 64 * 1024 * 1024  # verified as one; a mismatch costs one section, not the file

_BASE = 65521  # the largest prime below 2**16 (RFC 1950)
_READ_BYTES = 1024 * 1024


def adler32(data: bytes | bytearray | memoryview, value: int = 1) -> int:
    """Return the Adler-32 of `data` continued from `value`; frees the interpreter while it runs."""
    return zlib_ng.adler32(data, value)


def adler32_combine(first: int, second: int, second_bytes: int) -> int:
    """Return the Adler-32 of two parts put together, from their sums and the length of the second.

    With a = low half, b = high half (RFC 1950): a = a1 + a2 - 1 and b = b1 + b2 + n2 (a1 - 1), mod 65521.
    """
    a1, b1 = first & 0xFFFF, first >> 16
    a2, b2 = second & 0xFFFF, second >> 16
    a = (a1 + a2 - 1) % _BASE
    b = (b1 + b2 + second_bytes * (a1 - 1)) % _BASE
    return b << 16 | a


def digest_in(text: str, algorithm: str, name: str = "") -> str | None:
    """Return the checksum that a reply states, in full length and lower case; None if it states none.

    Servers leave leading zeros out, write upper case or 0x, and put the algorithm or the file's name beside.
    """
    digits = _DIGITS[algorithm]
    text = text.strip()
    for shown in (name, name.rsplit("/", 1)[-1]):
        if shown and re.search(r"\s", text):
            text = text.removesuffix(f" {shown}").removeprefix(f"{shown} ")
    words = [re.sub("^0[xX]", "", word) for word in re.split(r"[\s:=,;()\"']+", text) if word]
    words = [word for word in words if word.lower().replace("-", "") != algorithm]
    full = {word.lower() for word in words if re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", word)}
    if len(full) == 1:
        return full.pop()
    if len(words) == 1 and re.fullmatch(f"[0-9a-fA-F]{{{digits - _ZEROS},{digits}}}", words[0]):
        return words[0].lower().zfill(digits)
    return None


def of_file(algorithm: str, fd: int, start: int, end: int, stop: Callable[[], bool] = lambda: False) -> str:
    """Return the checksum of [start, end) of an open file in lower-case hex, as CKSM writes it.

    `stop` is asked after each MiB; when it says so, or the file ends early, the sum is of what was read.
    """
    if algorithm == "adler32":
        return f"{adler32_of_file(fd, start, end, 1, stop):08x}"
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for piece in _pieces(fd, start, end, stop):
        digest.update(piece)
    return digest.hexdigest()


def adler32_of_file(
    fd: int, start: int, end: int, value: int = 1, stop: Callable[[], bool] = lambda: False
) -> int:
    """Return the Adler-32 of [start, end) of an open file continued from `value`."""
    for piece in _pieces(fd, start, end, stop):
        value = adler32(piece, value)
    return value


def _pieces(fd: int, start: int, end: int, stop: Callable[[], bool]) -> Iterator[memoryview]:
    """Yield the bytes [start, end) of an open file, as far as they are there; each is gone with the next."""
    parts = stretches(fd, start, end) if end - start > _READ_BYTES else [(start, end, False)]
    for first, last, is_hole in parts:
        buffer = memoryview(bytearray(min(_READ_BYTES, max(1, last - first))))  # zeros, until it is read into
        position = first
        while position < last and not stop():
            wanted = buffer[: last - position]
            got = len(wanted) if is_hole else os.preadv(fd, [wanted], position)
            if not got:
                return
            yield buffer[:got]
            position += got


class RunningSums:
    """The Adler-32 of every stretch of a file that passed through our hands, in any order.

    Stretches that touch are joined, so it stays small however large the file is. Bytes that pass
    twice are counted once.
    """

    def __init__(self) -> None:
        self._seen = RangeSet()
        self._sums: dict[int, tuple[int, int]] = {}  # start: (end, sum)
        self._starts: dict[int, int] = {}  # end: start
        self._order: list[int] = []  # the starts, sorted

    def add(self, start: int, end: int, value: int) -> None:
        """Record that [start, end) has the Adler-32 `value`; ignored if any of it was recorded before.

        Stretches are joined only within one section of SECTION_BYTES, and must not cross sections.
        """
        if start >= end or len(self._seen.within(start, end)):
            return
        self._seen.add(start, end)
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

    def forget(self, start: int, end: int) -> None:
        """Drop every stretch that overlaps [start, end)."""
        for begin, finish, _ in self._overlapping(start, end):
            self._drop(begin)
            self._seen.remove(begin, finish)

    def within(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Return (start, end, sum) of every stretch that lies in [start, end), in order."""
        found = self._overlapping(start, end)
        return [each for each in found if start <= each[0] and each[1] <= end]

    def _overlapping(self, start: int, end: int) -> list[tuple[int, int, int]]:
        if start >= end:
            return []
        first = max(0, bisect_right(self._order, start) - 1)  # which may begin before
        found = [(begin, *self._sums[begin]) for begin in self._order[first : bisect_left(self._order, end)]]
        return [each for each in found if start < each[1]]

    def _drop(self, start: int) -> tuple[int, int]:
        """Forget one stretch; return its end and its sum."""
        del self._order[bisect_left(self._order, start)]
        end, value = self._sums.pop(start)
        del self._starts[end]
        return end, value


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
