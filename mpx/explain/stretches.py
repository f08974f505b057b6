"""Times in which something stayed as it was: streams, readings, outages; and means over time. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mpx.engine.round_trips import SEGMENT_BYTES, least_queue_s
from mpx.intervals import Interval
from mpx.report import Event

OUTAGE_S = 3.0  # without data: as long as progress and notes call one


@dataclass(frozen=True, slots=True)
class Stretch:
    """From when until when something was so, seconds since bytes began to flow."""

    from_s: float
    until_s: float
    what: str

    @property
    def length_s(self) -> float:
        """How long it was."""
        return self.until_s - self.from_s


@dataclass(frozen=True, slots=True)
class StreamStep:
    """A time with one number of streams, and what arrived in it."""

    from_s: float
    until_s: float
    streams: int
    goodput_bps: float | None  # None: not known

    @property
    def length_s(self) -> float:
        """How long it was."""
        return self.until_s - self.from_s


def last_attempt(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of the last attempt: times begin anew with each."""
    begins = [at for at in range(1, len(events)) if events[at].t_s < events[at - 1].t_s]
    return events[begins[-1] :] if begins else events


def stretches(intervals: Sequence[Interval], what: Callable[[Interval], str | None]) -> Sequence[Stretch]:
    """Return the times in which `what` of one path was the same; none where it is None."""
    found: list[Stretch] = []
    for each in intervals:
        name = what(each)
        if name is None:
            continue
        if found and found[-1].what == name and found[-1].until_s >= each.from_s:
            found[-1] = replace(found[-1], until_s=max(found[-1].until_s, each.until_s))
        else:
            found.append(Stretch(each.from_s, each.until_s, name))
    return found


def steps(events: Sequence[Event], intervals: Sequence[Interval]) -> Sequence[StreamStep]:
    """Return the numbers of streams that one path had, with what arrived meanwhile."""
    begins = [e for at, e in enumerate(events) if not at or e.streams != events[at - 1].streams]
    ends = [e.t_s for e in begins[1:]]
    if begins:
        ends.append(max([begins[-1].t_s, *(each.until_s for each in intervals)]))
    arrivals = Arrivals(intervals)
    return [
        StreamStep(e.t_s, end_s, e.streams, arrivals.goodput_bps(e.t_s, end_s))
        for e, end_s in zip(begins, ends, strict=True)
        if end_s > e.t_s or len(begins) == 1
    ]


class Arrivals:
    """What had arrived on one path by when."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._intervals = sorted(intervals, key=lambda each: each.until_s)
        self._ends = [each.until_s for each in self._intervals]
        self._bytes = [0, *accumulate(each.arrived_bytes for each in self._intervals)]
        self._seconds = [0.0, *accumulate(each.length_s for each in self._intervals)]

    def _by(self, t_s: float) -> tuple[float, float]:
        """Return how many bytes had arrived, and for how many seconds that is known."""
        whole = bisect_right(self._ends, t_s)
        arrived, known_s = float(self._bytes[whole]), self._seconds[whole]
        if whole < len(self._intervals):
            part = self._intervals[whole]
            shared_s = max(0.0, t_s - part.from_s)
            if part.length_s > 0:
                arrived += part.arrived_bytes * shared_s / part.length_s
                known_s += shared_s
        return arrived, known_s

    def goodput_bps(self, from_s: float, until_s: float) -> float | None:
        """Return the mean of what arrived over a time, bit/s; None where that is not known."""
        (before, before_s), (after, after_s) = self._by(from_s), self._by(until_s)
        return max(0.0, after - before) * 8 / (after_s - before_s) if after_s > before_s else None


def outages(intervals: Sequence[Interval]) -> Sequence[Stretch]:
    """Return the times of OUTAGE_S and more without data over open streams, between its first and last."""
    moving = [at for at, each in enumerate(intervals) if each.arrived_bytes]
    if not moving:
        return []

    def silence(each: Interval) -> str | None:
        return "no data" if each.streams > 0 and not each.arrived_bytes else None

    silent = stretches(intervals[moving[0] : moving[-1]], silence)
    return [each for each in silent if each.length_s >= OUTAGE_S]


def mean_share(intervals: Sequence[Interval], what: Callable[[Interval], float | None]) -> float | None:
    """Return the mean of a share over the time of all streams; None where it is not known."""
    known = [(value, each.streams * each.length_s) for each in intervals if (value := what(each)) is not None]
    stream_s = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / stream_s if stream_s > 0 else None


def full_share(intervals: Sequence[Interval], rtt_s: float) -> float | None:
    """Return the share of the time in which a queue stood that counts; None where queues are not known.

    What counts depends on the round-trip time, as in tuning/measurement.py; `rtt_s` is used where an interval
    has none.
    """

    def is_full(each: Interval) -> float | None:
        if each.queue_s is None or each.streams <= 0 or each.length_s <= 0:
            return None
        stream_bps = each.arrived_bytes * 8 / each.length_s / max(1.0, each.streams)
        return float(each.queue_s > least_queue_s(stream_bps, each.rtt_s or rtt_s))

    known = [(value, each.length_s) for each in intervals if (value := is_full(each)) is not None]
    whole_s = sum(length for _, length in known)
    return sum(value * length for value, length in known) / whole_s if whole_s > 0 else None


def lost_share(intervals: Sequence[Interval]) -> float | None:
    """Return which share of the segments was sent again; None where nothing arrived, or nobody knows."""
    segments = sum(each.arrived_bytes for each in intervals) / SEGMENT_BYTES
    resent = sum(each.resent for each in intervals)
    return resent / (segments + resent) if segments and resent else None


def of_path(intervals: Sequence[Interval], path: str) -> Iterator[Interval]:
    """Yield the intervals of one path."""
    return (each for each in intervals if each.path == path)
