"""Measures the runs of a dataset that are not there yet, as many at a time as there is room for."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from pathlib import Path

from mpx.errors import MpxError
from mpx_lab.dataset.recipe import Recipe
from mpx_lab.dataset.store import Dataset
from mpx_lab.room import Room, under_way

CAPACITY_BPS = 500_000_000  # of all links that run at once
WAITING = 3  # recipes considered for each slot, so that one that does not fit now is skipped
OVERHEAD_S = 8.0  # of a run besides measuring: building and removing its lab
IN_A_ROW = 5  # recipes that failed: then something is wrong with all of them


def collect(
    dataset: Dataset,
    recipes: Sequence[Recipe],
    at_once: int,
    measure: Callable[[Recipe, Path, int], None],
    stop: Callable[[], None],
    say: Callable[[str], None],
) -> int:
    """Measure these; returns how many recipes had no run that counts.

    `measure` is told a slot, 1 to `at_once`, that no other run has at the same time. `stop` is called at the
    end, and also where this is interrupted: it makes runs that are under way end with Interrupted. Raises
    MpxError where five recipes in a row had no run that counts.
    """
    room = Room(CAPACITY_BPS, at_once)

    def one(recipe: Recipe) -> str:
        with room.part(recipe.link.rate_bps) as slot:
            return dataset.measure(recipe, lambda recipe, folder: measure(recipe, folder, slot))

    failed = in_a_row = 0
    began_s, to_do_s = time.monotonic(), sum(wall_s([recipe], at_once) for recipe in recipes)
    done_s = 0.0
    with under_way(recipes, one, WAITING * at_once, stop) as running:
        for number, done in enumerate(as_completed(running), 1):
            recipe, why = running[done], done.result()
            failed += bool(why)
            in_a_row = in_a_row + 1 if why else 0
            done_s += wall_s([recipe], at_once)
            left_s = (time.monotonic() - began_s) * (to_do_s / done_s - 1)
            outcome = f"no run counts ({why})" if why else "measured"
            say(f"{number} of {len(recipes)}, {left_s / 60:.0f} min left: {recipe.name} {outcome}")
            if in_a_row == IN_A_ROW:
                raise MpxError(
                    f"{IN_A_ROW} recipes in a row had no valid run, the last because {why}; fix that, "
                    "and run it again to go on"
                )
    return failed


def wall_s(recipes: Sequence[Recipe], at_once: int) -> float:
    """Return how long recipes take at least, if all of them count."""
    each_s = [recipe.ends_s + OVERHEAD_S for recipe in recipes]
    by_rate_s = sum(recipe.link.rate_bps * seconds for recipe, seconds in zip(recipes, each_s, strict=True))
    return max(sum(each_s) / at_once, by_rate_s / CAPACITY_BPS)
