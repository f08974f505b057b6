"""The queue in front of the bottleneck, as the round trips of the data show it.

It is full whoever filled it. Bursts of streams that begin lengthen it for a moment, losses empty it for one.
"""

from collections import deque
from collections.abc import Iterable

LONG_S, LONG_RTT = 0.001, 0.02  # a queue longer than the longer of these makes a path full
NOW_S, NOW_RTT = 0.5, 10.0  # it is full now if it was so for half of the longer of these ...
STANDS_S, STANDS_RTT = 3.0, 40.0  # ... and the queue stands, if for all of the longer of these ...
DIPS = 0.2  # ... but for that share


class Queue:
    """Remembers how long the queue was lately."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # (time, seconds of queue)

    def clear(self) -> None:
        """The streams have changed: what was seen before tells nothing of them."""
        self._seen.clear()

    def add(self, now_s: float, queues_s: Iterable[float | None], rtt_s: float) -> None:
        """Take what the paths of a group tell, None where nobody knows; the longest counts."""
        known = [queue_s for queue_s in queues_s if queue_s is not None]
        if known:
            self._seen.append((now_s, max(known)))
        while self._seen and self._seen[0][0] < now_s - max(STANDS_S, STANDS_RTT * rtt_s):
            self._seen.popleft()

    def is_full(self, now_s: float, rtt_s: float) -> bool:
        """Whether there is a queue now."""
        return self._exceeded_s(now_s - max(NOW_S, NOW_RTT * rtt_s), 0.5) > _long_s(rtt_s)

    def standing(self, now_s: float, rtt_s: float) -> float | None:
        """What share of all that is under way stands in the queue, if it has stood for a while."""
        from_s = now_s - max(STANDS_S, STANDS_RTT * rtt_s)
        standing_s = self._exceeded_s(from_s, DIPS)
        if standing_s <= _long_s(rtt_s) or self._seen[0][0] > from_s + 0.1 * (now_s - from_s):
            return None
        return standing_s / (rtt_s + standing_s)

    def _exceeded_s(self, from_s: float, share: float) -> float:
        """What the queue exceeded since then, but for that share of the time."""
        recent = sorted(queue_s for at_s, queue_s in self._seen if at_s >= from_s)
        return recent[int(share * len(recent))] if recent else 0.0


def _long_s(rtt_s: float) -> float:
    return max(LONG_S, LONG_RTT * rtt_s)
