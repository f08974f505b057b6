"""What a dataset is made of: random links, the mixes on them, what else is there, and how each is probed.

All of it follows from a seed: the same seed gives the same runs, and more links only add runs.
"""

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mpx.errors import UsageError

CUBIC, BBR = "tcp(congestion=cubic)", "tcp(congestion=bbr)"
MIXES: dict[str, tuple[str, ...]] = {
    "none": (),
    "C": (CUBIC,),
    "B": (BBR,),
    "CC": (CUBIC, CUBIC),
    "BC": (BBR, CUBIC),
    "BB": (BBR, BBR),
}
# The paper's profile of 20 s: CUBIC, BBR, CUBIC, nothing, 5 s each.
BURSTS = (
    "tcp-square(congestion=cubic, on=5s, off=5s)",
    "tcp-square(congestion=bbr, on=5s, off=15s, after=5s)",
)
PARTS = ("passive", "active", "outside", "paper")

RATE_MBPS = (20.0, 200.0)
RTT_MS = (10.0, 200.0)
QUEUE_BDP = (0.25, 4.0)
SHORT_LOAD = (0.03, 0.15)  # short flows, of the rate
UDP_LOAD = (0.01, 0.05)
STAGGER_S = 3.0  # streams of a mix begin within that time
SECONDS, ACTIVE_SECONDS = 35.0, 50.0  # of a run, after it has warmed up
WARM_UP_S, WARM_UP_RTT = 10.0, 40.0
NUISANCES = {"passive": 2, "active": 1}  # runs with other traffic for each clean one

PAPER_PIECES, PAPER_PIECE_S = 6, 600.0  # an hour of each class, and each kind of probing


@dataclass(frozen=True)
class Wan:
    """A bottleneck; queue in products of bandwidth and delay."""

    id: str
    rate_bps: int
    rtt_s: float
    queue_bdp: float

    @property
    def queue_bytes(self) -> int:
        """The queue of each direction."""
        return round(self.rate_bps / 8 * self.rtt_s * self.queue_bdp)


PAPER = Wan("paper", 50_000_000, 0.128, 0.75)


@dataclass(frozen=True)
class Recipe:
    """One run: what is on a link, and how it is probed."""

    part: str
    wan: Wan
    mix: str  # of MIXES, or what is outside of them
    streams: tuple[str, ...]  # generators that make the mix
    seconds: float
    nuisance: tuple[str, ...] = ()
    turn: int = 1

    @property
    def name(self) -> str:
        """What its folder is called."""
        return f"{self.part}-{self.wan.id}-{re.sub('[^A-Za-z0-9]+', '-', self.mix)}-{self.turn}"

    @property
    def active(self) -> bool:
        """Whether bursts run beside the probes; pieces of the paper's hour alternate."""
        return self.part == "active" or (self.part == "paper" and self.turn % 2 == 0)

    @property
    def warm_up_s(self) -> float:
        """How long the mix runs before the series begins."""
        return WARM_UP_S + WARM_UP_RTT * self.wan.rtt_s

    def begins_s(self) -> list[float]:
        """Return when each stream of the mix begins, in the run."""
        chance = random.Random(f"begin {self.name}")
        return [chance.uniform(0, STAGGER_S) for _ in self.streams]

    def described(self) -> dict[str, Any]:
        """Return it as run.json holds it."""
        bursts = BURSTS if self.active else ()
        return {**asdict(self), "warm_up_s": self.warm_up_s, "bursts": bursts, "begins_s": self.begins_s()}


def draw_links(count: int, seed: int) -> list[Wan]:
    """Return random links: rate, RTT and queue log-uniform within their limits."""
    links = []
    for number in range(1, count + 1):
        chance = random.Random(f"link {seed} {number}")
        rate_bps = round(_log_uniform(chance, RATE_MBPS) * 1e6)
        rtt_s = round(_log_uniform(chance, RTT_MS) / 1e3, 4)
        links.append(Wan(f"{seed}-{number}", rate_bps, rtt_s, round(_log_uniform(chance, QUEUE_BDP), 3)))
    return links


def recipes(parts: Sequence[str], links: int, seed: int) -> list[Recipe]:
    """Return all runs, link after link, so that what is done first is already of use.

    Raises UsageError for a part that does not exist.
    """
    for part in parts:
        if part not in PARTS:
            raise UsageError(f"'{part}' is no part of a dataset; there are {', '.join(PARTS)}")
    found = [
        recipe
        for wan in draw_links(links, seed)
        for part in parts
        if part != "paper"
        for recipe in (_outside(wan) if part == "outside" else _mixes(part, wan))
    ]
    return [*found, *(_paper() if "paper" in parts else ())]


def _mixes(part: str, wan: Wan) -> Iterator[Recipe]:
    seconds = ACTIVE_SECONDS if part == "active" else SECONDS
    for turn in range(1, NUISANCES[part] + 2):
        for mix, streams in MIXES.items():
            recipe = Recipe(part, wan, mix, streams, seconds, (), turn)
            nuisance = _nuisance(wan, random.Random(f"nuisance {recipe.name}")) if turn > 1 else ()
            yield Recipe(part, wan, mix, streams, seconds, nuisance, turn)


def _nuisance(wan: Wan, chance: random.Random) -> tuple[str, ...]:
    """Short flows, and in half of the runs a little UDP."""
    short = _short_flows(wan, chance.uniform(*SHORT_LOAD), chance)
    udp = f"udp(rate={wan.rate_bps * chance.uniform(*UDP_LOAD):.0f}bit/s)"
    return (short, udp) if chance.random() < 0.5 else (short,)


def _short_flows(wan: Wan, load: float, chance: random.Random) -> str:
    seed = chance.randrange(1, 10**6)
    return f"short-flows(load={load:.3f}, of={wan.rate_bps}bit/s, seed={seed}, congestion=cubic)"


def _outside(wan: Wan) -> Iterator[Recipe]:
    """What none of the mixes is; reno counts as right where it is taken for C."""
    chance = random.Random(f"outside {wan.id}")
    share = chance.uniform(0.3, 0.9)
    many = chance.randrange(8, 25)
    mixed = (f"tcp(congestion={name}, streams={many // 2})" for name in ("cubic", "bbr"))
    kinds = {
        "reno": ("tcp(congestion=reno)",),
        "reno reno": ("tcp(congestion=reno)",) * 2,
        "udp": (f"udp(rate={wan.rate_bps * share:.0f}bit/s)",),
        "udp bursty": (f"udp-bursty(rate={wan.rate_bps * 0.9:.0f}bit/s, burst=1s, period=5s)",),
        "many": (f"tcp(congestion=cubic, streams={many})",),
        "many mixed": tuple(mixed),
        "short flows": (_short_flows(wan, chance.uniform(0.4, 0.8), chance),),
        "application": ("tcp-square(congestion=cubic, on=1s, off=3s)",),
    }  # fmt: skip
    for mix, streams in kinds.items():
        yield Recipe("outside", wan, mix, streams, SECONDS)


def _paper() -> Iterator[Recipe]:
    """The paper's cell: an hour of each class with passive, and one with active probing, in pieces."""
    for turn in range(1, 2 * PAPER_PIECES + 1):
        for mix, streams in MIXES.items():
            yield Recipe("paper", PAPER, mix, streams, PAPER_PIECE_S, (), turn)


def _log_uniform(chance: random.Random, limits: tuple[float, float]) -> float:
    return math.exp(chance.uniform(*map(math.log, limits)))
