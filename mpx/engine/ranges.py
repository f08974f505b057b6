"""Sets of byte ranges: which parts of a file have arrived, are missing, or are proven.

Ranges are half open, [start, end), in bytes from the beginning of the file.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Range = tuple[int, int]


class RangeSet:
    """A mutable set of bytes kept as sorted, disjoint, never touching ranges."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            self.add(start, end)

    def __iter__(self) -> Iterator[Range]:
        return iter(zip(self._starts, self._ends, strict=True))

    def __len__(self) -> int:
        """Return the number of separate ranges (not of bytes)."""
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RangeSet):
            return NotImplemented
        return self._starts == other._starts and self._ends == other._ends

    __hash__ = None  # type: ignore[assignment]  # a mutable set has no hash

    def __repr__(self) -> str:
        return f"RangeSet({list(self)})"

    @property
    def size(self) -> int:
        """The number of bytes in the set."""
        return sum(self._ends) - sum(self._starts)

    def copy(self) -> "RangeSet":
        """Return an independent copy."""
        other = RangeSet()
        other._starts, other._ends = self._starts[:], self._ends[:]
        return other

    def add(self, start: int, end: int) -> int:
        """Put [start, end) in; return how many of its bytes were new. Raises ValueError if negative."""
        if start < 0 or end < start:
            raise ValueError(f"not a range of bytes: {start}-{end}")
        if start == end:
            return 0
        first = bisect_left(self._ends, start)  # the first range that touches or follows
        last = bisect_right(self._starts, end)  # one past the last that touches
        if first == last:
            self._starts.insert(first, start)
            self._ends.insert(first, end)
            return end - start
        had = sum(
            max(0, min(e, end) - max(s, start))
            for s, e in zip(self._starts[first:last], self._ends[first:last], strict=True)
        )
        self._starts[first:last] = [min(start, self._starts[first])]
        self._ends[first:last] = [max(end, self._ends[last - 1])]
        return end - start - had

    def remove(self, start: int, end: int) -> None:
        """Take [start, end) out, whether or not it was in."""
        if start >= end:
            return
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        if first >= last:
            return
        if last == first + 1 and start <= self._starts[first] and self._ends[first] <= end:
            del self._starts[first], self._ends[first]
            return
        kept: list[Range] = []
        if self._starts[first] < start:
            kept.append((self._starts[first], start))
        if self._ends[last - 1] > end:
            kept.append((end, self._ends[last - 1]))
        self._starts[first:last] = [s for s, _ in kept]
        self._ends[first:last] = [e for _, e in kept]

    def covers(self, start: int, end: int) -> bool:
        """Tell whether every byte of [start, end) is in the set."""
        if start >= end:
            return True
        i = bisect_right(self._starts, start) - 1
        return i >= 0 and self._ends[i] >= end

    def take_first(self, limit: int) -> Range | None:
        """Take out and return the first range, cut to at most `limit` bytes; None when empty."""
        if not self._starts:
            return None
        start, end = self._starts[0], min(self._ends[0], self._starts[0] + limit)
        if end < self._ends[0]:
            self._starts[0] = end  # the usual case, without moving the lists
        else:
            self.remove(start, end)
        return start, end

    def take_last(self, limit: int) -> Range | None:
        """Take out and return the end of the last range, cut to at most `limit` bytes; None when empty."""
        if not self._starts:
            return None
        start, end = max(self._starts[-1], self._ends[-1] - limit), self._ends[-1]
        self.remove(start, end)
        return start, end

    def missing(self, start: int, end: int) -> "RangeSet":
        """Return what of [start, end) is not in the set."""
        rest = RangeSet([(start, end)])
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        for s, e in zip(self._starts[first:last], self._ends[first:last], strict=True):
            rest.remove(s, e)
        return rest

    def without(self, other: "RangeSet") -> "RangeSet":
        """Take out what is in another set; return this one."""
        if self._starts and other._starts:
            for start, end in other.within(self._starts[0], self._ends[-1]):
                self.remove(start, end)
        return self

    def within(self, start: int, end: int) -> "RangeSet":
        """Return what of [start, end) is in the set."""
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end)
        return RangeSet(
            (max(s, start), min(e, end))
            for s, e in zip(self._starts[first:last], self._ends[first:last], strict=True)
        )

    def update(self, other: Iterable[Range]) -> int:
        """Put all ranges of `other` in; return how many bytes were new."""
        return sum(self.add(start, end) for start, end in other)
