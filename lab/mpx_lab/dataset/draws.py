"""The recipes of a dataset: mixes on random links, other traffic beside them, and how each is probed.

Everything follows from a seed: the same seed gives the same runs, and more links only add runs.
"""

import random
from collections.abc import Callable, Iterator, Sequence

from mpx.errors import UsageError
from mpx_lab.dataset.links import PAPER, Wan, draw_links
from mpx_lab.dataset.outside import FILL, outside
from mpx_lab.dataset.recipe import Own, Recipe, Stretch
from mpx_lab.dataset.short_flows import short_flows

CUBIC, BBR = "tcp(congestion=cubic)", "tcp(congestion=bbr)"
MIXES: dict[str, tuple[str, ...]] = {
    "none": (),
    "C": (CUBIC,),
    "B": (BBR,),
    "CC": (CUBIC, CUBIC),
    "BC": (BBR, CUBIC),
    "BB": (BBR, BBR),
}
# What a series is for; a transfer with rate pulses is a kind of its own.
PASSIVE, ACTIVE, TRANSFER, DIPS, PAPER_CELL = "passive", "active", "transfer", "dips", "paper"
LONG = "long"  # passive, as what is decided over a minute is judged on (bench/ops_sequential.py)
LINKS = "links"
PARTS = (LINKS, DIPS, PAPER_CELL)  # of what a model is trained on
ALL_PARTS = (*PARTS, PASSIVE, LONG)  # PASSIVE: as of LINKS, without the rest, so that many links can be had

SECONDS = 30.0  # of a passive series: windows of 5, 10 and 20 s fit in
LONG_SECONDS = 60.0
BURST_SECONDS = {"short": 25.0, "paper": 40.0}  # five periods of the bursts, and two
PAPERS = 0.25  # of the runs have the paper's bursts
COPY_SECONDS = 20.0  # of each of the two series beside our own copies
DIPS_SECONDS = 25.0  # and where these make rate pulses
DISTURBED = 0.5  # of the active series, and of those beside our own copies
SHORT_LOAD = (0.03, 0.15)  # short flows, of the rate
UDP_LOAD = (0.01, 0.05)
OUTSIDE_KINDS = 2  # of traffic outside of the mixes, on a link
OWN_STREAMS = (1, 4, 16)
OWN_CONGESTIONS = ("cubic", "bbr")

PAPER_PIECES, PAPER_PIECE_S = 6, 600.0  # an hour of each class, and each kind of probing
BLOCK_LINKS = 5


def recipes(parts: Sequence[str], links: int, seed: int, near: bool = False) -> list[Recipe]:
    """Return all runs in the order in which they are to be measured.

    A few links after the other, so that what is done first is already of use; within these at random, as runs
    of a fast link do not fit beside each other and would leave most of the machine idle.
    Raises UsageError for a part that does not exist.
    """
    for part in parts:
        if part not in ALL_PARTS:
            raise UsageError(f"'{part}' is not a part of a dataset; the parts are {', '.join(ALL_PARTS)}")
    wans = draw_links(links, seed, near)
    found: list[Recipe] = []
    for part, run in ((LINKS, _run), (DIPS, _dips), (PASSIVE, _passive)):
        for first in range(0, len(wans) if part in parts else 0, BLOCK_LINKS):
            block = [recipe for wan in wans[first : first + BLOCK_LINKS] for recipe in _of(wan, run)]
            random.Random(f"order {seed} {first}").shuffle(block)
            found += block
    found += [recipe for wan in wans if LONG in parts for recipe in _long(wan)]
    return [*found, *(_paper() if PAPER_CELL in parts else ())]


def _of(wan: Wan, run: Callable[[Wan, str, tuple[str, ...], bool], Recipe]) -> Iterator[Recipe]:
    """Yield a run with each mix, and some with traffic that is none of them; others on other links."""
    kinds = outside(wan)
    some = random.Random(f"kinds {wan.id}").sample(sorted(kinds), OUTSIDE_KINDS)
    for mix, streams in MIXES.items():
        yield run(wan, mix, streams, bool(streams))
    for kind in some:
        yield run(wan, kind, kinds[kind], kind in FILL)


