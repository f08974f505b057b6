"""The shape of one direction of an emulated link: rate, delay, queue, loss."""

from dataclasses import dataclass
from enum import StrEnum

from mpx.errors import UsageError

MAX_RATE_BPS = 100_000_000_000
MAX_DELAY_S = 60.0
SEEDS = 2**64
PAUSE_S = 50e-6  # how long an emulator sleeps between two polls of its frames, by default
MAX_JITTER_S = 1.0
MAX_BURST_BYTES = 1_000_000_000
FULL_FRAME_BYTES = 1514  # 1500 of the packet, 14 of the Ethernet header


class Direction(StrEnum):
    """One of the two directions of a link between an end A and an end B."""

    A_TO_B = "a-to-b"
    B_TO_A = "b-to-a"


@dataclass(frozen=True)
class Shape:
    """One direction of a link.

    A frame counts with its Ethernet header, without checksum and preamble: 1514 bytes for a full one.
    The queue holds the frames that wait for the serialiser and the one on it; it drops at its tail. Whole
    numbers may be floats, as 50e6. Raises UsageError where a value is impossible.
    """

    rate_bps: int | None = None  # bits of frames per second; None: unlimited
    delay_s: float = 0.0  # one way
    queue_bytes: int | None = None  # bytes of frames; at most one of the two limits, None: unlimited
    queue_packets: int | None = None
    loss: float = 0.0  # share of frames that are lost at random, 0 to 1
    seed: int = 1  # of the random losses; the same seed loses the same frames of a sequence
    # In simulated time only:
    burst_bytes: int | None = None  # sent at once after a pause, a token bucket; None: a frame
    policer: bool = False  # nothing waits: what comes when the bucket is empty is lost
    fair_queue: bool = False  # fq_codel instead of one queue that drops at its tail
    jitter_s: float = 0.0  # frames wait for up to so much longer and go on together, in order, as over radio
    reorder_s: float = 0.0  # each frame has a delay of its own, up to so much more or less: some overtake

    def __post_init__(self) -> None:
        for name in ("rate_bps", "queue_bytes", "queue_packets", "seed", "burst_bytes"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        if self.rate_bps is not None and not 1 <= self.rate_bps <= MAX_RATE_BPS:
            raise UsageError(f"a rate must be 1 bit/s to {MAX_RATE_BPS} bit/s, not {self.rate_bps}")
        if not 0 <= self.delay_s <= MAX_DELAY_S:
            raise UsageError(f"a delay must be 0 to {MAX_DELAY_S:g} s, not {self.delay_s}")
        if self.queue_bytes is not None and self.queue_packets is not None:
            raise UsageError("a queue is limited in bytes or in packets, not in both")
        if self.queue_bytes is not None and self.queue_bytes < FULL_FRAME_BYTES:
            raise UsageError(
                f"a queue must hold one full frame, {FULL_FRAME_BYTES} bytes, not {self.queue_bytes}; "
                "give a number of packets instead, for example 100p"
            )
        if self.queue_packets is not None and self.queue_packets < 1:
            raise UsageError(f"a queue must hold at least 1 packet, not {self.queue_packets}")
        if not 0 <= self.loss <= 1:
            raise UsageError(f"a loss must be a share of 0 to 1, not {self.loss}")
        if not 0 <= self.seed < SEEDS:
            raise UsageError(f"a seed must be 0 to 2**64-1, not {self.seed}")
        self._check_simulated()

    @property
    def only_simulated(self) -> str | None:
        """What of it only the links of simulated time can do; None where there is nothing of the kind."""
        usual = Shape()
        names = ("burst_bytes", "policer", "fair_queue", "jitter_s", "reorder_s")
        return next((name for name in names if getattr(self, name) != getattr(usual, name)), None)

    def _check_simulated(self) -> None:
        """Check what only simulated time has."""
        if self.burst_bytes is not None and not FULL_FRAME_BYTES <= self.burst_bytes <= MAX_BURST_BYTES:
            raise UsageError(
                f"a burst must be {FULL_FRAME_BYTES} to {MAX_BURST_BYTES} bytes, not {self.burst_bytes}"
            )
        if self.rate_bps is None and (self.burst_bytes is not None or self.policer or self.fair_queue):
            raise UsageError(
                "bursts, a policer and a fair queue are of a link with a rate: give rate_bps, too"
            )
        queues = self.fair_queue or self.queue_bytes is not None or self.queue_packets is not None
        if self.policer and queues:
            raise UsageError("a policer has no queue: give neither its length nor fair_queue")
        for name, value in (("jitter_s", self.jitter_s), ("reorder_s", self.reorder_s)):
            if not 0 <= value <= MAX_JITTER_S:
                raise UsageError(f"{name} must be 0 to {MAX_JITTER_S:g} s, not {value}")
        if self.reorder_s > self.delay_s:
            raise UsageError(f"reorder_s must be at most the delay, {self.delay_s} s, not {self.reorder_s}")


def _whole(name: str, value: float | None) -> int | None:
    """Return a whole number as an int, and None as it is; raises UsageError for any other number."""
    if isinstance(value, float):
        if not value.is_integer():
            raise UsageError(f"{name} must be a whole number, not {value}")
        return int(value)
    return value
