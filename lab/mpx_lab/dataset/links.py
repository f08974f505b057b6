"""The random links of a dataset, drawn from a seed; a larger number only adds links."""

import math
import random
from dataclasses import dataclass

RATE_MBPS = (20.0, 200.0)
RTT_MS = (10.0, 200.0)
QUEUE_BDP = (0.25, 4.0)
NEAR = "near-"  # what their names begin with
NEAR_RTT_MS = (0.1, 10.0)  # of near links: a campus, a metropolitan network
NEAR_QUEUE_MS = (5.0, 50.0)  # of the rate: such queues are many products of bandwidth and delay
_PACKET_BITS = 12_000
_CUBIC_C, _CUBIC_BETA = 0.4, 0.7  # RFC 9438, sections 5.1 and 4.6
_CYCLES = 2.5
_LEAST_S, _LEAST_RTT = 20.0, 40.0


@dataclass(frozen=True)
class Wan:
    """A bottleneck; its queue is in bandwidth-delay products."""

    id: str
    rate_bps: int
    rtt_s: float
    queue_bdp: float

    @property
    def queue_bytes(self) -> int:
        """The queue of each direction."""
        return round(self.rate_bps / 8 * self.rtt_s * self.queue_bdp)

    @property
    def cycle_s(self) -> float:
        """The time from one loss of a lone CUBIC stream to the next: K of RFC 9438, equation 2."""
        most = self.rate_bps * self.rtt_s / _PACKET_BITS * (1 + self.queue_bdp)  # packets under way
        return math.cbrt(most * (1 - _CUBIC_BETA) / _CUBIC_C)

    @property
    def settles_s(self) -> float:
        """How long streams need until they are in their steady state.

        Two cycles and a half of CUBIC: if slow start ends before the queue fills, the first takes 1.4 of K.
        BBR has drained the queue twice by then (every 10 s), as it takes to agree with others on the base.
        """
        return max(_LEAST_S + _LEAST_RTT * self.rtt_s, _CYCLES * self.cycle_s)


PAPER = Wan("paper", 50_000_000, 0.128, 0.75)


def draw_links(count: int, seed: int, near: bool = False) -> list[Wan]:
    """Return random links: rate, RTT and queue log-uniform within their limits; `near`: of near links."""
    return [_near(seed, number) if near else _far(seed, number) for number in range(1, count + 1)]


def _far(seed: int, number: int) -> Wan:
    chance = random.Random(f"link {seed} {number}")
    rate_bps = round(_log_uniform(chance, RATE_MBPS) * 1e6)
    rtt_s = round(_log_uniform(chance, RTT_MS) / 1e3, 4)
    return Wan(f"{seed}-{number}", rate_bps, rtt_s, round(_log_uniform(chance, QUEUE_BDP), 3))


def _near(seed: int, number: int) -> Wan:
    chance = random.Random(f"near link {seed} {number}")
    rate_bps = round(_log_uniform(chance, RATE_MBPS) * 1e6)
    rtt_s = round(_log_uniform(chance, NEAR_RTT_MS) / 1e3, 5)
    return Wan(
        f"{NEAR}{seed}-{number}", rate_bps, rtt_s, round(_log_uniform(chance, NEAR_QUEUE_MS) / 1e3 / rtt_s, 3)
    )


def _log_uniform(chance: random.Random, limits: tuple[float, float]) -> float:
    return math.exp(chance.uniform(*map(math.log, limits)))
