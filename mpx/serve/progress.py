"""What a transfer has done so far, counted by its data threads and told to the client in markers."""

import threading
from itertools import islice

from mpx.engine.ranges import Range, RangeSet

_MOST_RANGES = 500  # in one 111 marker; the others follow in the next
MOST_NEW_RANGES = 5000  # apart from each other between two markers; what else arrives is not told


class TransferCounters:
    """Counters of one transfer. `lock` also guards the small shared state of its engine."""

    def __init__(self, *, keep_ranges: bool) -> None:
        self.lock = threading.Lock()
        self.moved_bytes = 0  # bytes sent or written twice count twice
        self.first = self.last = 0  # what was written lies between, where the offsets are told
        self._keep_ranges = keep_ranges
        self._new = RangeSet()

    def moved(self, count: int) -> None:
        """Count bytes."""
        with self.lock:
            self.moved_bytes += count

    def arrived(self, start: int, end: int) -> None:
        """Count bytes [start, end) that were handed to the kernel's write.

        A marker tells what need not be sent again after an interruption, so it may tell less than arrived:
        nobody who sends in order leaves so many gaps, and who does could have us remember each.
        """
        with self.lock:
            self.first = min(self.first, start) if self.moved_bytes else start
            self.last = max(self.last, end)
            self.moved_bytes += end - start
            if self._keep_ranges and (len(self._new) < MOST_NEW_RANGES or self._touches(start, end)):
                self._new.add(start, end)

    def take_ranges(self) -> list[Range]:
        """Return what arrived since the previous call (a bounded part of it, if it is in many pieces)."""
        with self.lock:
            if len(self._new) <= _MOST_RANGES:
                new, self._new = self._new, RangeSet()
                return list(new)
            taken = list(islice(self._new, _MOST_RANGES))
            self._new.remove(taken[0][0], taken[-1][1])
            return taken

    def _touches(self, start: int, end: int) -> bool:
        return len(self._new.within(start - 1, end + 1)) > 0
