"""From samples to bins: the goodput of a group of paths, and how far its streams have come up to speed.

A new stream needs about ten round-trip times (RTT) until it carries its share, or until the windows hold it
back. A bin says what was measured and how much it is worth.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from mpx.apt_takeover import Takeover
from mpx.tuner import Sample

BIN_S, BIN_RTT = 0.1, 2.0  # shortest bin, the longer of these: windows arrive in lumps, one in an RTT
RAMP_RTT = 10.0  # a new stream is up to speed after that many RTT
HELD_RTT = 5.0  # from that age on a stream that windows hold back is up to speed
FULL_S, FULL_RTT = 0.001, 0.02  # a longer queue than the longer of these makes a path full
NOW_S, NOW_RTT = 0.5, 10.0  # a path is full now if that was so for half of the longer of these ...
STANDS_S, STANDS_RTT = 3.0, 40.0  # ... and has been so for a while, if for all of the longer of these ...
DIPS = 0.2  # ... but for that share: losses empty a queue for a moment
WORTH = 0.25  # bins worth less than that are dropped
UNKNOWN_RTT_S = 0.05  # until the RTT is known
SEGMENT_BYTES = 1448  # payload of a full segment on Ethernet
STALL_S = 0.5  # a silence of that length, and of four usual gaps between arrivals, is a stall


@dataclass(frozen=True, slots=True)
class Bin:
    """What a group of paths moved between two calls at least `BIN_S` apart."""

    at_s: float  # its middle
    streams: int
    up: float  # streams up to speed: a stream half way through its ramp counts as a half
    goodput_bps: float
    worth: float  # 0 to 1: (up / streams)^4, so that hardly ramped streams prove nothing
    held_back: float | None  # share of the time in which windows or send buffers held streams back
    resent: float  # segments sent again, as a share of what arrived
    full: bool  # a queue stands in front of the bottleneck, whoever filled it
    excess: float | None  # its share of what is under way, if it has stood for a while


@dataclass(slots=True)
class _Path:
    streams: int = 0
    arrived_bytes: int = 0
    goodput_bps: float = 0.0  # of the last bin
    bin_bytes: int = 0  # arrived_bytes when the open bin began
    retransmits: int = 0
    bin_retransmits: int = 0
    opened: list[tuple[int, float]] = field(default_factory=list)  # (streams, since when), oldest first


class Meter:
    """Bins of one group of paths; give it every sample in order of time."""

    def __init__(self) -> None:
        self._paths: dict[str, _Path] = {}
        self._last_s: float | None = None
        self._begin_s = 0.0  # of the open bin
        self._takeover = Takeover()
        self._expected_bps: float | None = None
        self._last_bps = 0.0  # of the last bin that told something
        self._progress_s = 0.0
        self._gap_s = 0.0  # usual time between two arrivals
        self._stalled = False
        self._queues: deque[tuple[float, float]] = deque()  # (time, queue)
        self.rtt_s = UNKNOWN_RTT_S

    @property
    def ramp_s(self) -> float:
        """How long a new stream needs to come up to speed."""
        return RAMP_RTT * self.rtt_s

    @property
    def bin_s(self) -> float:
        """How long a bin is at least."""
        return max(BIN_S, BIN_RTT * self.rtt_s)

    @property
    def settled(self) -> bool:
        """Whether goodput has reached what the present streams will carry, so that bins come."""
        return not self._takeover.pending

    def expect(self, goodput_bps: float) -> None:
        """With the next change streams go back to a number that carried that much; wait until they do."""
        self._expected_bps = goodput_bps

    def goodput_bps(self, path: str) -> float:
        """Goodput of one path in the last bin."""
        return self._paths[path].goodput_bps

    def add(self, now_s: float, samples: Mapping[str, Sample], noise: float = 0.0) -> Bin | None:
        """Take one call's samples; a bin comes back when one is complete and worth something.

        `noise` is how noisy goodput is thought to be, the standard deviation of its logarithm.
        """
        if self._last_s is not None and now_s <= self._last_s:
            return None
        rtts = [s.rtt_s for s in samples.values() if s.rtt_s]
        self.rtt_s = max(rtts) if rtts else UNKNOWN_RTT_S
        self._follow_queue(now_s, samples)
        changed = self._follow(now_s, samples)
        silent_s = now_s - self._progress_s
        arrived = sum(s.arrived_bytes - self._paths[name].arrived_bytes for name, s in samples.items())
        for name, sample in samples.items():
            self._paths[name].arrived_bytes = sample.arrived_bytes
            self._paths[name].retransmits = sample.retransmits
        self._last_s = now_s
        if changed or sum(s.streams for s in samples.values()) == 0:
            self._open(now_s)
            self._progress_s = now_s
            return None
        if arrived <= 0:
            return None
        self._stalled |= silent_s > max(STALL_S, 4 * self._gap_s)
        self._gap_s += 0.2 * (silent_s - self._gap_s)
        self._progress_s = now_s
        if now_s - self._begin_s < self.bin_s - 1e-9:
            return None
        return self._close(now_s, samples, noise)

    def _follow_queue(self, now_s: float, samples: Mapping[str, Sample]) -> None:
        """Remember how long the queue was lately, by the path that has the longest."""
        known = [sample.queue_s for sample in samples.values() if sample.queue_s is not None]
        if known:
            self._queues.append((now_s, max(known)))
        while self._queues and self._queues[0][0] < now_s - max(STANDS_S, STANDS_RTT * self.rtt_s):
            self._queues.popleft()

    def _standing_s(self, now_s: float, within_s: float, share: float) -> float:
        """The queue that was exceeded for all but that share of the last `within_s`; 0 if none is known."""
        recent = sorted(queue_s for at_s, queue_s in self._queues if at_s >= now_s - within_s)
        return recent[int(share * len(recent))] if recent else 0.0

    def _is_long(self, queue_s: float) -> bool:
        return queue_s > max(FULL_S, FULL_RTT * self.rtt_s)

    def _full(self, now_s: float) -> bool:
        """Whether a queue stands now: for most of the last moments."""
        return self._is_long(self._standing_s(now_s, max(NOW_S, NOW_RTT * self.rtt_s), 0.5))

    def _excess(self, now_s: float) -> float | None:
        """The queue that has stood for a while: longer than streams that begin overshoot."""
        within_s = max(STANDS_S, STANDS_RTT * self.rtt_s)
        standing_s = self._standing_s(now_s, within_s, DIPS)
        if not self._is_long(standing_s) or self._queues[0][0] > now_s - 0.9 * within_s:
            return None
        return standing_s / (self.rtt_s + standing_s)

    def _follow(self, now_s: float, samples: Mapping[str, Sample]) -> bool:
        """Keep the ages of the streams; True if paths or streams came or went."""
        changed = self._paths.keys() != samples.keys()
        for name in self._paths.keys() - samples.keys():
            del self._paths[name]
        for name, sample in samples.items():
            path = self._paths.setdefault(name, _Path(arrived_bytes=sample.arrived_bytes))
            if sample.streams > path.streams:
                path.opened.append((sample.streams - path.streams, self._last_s or now_s))
            elif sample.streams < path.streams:
                excess = path.streams - sample.streams
                while excess > 0:
                    count, since = path.opened.pop()
                    if count > excess:
                        path.opened.append((count - excess, since))
                    excess -= count
            if sample.streams != path.streams:
                grew = sample.streams > path.streams
                self._takeover.begin(now_s, self._expected_bps or self._last_bps, grew)
                self._expected_bps = None
                self._queues.clear()
            changed |= sample.streams != path.streams
            path.streams = sample.streams
        return changed

    def _open(self, now_s: float) -> None:
        self._begin_s, self._stalled = now_s, False
        for path in self._paths.values():
            path.bin_bytes, path.bin_retransmits = path.arrived_bytes, path.retransmits

    def _close(self, now_s: float, samples: Mapping[str, Sample], noise: float) -> Bin | None:
        begin_s, stalled = self._begin_s, self._stalled
        length_s, middle_s = now_s - begin_s, (now_s + begin_s) / 2
        total_bps = up = 0.0
        held_back = _held_back(samples)
        for path in self._paths.values():
            path.goodput_bps = (path.arrived_bytes - path.bin_bytes) * 8 / length_s
            total_bps += path.goodput_bps
            up += sum(n * self._share_up(middle_s - since, held_back) for n, since in path.opened)
        streams = sum(s.streams for s in samples.values())
        resent = sum(p.retransmits - p.bin_retransmits for p in self._paths.values()) * SEGMENT_BYTES
        self._open(now_s)
        worth = (up / streams) ** 4
        if stalled or worth < WORTH or total_bps <= 0:
            return None
        if not self._takeover.over(middle_s, total_bps, held_back, noise, self.rtt_s):
            return None
        self._last_bps = total_bps
        resent_share = resent * 8 / (total_bps * length_s)
        return Bin(
            middle_s,
            streams,
            up,
            total_bps,
            worth,
            held_back,
            resent_share,
            self._full(now_s),
            self._excess(now_s),
        )

    def _share_up(self, age_s: float, held_back: float | None) -> float:
        """How far a stream of that age is up to speed, from 0 to 1."""
        if held_back is None or age_s < HELD_RTT * self.rtt_s:
            held_back = 0.0
        return min(1.0, max(held_back, age_s / self.ramp_s))


def _held_back(samples: Mapping[str, Sample]) -> float | None:
    """Mean over the streams of the share of time they were held back; None if nobody knows."""
    known = [s for s in samples.values() if s.limited_by_receiver is not None and s.streams > 0]
    if not known:
        return None
    total = sum(s.streams * ((s.limited_by_receiver or 0.0) + (s.limited_by_sender or 0.0)) for s in known)
    return min(1.0, total / sum(s.streams for s in known))
