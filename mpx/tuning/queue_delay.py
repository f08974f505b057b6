"""The queue at the bottleneck, as the round-trip times of the data show it.

It counts whatever traffic fills it. Streams that start lengthen it for a moment, losses empty it for one.
"""

from collections import deque
from collections.abc import Iterable

LONG_S, LONG_RTT = 0.001, 0.02  # a path is full with a queue longer than the longer of these
NOW_S, NOW_RTT = 0.5, 10.0  # full now: for half of the longer of these ...
STANDS_S, STANDS_RTT = 3.0, 40.0  # ... and the queue stands: for all of the longer of these, ...
GAPS = 0.2  # ... but for that share


class Queue:
    """Keeps how long the queue was in the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # (time, seconds of queue)

    def clear(self) -> None:
        """Forget what was seen, as the streams have changed."""
        self._seen.clear()

    def add(self, now_s: float, queues_s: Iterable[float | None], rtt_s: float) -> None:
        """Take the queues of the paths of a group, None where not known; the longest counts."""
        known = [queue_s for queue_s in queues_s if queue_s is not None]
        if known:
            self._seen.append((now_s, max(known)))
        while self._seen and self._seen[0][0] < now_s - max(STANDS_S, STANDS_RTT * rtt_s):
            self._seen.popleft()

    def is_full(self, now_s: float, rtt_s: float) -> bool:
        """Whether there is a queue now."""
        return self._exceeded_s(now_s - max(NOW_S, NOW_RTT * rtt_s), 0.5) > _long_s(rtt_s)

    def standing(self, now_s: float, rtt_s: float) -> float | None:
        """Return the share of the data in flight that stands in the queue; None if it does not stand."""
        from_s = now_s - max(STANDS_S, STANDS_RTT * rtt_s)
        standing_s = self._exceeded_s(from_s, GAPS)
        if standing_s <= _long_s(rtt_s) or self._seen[0][0] > from_s + 0.1 * (now_s - from_s):
            return None
        return standing_s / (rtt_s + standing_s)

    def _exceeded_s(self, from_s: float, share: float) -> float:
        """Return what the queue exceeded since then, but for that share of the time."""
        recent = sorted(queue_s for at_s, queue_s in self._seen if at_s >= from_s)
        return recent[int(share * len(recent))] if recent else 0.0


def _long_s(rtt_s: float) -> float:
    return max(LONG_S, LONG_RTT * rtt_s)
