"""What each path of a copy did over time, in intervals that grow longer as the copy does. Pure.

A copy of a second has intervals of 0.1 s, one of a day has intervals of some minutes: there are always
between half of MOST and MOST for each path, so a report stays small however long its copy took.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SHORTEST_S = 0.1
MOST = 240  # intervals of one path; where there would be more, each two become one


@dataclass(frozen=True, slots=True)
class Interval:
    """What one path did from `from_s` to `until_s`, seconds since bytes began to flow.

    Means are over time. `idle`, `limited_by_receiver` and `limited_by_sender` are shares (0 to 1) of the time
    of its streams, on average; None where the kernel does not tell, as when the other side sends.
    """

    path: str
    from_s: float
    until_s: float
    streams: float  # data connections that carried bytes, in the mean
    arrived_bytes: int  # file bytes; in downloads those that arrived twice count twice
    resent: int  # segments sent again
    rtt_s: float | None = None
    queue_s: float | None = None  # by how much the round trips of data were longer than the shortest
    idle: float | None = None  # nothing was under way: there was nothing to send, or it was not permitted yet
    limited_by_receiver: float | None = None  # held back by the receiver's window
    limited_by_sender: float | None = None  # held back by our send buffer
    congestion: str | None = None  # of the streams at its end
    background: str | None = None  # the latest reading in it: a mix of recognition/mix.py

    @property
    def length_s(self) -> float:
        """How long it was."""
        return self.until_s - self.from_s

    def joined(self, later: "Interval") -> "Interval":
        """Return both as one; `later` is of the same path and follows."""
        return Interval(
            self.path,
            self.from_s,
            later.until_s,
            streams=_mean(self.streams, self.length_s, later.streams, later.length_s),
            arrived_bytes=self.arrived_bytes + later.arrived_bytes,
            resent=self.resent + later.resent,
            rtt_s=self._both(later, self.rtt_s, later.rtt_s),
            queue_s=self._both(later, self.queue_s, later.queue_s),
            idle=self._both(later, self.idle, later.idle),
            limited_by_receiver=self._both(later, self.limited_by_receiver, later.limited_by_receiver),
            limited_by_sender=self._both(later, self.limited_by_sender, later.limited_by_sender),
            congestion=later.congestion,
            background=later.background or self.background,
        )

    def _both(self, later: "Interval", mine: float | None, its: float | None) -> float | None:
        if mine is None or its is None:
            return its if mine is None else mine
        return _mean(mine, self.length_s, its, later.length_s)

    def as_dict(self) -> dict[str, Any]:
        """Return it as it stands in the JSON report."""
        return {
            "path": self.path,
            "from_s": round(self.from_s, 3),
            "until_s": round(self.until_s, 3),
            "streams": round(self.streams, 2),
            "arrived_bytes": self.arrived_bytes,
            "resent": self.resent,
            "rtt_s": _rounded(self.rtt_s, 6),
            "queue_s": _rounded(self.queue_s, 6),
            "idle": _rounded(self.idle, 3),
            "limited_by_receiver": _rounded(self.limited_by_receiver, 3),
            "limited_by_sender": _rounded(self.limited_by_sender, 3),
            "congestion": self.congestion,
            "background": self.background,
        }


def _mean(one: float, one_s: float, other: float, other_s: float) -> float:
    whole_s = one_s + other_s
    return (one * one_s + other * other_s) / whole_s if whole_s > 0 else other


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)


class Intervals:
    """The intervals of all paths, of one length. Not for several threads: the report locks it."""

    def __init__(self) -> None:
        self.length_s = SHORTEST_S
        self._of: dict[str, list[Interval]] = {}

    def add(self, latest: Interval) -> None:
        """Add what a path did since it was added last; it may be shorter than an interval."""
        kept = self._of.setdefault(latest.path, [])
        if kept and latest.until_s - kept[-1].from_s <= self.length_s + SHORTEST_S / 2:
            kept[-1] = kept[-1].joined(latest)
        else:
            kept.append(latest)
        while any(len(each) > MOST for each in self._of.values()):
            self.length_s *= 2
            self._of = {path: list(self._in_twos(each)) for path, each in self._of.items()}

    @staticmethod
    def _in_twos(some: list[Interval]) -> Iterator[Interval]:
        for at in range(0, len(some), 2):
            yield some[at].joined(some[at + 1]) if at + 1 < len(some) else some[at]

    def __iter__(self) -> Iterator[Interval]:
        """Those of one path after the other, each in the order of time."""
        for each in self._of.values():
            yield from each
