"""Links drawn at random, as they are found and not chosen, each with the way in which a copy uses it."""

import math
import random
from dataclasses import dataclass

from apt.cell import LOSS, MPX, RATE, RTT, STOCK, Link

RATES_BPS = (20e6, 400e6)
RTTS_S = (0.005, 0.2)
QUEUES = (0.2, 4.0)  # of the product of rate and RTT
LOSSES = (0.00005, 0.02)
SMALL_WINDOW = 65_535
FRAME_BYTES = 1514
FEWEST_FRAMES = 8  # in a queue
LATER = (0.5, 2.0)  # a rate and an RTT that change do so by a factor between these


@dataclass(frozen=True)
class Drawn:
    """A link, and whether the copy is a download."""

    number: int
    link: Link
    down: bool


def draw(number: int, seed: int) -> Drawn:
    """Return the link of that number; each draws all that the others do."""
    chance = random.Random(f"link {number} of {seed}")
    rate_bps, rtt_s = round(_between(chance, RATES_BPS), -5), round(_between(chance, RTTS_S), 4)
    frames = max(FEWEST_FRAMES, round(rate_bps * rtt_s / 8 / FRAME_BYTES * _between(chance, QUEUES)))
    kind = chance.choices(("fifo", "fair", "policer"), (70, 15, 15))[0]
    loss = _loss(chance) if chance.random() < 0.6 else 0.0
    change = chance.choices(("", RATE, RTT, LOSS), (70, 10, 10, 10))[0]
    to = {
        "": 0.0,
        RATE: rate_bps * _between(chance, LATER),
        RTT: round(rtt_s * _between(chance, LATER), 4),
        LOSS: 0.0 if loss else _loss(chance),
    }[change]
    link = Link(
        rate_bps=int(rate_bps),
        rtt_s=rtt_s,
        queue_packets=frames,
        window_bytes=SMALL_WINDOW if chance.random() < 0.2 else None,
        congestion=chance.choices(("cubic", "bbr"), (75, 25))[0],
        loss=loss,
        beside=_beside(chance, rate_bps),
        burst_bytes=frames * FRAME_BYTES if kind == "policer" else None,
        policer=kind == "policer",
        fair_queue=kind == "fair",
        server=chance.choice((STOCK, MPX)),
        change=change,
        change_to=to,
    )
    return Drawn(number, link, chance.random() < 0.5)


def _loss(chance: random.Random) -> float:
    return float(f"{_between(chance, LOSSES):.2g}")


def _beside(chance: random.Random, rate_bps: float) -> str:
    kinds = (
        "",
        "tcp(congestion=cubic)",
        "tcp(congestion=bbr)",
        f"udp-bursty(rate={rate_bps * chance.uniform(0.3, 0.9):.0f}bit/s, period=5s, burst=1s)",
        f"short-flows(load={chance.uniform(0.1, 0.5):.2f}, of={rate_bps:.0f}bit/s, largest=1000000, "
        f"seed={chance.randrange(10**6)}, congestion=cubic)",
    )
    return chance.choices(kinds, (60, 10, 10, 10, 10))[0]


def _between(chance: random.Random, ends: tuple[float, float]) -> float:
    """Return a number between two, evenly in its logarithm."""
    return math.exp(chance.uniform(math.log(ends[0]), math.log(ends[1])))
