"""From samples to bins: the goodput of a group of paths, and how far its streams have come up to speed.

A new stream needs about ten round-trip times (RTT) until it carries its share, and after a retirement
the others need a few RTT to take over. A bin says what was measured and how much it is worth.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpx.tuner import Sample

BIN_S = 0.1  # shortest bin; longer where counters move in lumps
RAMP_RTT = 10.0  # a new stream is up to speed after that many RTT
TAKEOVER_RTT = 4.0  # the others carry what retired streams carried after that many RTT
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
        self._unsettled_until_s = float("-inf")
        self._progress_s = 0.0
        self._gap_s = 0.0  # usual time between two arrivals
        self._stalled = False
        self.rtt_s = UNKNOWN_RTT_S

    @property
    def ramp_s(self) -> float:
        """How long a new stream needs to come up to speed."""
        return RAMP_RTT * self.rtt_s

    def goodput_bps(self, path: str) -> float:
        """Goodput of one path in the last bin."""
        return self._paths[path].goodput_bps

    def add(self, now_s: float, samples: Mapping[str, Sample]) -> Bin | None:
        """Take one call's samples; a bin comes back when one is complete and worth something."""
        if self._last_s is not None and now_s <= self._last_s:
            return None
        rtts = [s.rtt_s for s in samples.values() if s.rtt_s]
        self.rtt_s = max(rtts) if rtts else UNKNOWN_RTT_S
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
        if now_s - self._begin_s < BIN_S - 1e-9:
            return None
        return self._close(now_s, samples)

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
                self._unsettled_until_s = now_s + TAKEOVER_RTT * self.rtt_s
            changed |= sample.streams != path.streams
            path.streams = sample.streams
        return changed

    def _open(self, now_s: float) -> None:
        self._begin_s, self._stalled = now_s, False
        for path in self._paths.values():
            path.bin_bytes, path.bin_retransmits = path.arrived_bytes, path.retransmits

    def _close(self, now_s: float, samples: Mapping[str, Sample]) -> Bin | None:
        begin_s, stalled = self._begin_s, self._stalled
        length_s, middle_s = now_s - begin_s, (now_s + begin_s) / 2
        total_bps = up = 0.0
        for path in self._paths.values():
            path.goodput_bps = (path.arrived_bytes - path.bin_bytes) * 8 / length_s
            total_bps += path.goodput_bps
            up += sum(n * min(1.0, max(0.0, middle_s - since) / self.ramp_s) for n, since in path.opened)
        streams = sum(s.streams for s in samples.values())
        resent = sum(p.retransmits - p.bin_retransmits for p in self._paths.values()) * SEGMENT_BYTES
        self._open(now_s)
        worth = (up / streams) ** 4
        if stalled or worth < WORTH or middle_s < self._unsettled_until_s or total_bps <= 0:
            return None
        return Bin(
            middle_s, streams, up, total_bps, worth, _held_back(samples), resent * 8 / (total_bps * length_s)
        )


def _held_back(samples: Mapping[str, Sample]) -> float | None:
    """Mean over the streams of the share of time they were held back; None if nobody knows."""
    known = [s for s in samples.values() if s.limited_by_receiver is not None and s.streams > 0]
    if not known:
        return None
    total = sum(s.streams * ((s.limited_by_receiver or 0.0) + (s.limited_by_sender or 0.0)) for s in known)
    return min(1.0, total / sum(s.streams for s in known))
