"""What a group of paths has carried lately: means over the last seconds with the present streams."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from mpx.engine.round_trips import SEGMENT_BYTES, least_queue_s
from mpx.engine.tuner import Sample
from mpx.tuning.constants import (
    LONG_QUEUE,
    NEARLY_ALL,
    REST,
    STALL,
    UNKNOWN_RTT_S,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a group carried over some time."""

    streams: float  # on average
    goodput_bps: float
    held_back: float | None  # share of the time that windows or send buffers limited streams; None: unknown.
    # All of it where each carries as much as its window can: paced streams (BBR) never wait for theirs.
    window_bps: float | None  # what receive windows let a stream carry while there is no queue
    resent: float  # segments retransmitted, as a share of what arrived
    full: float | None  # share of the time in which a queue stood, of whatever traffic; None: unknown
    crowded: float | None = None  # share of the time in which a long one stood


@dataclass(frozen=True, slots=True)
class Losses:
    """What arrived, bytes, and was lost, segments, so far; and of both in queues, and where not told."""

    arrived_bytes: int
    lost: int
    queued_bytes: int = 0
    queued_lost: int = 0
    untold_bytes: int = 0
    untold_lost: int = 0


class Meter:
    """Means over one group of paths; give it every sample in order of time."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Mapping[str, Sample]]] = deque()
        self._arrived_s = 0.0  # when something arrived last
        self._stalled_s = -math.inf  # when a stall ended last that was left out
        self.rtt_s = UNKNOWN_RTT_S

    @property
    def arrived_bytes(self) -> int:
        """What has arrived so far, over all paths."""
        return _arrived(self._samples[-1][1]) if self._samples else 0

    def restart(self) -> None:
        """Forget what was measured before the last sample, as the streams have changed."""
        while len(self._samples) > 1:
            self._samples.popleft()

    def add(self, now_s: float, samples: Mapping[str, Sample]) -> None:
        """Take the samples of one call. What was measured before a stall, or on other paths, is forgotten."""
        if self._samples and now_s <= self._samples[-1][0]:
            return
        rtts = [each.rtt_s for each in samples.values() if each.rtt_s]
        self.rtt_s = max(rtts) if rtts else UNKNOWN_RTT_S
        before = self._samples[-1][1] if self._samples else {}
        if before.keys() != samples.keys():
            self._samples.clear()
            self._arrived_s = now_s
        elif _arrived(samples) > _arrived(before):
            silent_s = now_s - self._arrived_s
            is_rare = self._arrived_s - self._stalled_s > 2 * REST.at(self.rtt_s)
            if silent_s > STALL.at(self.rtt_s) and is_rare:
                self._samples.clear()
                self._stalled_s = now_s
            self._arrived_s = now_s
        self._samples.append((now_s, samples))
        while now_s - self._samples[0][0] > 2 * REST.at(self.rtt_s):
            self._samples.popleft()

    def reading(self, length_s: float) -> Reading | None:
        """Return the means over the last `length_s` until the last arrival; None where they are not known."""
        kept = [each for each in self._samples if each[0] <= self._arrived_s]
        until_s = self._arrived_s
        later = [each for each in kept if each[0] > until_s - length_s + 1e-9]
        if len(later) == len(kept) or not later:
            return None  # nothing was measured before
        began_s, first = kept[-len(later) - 1]
        last = later[-1][1]
        bits = 8 * (_arrived(last) - _arrived(first))
        if bits <= 0:
            return None
        goodput_bps = bits / (until_s - began_s)
        streams = _mean([sum(s.streams for s in samples.values()) for _, samples in later])
        held_back = [each for _, samples in later if (each := _held_back(samples)) is not None]
        queues_s = [each for _, samples in later if (each := _queue_s(samples)) is not None]
        least_s, long_s = least_queue_s(goodput_bps / max(1.0, streams), self.rtt_s), LONG_QUEUE * self.rtt_s
        resent = sum(s.retransmits for s in last.values()) - sum(s.retransmits for s in first.values())
        window_bps = max((s.window_bps for s in last.values() if s.window_bps), default=None)
        longer = 1.0 + (_mean(queues_s) / self.rtt_s if queues_s else 0.0)  # round trips, by queues
        fills_windows = goodput_bps * longer >= NEARLY_ALL * streams * (window_bps or math.inf)
        return Reading(
            streams=streams,
            goodput_bps=goodput_bps,
            held_back=1.0 if fills_windows else _mean(held_back) if held_back else None,
            window_bps=window_bps,
            resent=resent * SEGMENT_BYTES * 8 / bits,
            full=_mean([queue_s > least_s for queue_s in queues_s]) if queues_s else None,
            crowded=_mean([queue_s > max(least_s, long_s) for queue_s in queues_s]) if queues_s else None,
        )

    @property
    def retransmits(self) -> int:
        """Segments sent again so far, over all paths."""
        return sum(sample.retransmits for sample in self._samples[-1][1].values()) if self._samples else 0

    @property
    def losses(self) -> "Losses | None":
        """What arrived and was lost so far, and where; None where nobody knows of queues."""
        known = [s for s in (self._samples[-1][1].values() if self._samples else ()) if s.queue_s is not None]
        if not known:
            return None
        return Losses(
            self.arrived_bytes,
            self.retransmits,
            sum(s.queued_bytes for s in known),
            sum(s.queued_lost for s in known),
            sum(s.untold_bytes for s in known),
            sum(s.untold_lost for s in known),
        )

    def path_bps(self, path: str, length_s: float) -> float:
        """Return the goodput of one path over at most the last `length_s`; 0 where nothing is known."""
        kept = [each for each in self._samples if each[0] >= self._samples[-1][0] - length_s]
        (began_s, first), (ended_s, last) = kept[0], kept[-1]
        return 8 * (last[path].arrived_bytes - first[path].arrived_bytes) / max(1e-9, ended_s - began_s)


def _mean(values: list[float] | list[int] | list[bool]) -> float:
    return sum(values) / len(values)


def _arrived(samples: Mapping[str, Sample]) -> int:
    return sum(sample.arrived_bytes for sample in samples.values())


def _queue_s(samples: Mapping[str, Sample]) -> float | None:
    """Return the longest queue of the paths of a group; None if none is known."""
    return max((s.queue_s for s in samples.values() if s.queue_s is not None), default=None)


def _held_back(samples: Mapping[str, Sample]) -> float | None:
    """Return the mean over streams of the share of time that windows limited them; None if not known."""
    known = [s for s in samples.values() if s.limited_by_receiver is not None and s.streams > 0]
    if not known:
        return None
    total = sum(s.streams * ((s.limited_by_receiver or 0.0) + (s.limited_by_sender or 0.0)) for s in known)
    return min(1.0, total / sum(s.streams for s in known))
