"""Which bytes of a file were found to be the same at both ends, and by which checksum."""

from mpx.engine.ranges import RangeSet


class Verified:
    """Bytes of one file that were compared. Whoever shares it takes turns."""

    def __init__(self) -> None:
        self._all = RangeSet()
        self._by: dict[str, RangeSet] = {}

    def add(self, start: int, end: int, algorithm: str) -> None:
        """Record that [start, end) has the same checksum at both ends."""
        if self._all.add(start, end) < end - start:  # some of it was compared before, perhaps by another
            for ranges in self._by.values():
                ranges.remove(start, end)
        self._by.setdefault(algorithm, RangeSet()).add(start, end)

    def remove(self, start: int, end: int) -> None:
        """Record that [start, end) is to be compared once more."""
        for ranges in (self._all, *self._by.values()):
            ranges.remove(start, end)

    def covers(self, start: int, end: int) -> bool:
        """Tell whether all of [start, end) was compared."""
        return self._all.covers(start, end)

    @property
    def size(self) -> int:
        """How many bytes were compared."""
        return self._all.size

    def bytes_by_algorithm(self) -> dict[str, int]:
        """Return how many bytes were compared by which checksum."""
        return {algorithm: ranges.size for algorithm, ranges in self._by.items() if ranges.size}
