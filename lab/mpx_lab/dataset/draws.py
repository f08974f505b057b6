"""What a dataset is made of: the mixes on random links, what else is there, and how each is watched.

All of it follows from a seed: the same seed gives the same runs, and more links only add runs.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mpx.errors import UsageError
from mpx_lab.dataset.links import PAPER, Wan, draw_links
from mpx_lab.dataset.outside import outside
from mpx_lab.dataset.recipe import Copies, Recipe
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
PASSIVE, ACTIVE, TRANSFER, PAPER_CELL = "passive", "active", "transfer", "paper"
PARTS = (PASSIVE, ACTIVE, TRANSFER, PAPER_CELL)

SECONDS = 40.0  # of a series: windows of 5, 10 and 20 s fit in
COPY_SECONDS = 25.0  # of each of the two series of a run with our own copies
SHORT_LOAD = (0.03, 0.15)  # short flows, of the rate
UDP_LOAD = (0.01, 0.05)
NUISANCE_TURNS = 2  # passive runs with other traffic for each clean one
OUTSIDE_KINDS = {PASSIVE: 5, ACTIVE: 2, TRANSFER: 2}  # of traffic outside of the mixes, on a link
OWN_STREAMS = (1, 4, 16)
OWN_CONGESTIONS = ("cubic", "bbr")

PAPER_PIECES, PAPER_PIECE_S = 6, 600.0  # an hour of each class, and each kind of probing
BLOCK_LINKS = 5


def recipes(parts: Sequence[str], links: int, seed: int) -> list[Recipe]:
    """Return all runs in the order in which they are to be measured.

    A few links after the other, so that what is done first is already of use; within these at random, as runs
    of a fast link do not fit beside each other and would leave most of the machine idle.
    Raises UsageError for a part that does not exist.
    """
    for part in parts:
        if part not in PARTS:
            raise UsageError(f"'{part}' is no part of a dataset; there are {', '.join(PARTS)}")
    wans = draw_links(links, seed)
    found: list[Recipe] = []
    for first in range(0, links, BLOCK_LINKS):
        block = [
            recipe for wan in wans[first : first + BLOCK_LINKS] for part in parts for recipe in _of(part, wan)
        ]
        random.Random(f"order {seed} {first}").shuffle(block)
        found += block
    return [*found, *(_paper() if PAPER_CELL in parts else ())]


def _of(part: str, wan: Wan) -> Iterator[Recipe]:
    if part == PASSIVE:
        yield from _passive(wan)
    elif part == ACTIVE:
        yield from _active(wan)
    elif part == TRANSFER:
        yield from _transfer(wan)


def _passive(wan: Wan) -> Iterator[Recipe]:
    for turn in range(1, NUISANCE_TURNS + 2):
        yield from (_disturbed(recipe) if turn > 1 else recipe for recipe in _mixes(PASSIVE, wan, turn))
    yield from _outside(PASSIVE, wan)


def _active(wan: Wan) -> Iterator[Recipe]:
    """The short profile, clean and disturbed; on every second link also the paper's, in one of both ways."""
    chance = random.Random(f"active {wan.id}")
    plan = [("short", False), ("short", True)]
    if chance.random() < 0.5:
        plan.append(("paper", chance.random() < 0.5))
    for turn, (profile, disturbed) in enumerate(plan, 1):
        some = [replace(recipe, profile=profile) for recipe in _mixes(ACTIVE, wan, turn)]
        yield from (_disturbed(recipe) if disturbed else recipe for recipe in some)
    yield from (replace(recipe, profile=plan[-1][0]) for recipe in _outside(ACTIVE, wan))


def _transfer(wan: Wan) -> Iterator[Recipe]:
    """Our own copies beside each mix, clean and disturbed; and beside some other traffic."""
    for turn in (1, 2):
        some = [_with_copies(recipe) for recipe in _mixes(TRANSFER, wan, turn)]
        yield from (_disturbed(recipe) if turn > 1 else recipe for recipe in some)
    yield from (_with_copies(recipe) for recipe in _outside(TRANSFER, wan))


def _outside(part: str, wan: Wan) -> list[Recipe]:
    """Some kinds of traffic that is none of the mixes; others on other links."""
    kinds = list(outside(part, wan, SECONDS))
    return random.Random(f"kinds {part} {wan.id}").sample(kinds, OUTSIDE_KINDS[part])


def _with_copies(recipe: Recipe) -> Recipe:
    """Add our own copies: how many streams, which congestion control first, and who was there first."""
    chance = random.Random(f"copies {recipe.name}")
    congestions = tuple(chance.sample(OWN_CONGESTIONS, 2))
    copies = Copies(congestions, chance.choice(OWN_STREAMS), first=chance.random() < 0.5)
    return replace(recipe, copies=copies, seconds=COPY_SECONDS)


def _mixes(part: str, wan: Wan, turn: int) -> Iterator[Recipe]:
    for mix, streams in MIXES.items():
        yield Recipe(part, wan, mix, streams, SECONDS, fills=bool(streams), turn=turn)


def _disturbed(recipe: Recipe) -> Recipe:
    """Add short flows, and in half of the runs a little UDP."""
    chance, wan = random.Random(f"nuisance {recipe.name}"), recipe.link
    short = short_flows(wan, chance.uniform(*SHORT_LOAD), chance, most_s=0.3)
    udp = f"udp(rate={wan.rate_bps * chance.uniform(*UDP_LOAD):.0f}bit/s)"
    return replace(recipe, nuisance=(short, udp) if chance.random() < 0.5 else (short,))


def _paper() -> Iterator[Recipe]:
    """The paper's cell: an hour of each class with passive, and one with active probing, in pieces."""
    for turn in range(1, 2 * PAPER_PIECES + 1):
        for recipe in _mixes(PAPER_CELL, PAPER, turn):
            yield replace(recipe, seconds=PAPER_PIECE_S, profile="" if turn % 2 else "paper")
