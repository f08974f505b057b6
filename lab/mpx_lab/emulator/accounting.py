"""The statistics of a link: what became of every frame, and how late it was."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from mpx_lab.shape import Direction, Shape

NS = 1_000_000_000
HINDRANCES = {  # what the kernel refused to the emulator
    "realtime": "the emulator has no real-time priority (it needs CAP_SYS_NICE)",
    "memory_locked": "the emulator's memory may be swapped out (to lock it, it needs CAP_IPC_LOCK)",
}


@dataclass(frozen=True)
class Tally:
    """A number of frames and their bytes."""

    frames: int = 0
    bytes: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.frames + other.frames, self.bytes + other.bytes)

    def __sub__(self, other: "Tally") -> "Tally":
        return Tally(self.frames - other.frames, self.bytes - other.bytes)


@dataclass(frozen=True)
class Histogram:
    """How often each duration was seen, in buckets of about 6 %."""

    # The largest time of each bucket in ns and how often it was seen, ascending.
    counts: tuple[tuple[int, int], ...] = ()
    max_ns: int = 0

    @property
    def total(self) -> int:
        """How many were seen."""
        return sum(count for _, count in self.counts)

    def quantile_s(self, share: float) -> float:
        """Return a time that at least this share of all does not exceed, 0 when there are none."""
        wanted = max(1, math.ceil(share * self.total))
        below = 0
        for upper_ns, count in self.counts:
            below += count
            if below >= wanted:
                return min(upper_ns, self.max_ns) / NS
        return 0.0

    def share_above(self, limit_s: float) -> float:
        """Return the share that may have been above a limit: whole buckets count by their largest time."""
        above = sum(count for upper_ns, count in self.counts if min(upper_ns, self.max_ns) / NS > limit_s)
        return above / self.total if self.total else 0.0

    def since(self, before: "Histogram") -> "Histogram":
        """Return what was seen since an earlier histogram; its largest is then exact to a bucket only."""
        old = dict(before.counts)
        counts = tuple((upper, n - old.get(upper, 0)) for upper, n in self.counts if n != old.get(upper, 0))
        largest = min(counts[-1][0], self.max_ns) if counts else 0
        return Histogram(counts, largest)


@dataclass(frozen=True)
class DirectionStats:
    """One direction: its shape, and counts and lateness of its frames since the start."""

    shape: Shape
    received: Tally
    delivered: Tally
    dropped_queue: Tally  # the queue was full
    dropped_loss: Tally  # lost at random
    dropped_down: Tally  # the link was down
    dropped_ring: Tally  # out of memory: the run does not count
    dropped_invalid: Tally  # longer than the MTU: no single packet
    write_errors: Tally  # the other device did not take it
    held: Tally  # in the queue or in flight
    queued: Tally  # of these in the queue
    device_dropped: int  # frames that the kernel dropped before the emulator could read them
    late: Histogram  # delivered this long after it was due
    pickup: Histogram  # how long a frame may have waited to be read, also while the machine was suspended
    hindrances: tuple[str, ...]  # what makes its emulator late, in words

    @property
    def balance(self) -> Tally:
        """Frames that are not accounted for; always 0 unless there is a bug."""
        gone = self.dropped_queue + self.dropped_loss + self.dropped_down + self.dropped_ring
        return self.received - self.delivered - gone - self.dropped_invalid - self.write_errors - self.held

    @property
    def dropped_elsewhere(self) -> int:
        """Frames that went anywhere but to the other end, the queue's tail, the random loss and a cut."""
        return (
            self.dropped_ring.frames
            + self.dropped_invalid.frames
            + self.write_errors.frames
            + self.device_dropped
        )


@dataclass(frozen=True)
class LinkStats:
    """A link at one moment."""

    name: str
    time_s: float  # of time.monotonic()
    up: bool
    log_failed: bool  # its log could not be continued and ends early
    cpu_s: float  # processor time it has used
    a_to_b: DirectionStats
    b_to_a: DirectionStats

    @property
    def hindrances(self) -> tuple[str, ...]:
        """What makes it late, in words; one process carries both directions."""
        return self.a_to_b.hindrances

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the emulator's answer to `stats`; raises ValueError when it is none."""
        raw = json.loads(text)
        try:
            hindrances = tuple(words for name, words in HINDRANCES.items() if not raw[name])
            return cls(
                name=raw["name"],
                time_s=raw["time_ns"] / NS,
                up=raw["up"],
                log_failed=raw["log_failed"],
                cpu_s=raw["cpu_s"],
                a_to_b=_direction(raw[Direction.A_TO_B], hindrances),
                b_to_a=_direction(raw[Direction.B_TO_A], hindrances),
            )
        except (KeyError, TypeError) as exc:
            raise ValueError(f"the answer is not the statistics of a link: {exc!r}") from exc


TALLIES = (
    "received",
    "delivered",
    "dropped_queue",
    "dropped_loss",
    "dropped_down",
    "dropped_ring",
    "dropped_invalid",
    "write_errors",
    "held",
    "queued",
)


def _direction(raw: Mapping[str, Any], hindrances: tuple[str, ...]) -> DirectionStats:
    shape = raw["shape"]
    return DirectionStats(
        shape=Shape(
            rate_bps=shape["rate_bps"] or None,
            delay_s=shape["delay_ns"] / NS,
            queue_bytes=shape["queue_bytes"] or None,
            queue_packets=shape["queue_packets"] or None,
            loss=shape["loss"],
            seed=shape["seed"],
        ),
        device_dropped=raw["device_dropped"],
        late=_histogram(raw["late"]),
        pickup=_histogram(raw["pickup"]),
        hindrances=hindrances,
        **{name: Tally(*raw[name]) for name in TALLIES},
    )


def _histogram(raw: Mapping[str, Any]) -> Histogram:
    counts: Sequence[Sequence[int]] = raw["counts"]
    return Histogram(tuple((upper, count) for upper, count in counts), raw["max_ns"])
