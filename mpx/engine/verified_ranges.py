"""Which bytes of a file were found to be the same at both ends, and by which checksum."""

import threading

from mpx.engine.ranges import RangeSet


class Verified:
    """Bytes of one file that were compared. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both below
        self._all = RangeSet()
        self._by: dict[str, RangeSet] = {}

    def add(self, start: int, end: int, algorithm: str) -> None:
        """Record that [start, end) has the same checksum at both ends."""
        with self._lock:
            if self._all.add(start, end) < end - start:  # some of it was compared before, perhaps by another
                for ranges in self._by.values():
                    ranges.remove(start, end)
            self._by.setdefault(algorithm, RangeSet()).add(start, end)

    def remove(self, start: int, end: int) -> None:
        """Record that [start, end) is to be compared once more."""
        with self._lock:
            for ranges in (self._all, *self._by.values()):
                ranges.remove(start, end)

    def covers(self, start: int, end: int) -> bool:
        """Tell whether all of [start, end) was compared."""
        with self._lock:
            return self._all.covers(start, end)

    @property
    def size(self) -> int:
        """How many bytes were compared."""
        with self._lock:
            return self._all.size

    def bytes_by_algorithm(self) -> dict[str, int]:
        """Return how many bytes were compared by which checksum."""
        with self._lock:
            return {algorithm: ranges.size for algorithm, ranges in self._by.items() if ranges.size}
