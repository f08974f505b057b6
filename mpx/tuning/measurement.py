"""Turns samples into bins: the goodput of a group of paths, and how far its streams are up to speed.

A new stream needs about ten round-trip times (RTT) until it carries its share, or until windows limit it. A
bin holds what was measured and how much that is worth.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpx.engine.tuner import Sample
from mpx.tuning.queue_delay import Queue
from mpx.tuning.settling import AT_THE_WINDOWS, Settling

BIN_S, BIN_RTT = 0.1, 2.0  # shortest bin, the longer of these: windows arrive in bursts, one per RTT
RAMP_RTT = 10.0  # a new stream is up to speed after that many RTT
HELD_RTT = 5.0  # from that age on a stream that windows limit is up to speed
WORTH = 0.25  # bins worth less than that are dropped
UNKNOWN_RTT_S = 0.05  # until the RTT is known
SEGMENT_BYTES = 1448  # payload of a full segment on Ethernet
STALL_S = 0.5  # a silence of that length, and of four usual gaps between arrivals, is a stall


@dataclass(frozen=True, slots=True)
class Bin:
    """What a group of paths moved in one bin."""

    at_s: float  # its middle
    streams: int
    up: float  # streams up to speed: a stream half way through its ramp counts as a half
    goodput_bps: float
    worth: float  # 0 to 1: (up / streams)^4, so that streams at the begin of their ramp count for nothing
    held_back: float | None  # share of the time in which windows or send buffers limited streams
    window_bps: float | None  # what receive windows let a stream carry while there is no queue
    resent: float  # segments retransmitted, as a share of what arrived
    full: bool  # there is a queue, of whatever traffic, and windows do not limit us
    excess: float | None  # its share of all data in flight, if it has stood for a while


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
        self._settling = Settling()
        self._wanted: int | None = None  # streams asked for, until as many are open
        self._expected_bps: float | None = None
        self._last_bps = 0.0  # of the last bin that counted
        self._progress_s = 0.0
        self._gap_s = 0.0  # usual time between two arrivals
        self._stalled = False
        self._queue = Queue()
        self._held_back: list[float] = []  # in the open bin
        self._sees_windows = False  # whether the kernel reports how long windows limit streams
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
        return not self._settling.pending

    def ask(self, streams: int | None, expected_bps: float | None = None) -> None:
        """Expect so many streams, on all paths together; None: wait for none.

        Once they are open, their goodput counts when it has reached what it will stay at. `expected_bps`
        is what they are known to carry, if that is known.
        """
        self._wanted, self._expected_bps = streams, expected_bps

    def goodput_bps(self, path: str) -> float:
        """Goodput of one path in the last bin."""
        return self._paths[path].goodput_bps

    def add(self, now_s: float, samples: Mapping[str, Sample], noise: float = 0.0) -> Bin | None:
        """Take the samples of one call; return a bin when one is complete and worth something.

        `noise` is the estimated noise of goodput, the standard deviation of its logarithm.
        """
        if self._last_s is not None and now_s <= self._last_s:
            return None
        rtts = [s.rtt_s for s in samples.values() if s.rtt_s]
        self.rtt_s = max(rtts) if rtts else UNKNOWN_RTT_S
        self._queue.add(now_s, (sample.queue_s for sample in samples.values()), self.rtt_s)
        changed = self._follow(now_s, samples)
        changed |= self._begins(samples)
        silent_s = now_s - self._progress_s
        arrived = sum(s.arrived_bytes - self._paths[name].arrived_bytes for name, s in samples.items())
        for name, sample in samples.items():
            self._paths[name].arrived_bytes = sample.arrived_bytes
            self._paths[name].retransmits = sample.retransmits
        self._last_s = now_s
        if (held_back := _held_back(samples)) is not None:
            self._held_back.append(held_back)
            self._sees_windows = True
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

    def _follow(self, now_s: float, samples: Mapping[str, Sample]) -> bool:
        """Keep the ages of the streams; return whether paths or streams came or went."""
        changed, grown = self._paths.keys() != samples.keys(), 0
        for name in self._paths.keys() - samples.keys():
            del self._paths[name]
        for name, sample in samples.items():
            path = self._paths.setdefault(name, _Path(arrived_bytes=sample.arrived_bytes))
            if sample.streams > path.streams:
                path.opened.append((sample.streams - path.streams, self._last_s or now_s))
            elif sample.streams < path.streams:
                gone = path.streams - sample.streams
                while gone > 0:
                    count, since = path.opened.pop()
                    if count > gone:
                        path.opened.append((count - gone, since))
                    gone -= count
            changed |= sample.streams != path.streams
            grown += sample.streams - path.streams
            path.streams = sample.streams
        self._await(now_s, grown)
        return changed

    def _begins(self, samples: Mapping[str, Sample]) -> bool:
        """Whether the first bytes of a path have arrived; its streams are as old as those.

        They were open for some round trips before they were given anything to carry.
        """
        fresh = [p for name, p in self._paths.items() if not p.arrived_bytes and samples[name].arrived_bytes]
        for path in fresh:
            path.opened = [(path.streams, self._last_s or 0.0)]
        return bool(fresh)

    def _await(self, now_s: float, grown: int) -> None:
        """Begin to wait for what the streams will carry, if they changed by `grown`.

        Those that come and go by themselves, between two files, change little that lasts: after some have
        gone, only what was in flight is left out. New ones count by their ramp where windows are not known.
        """
        if self._wanted is None:
            if grown < 0 and not self._settling.pending:
                self._settling.begin(now_s, 0.0, grew=False)
        elif grown < 0 or (grown and (self._sees_windows or self._expected_bps or not self._last_bps)):
            self._settling.begin(now_s, self._expected_bps or self._last_bps, grew=grown > 0)
            self._queue.clear()
        if self._wanted == sum(path.streams for path in self._paths.values()):
            self.ask(None)

    def _open(self, now_s: float) -> None:
        self._begin_s, self._stalled, self._held_back = now_s, False, []
        for path in self._paths.values():
            path.bin_bytes, path.bin_retransmits = path.arrived_bytes, path.retransmits

    def _close(self, now_s: float, samples: Mapping[str, Sample], noise: float) -> Bin | None:
        begin_s, stalled = self._begin_s, self._stalled
        length_s, middle_s = now_s - begin_s, (now_s + begin_s) / 2
        total_bps = up = 0.0
        held_back = sum(self._held_back) / len(self._held_back) if self._held_back else None
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
        if not self._settling.over(middle_s, total_bps, held_back, noise, self.rtt_s):
            return None
        self._last_bps = total_bps
        free = held_back is None or held_back < AT_THE_WINDOWS  # else the queue is that of other traffic
        full = free and self._queue.is_full(now_s, self.rtt_s)
        excess = self._queue.standing(now_s, self.rtt_s) if full else None
        resent_share = resent * 8 / (total_bps * length_s)
        windows_bps = [sample.window_bps for sample in samples.values() if sample.window_bps]
        window_bps = max(windows_bps, default=None)
        return Bin(middle_s, streams, up, total_bps, worth, held_back, window_bps, resent_share, full, excess)

    def _share_up(self, age_s: float, held_back: float | None) -> float:
        """Return how far a stream of that age is up to speed, from 0 to 1."""
        if held_back is None or age_s < HELD_RTT * self.rtt_s:
            held_back = 0.0
        return min(1.0, max(held_back, age_s / self.ramp_s))


def _held_back(samples: Mapping[str, Sample]) -> float | None:
    """Return the mean over streams of the share of time that windows limited them; None if not known."""
    known = [s for s in samples.values() if s.limited_by_receiver is not None and s.streams > 0]
    if not known:
        return None
    total = sum(s.streams * ((s.limited_by_receiver or 0.0) + (s.limited_by_sender or 0.0)) for s in known)
    return min(1.0, total / sum(s.streams for s in known))
