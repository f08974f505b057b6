"""What each path has done between two looks of the control loop, for the intervals of the report. Pure."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from mpx.engine.tuner import Sample
from mpx.intervals import Interval


class Known(Protocol):
    """What is known of a path beside what it carries."""

    congestion: str | None

    @property
    def reading(self) -> str | None:
        """The latest reading of its background."""
        ...


class PathMeter:
    """Turns counters that run from the start into what was added to them."""

    def __init__(self) -> None:
        self._before_s = 0.0
        self._before: Mapping[str, Sample] = {}

    def passed(
        self, now_s: float, samples: Mapping[str, Sample], known: Mapping[str, Known]
    ) -> Iterator[Interval]:
        """Yield what each path has done since the last call, or since the start."""
        took_s = now_s - self._before_s
        if took_s <= 0:
            return
        before, before_s = self._before, self._before_s
        self._before, self._before_s = samples, now_s
        none = Sample(0, 0, 0)
        for path, now in samples.items():
            then, about = before.get(path, none), known.get(path)
            yield Interval(
                path,
                before_s,
                now_s,
                streams=now.streams,
                arrived_bytes=max(0, now.arrived_bytes - then.arrived_bytes),
                resent=max(0, now.retransmits - then.retransmits),
                rtt_s=now.rtt_s,
                queue_s=None if now.queue_s is None else max(0.0, now.queue_s),
                idle=_idle(then, now, took_s),
                limited_by_receiver=now.limited_by_receiver,
                limited_by_sender=now.limited_by_sender,
                congestion=about.congestion if about else None,
                background=about.reading if about else None,
            )


def _idle(then: Sample, now: Sample, took_s: float) -> float | None:
    """Return the share of the time in which a stream had nothing under way; None if not known."""
    stream_s = min(then.streams, now.streams) * took_s
    if not now.busy_s or not stream_s:
        return None
    return min(1.0, max(0.0, 1 - (now.busy_s - then.busy_s) / stream_s))