def _run(wan: Wan, mix: str, streams: tuple[str, ...], fills: bool) -> Recipe:
    """Return what is measured beside a mix, in one run, as a mix takes half a minute to settle.

    Drawn at random: how many streams our copies have, which congestion control the first has, and whether it
    is there before the mix.
    """
    chance = random.Random(f"run {wan.id} {mix}")
    profile = "paper" if chance.random() < PAPERS else "short"
    count = chance.choice(OWN_STREAMS)
    first, second = (
        Stretch(TRANSFER, COPY_SECONDS, _sometimes(wan, chance), own=Own(congestion, count))
        for congestion in chance.sample(OWN_CONGESTIONS, 2)
    )
    alone = (
        Stretch(PASSIVE, SECONDS),
        Stretch(PASSIVE, SECONDS, _nuisance(wan, chance)),
        Stretch(ACTIVE, BURST_SECONDS[profile], _sometimes(wan, chance), profile),
    )
    ours_first = chance.random() < 0.5
    stretches = (first, *alone, second) if ours_first else (*alone, first, second)
    return Recipe(wan, mix, streams, stretches, fills, ours_first)


def _dips(wan: Wan, mix: str, streams: tuple[str, ...], fills: bool) -> Recipe:
    """Return series of copies that make rate pulses beside a mix: one with each congestion control."""
    chance = random.Random(f"dips {wan.id} {mix}")
    stretches = tuple(
        Stretch(DIPS, DIPS_SECONDS, _sometimes(wan, chance), own=Own(congestion, count, dips=True))
        for congestion, count in zip(
            chance.sample(OWN_CONGESTIONS, 2), chance.choices(OWN_STREAMS, k=2), strict=True
        )
    )
    return Recipe(wan, mix, streams, stretches, fills, ours_first=chance.random() < 0.5)


def _passive(wan: Wan, mix: str, streams: tuple[str, ...], fills: bool) -> Recipe:
    """Return a passive series beside a mix alone, and one beside other traffic as well."""
    chance = random.Random(f"passive {wan.id} {mix}")
    stretches = (Stretch(PASSIVE, SECONDS), Stretch(PASSIVE, SECONDS, _nuisance(wan, chance)))
    return Recipe(wan, mix, streams, stretches, fills)


def _long(wan: Wan) -> Iterator[Recipe]:
    """Yield a run with each mix: one long passive series, and nothing else beside it."""
    for mix, streams in MIXES.items():
        yield Recipe(wan, mix, streams, (Stretch(LONG, LONG_SECONDS),), fills=bool(streams))


def _sometimes(wan: Wan, chance: random.Random) -> tuple[str, ...]:
    return _nuisance(wan, chance) if chance.random() < DISTURBED else ()


def _nuisance(wan: Wan, chance: random.Random) -> tuple[str, ...]:
    """Return short flows, and with probability 1/2 a little UDP as well."""
    short = short_flows(wan, chance.uniform(*SHORT_LOAD), chance, most_s=0.3)
    udp = f"udp(rate={wan.rate_bps * chance.uniform(*UDP_LOAD):.0f}bit/s)"
    return (short, udp) if chance.random() < 0.5 else (short,)


def _paper() -> Iterator[Recipe]:
    """The paper's cell: an hour of each class with passive, and one with active probing, in pieces."""
    for turn in range(1, 2 * PAPER_PIECES + 1):
        stretch = Stretch(PAPER_CELL, PAPER_PIECE_S, profile="" if turn % 2 else "paper")
        for mix, streams in MIXES.items():
            yield Recipe(PAPER, mix, streams, (stretch,), fills=bool(streams), turn=turn)
