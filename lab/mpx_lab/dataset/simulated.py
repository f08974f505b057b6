"""Measures a run of a dataset on a simulated machine: nothing there is ever late, so every run counts.

As a program, inside: python -m mpx_lab.dataset.simulated FOLDER NAME LINKS SEED [near]
"""

import sys
from pathlib import Path

from mpx_lab.dataset.draws import ALL_PARTS, recipes
from mpx_lab.dataset.recipe import Recipe
from mpx_lab.dataset.run import Bench
from mpx_lab.simulator.machine import check_seen
from mpx_lab.simulator.programs import SimulatedPrograms


class SimulatedBench:
    """Where runs are measured, each on a machine and a core of its own: `stop` ends them all soon."""

    def __init__(self, kernel: Path, links: int, seed: int, near: bool = False) -> None:
        self._programs = SimulatedPrograms(kernel)
        self.stop = self._programs.stop
        self._drawn = (str(links), str(seed), *(["near"] if near else []))

    def measure(self, recipe: Recipe, folder: Path, slot: int) -> None:
        """Measure a run; no other may have the same slot meanwhile.

        Raises Interrupted after `stop`, MpxError or OSError where it failed.
        """
        check_seen(folder)
        self._programs.run(["-m", __name__, str(folder.absolute()), recipe.name, *self._drawn], slot)


def main(folder: str, name: str, links: str, seed: str, *near: str) -> None:
    """Measure the recipe of this name into a folder; exits with a message where there is none."""
    for recipe in recipes(ALL_PARTS, int(links), int(seed), bool(near)):
        if recipe.name == name:
            Bench().measure(recipe, Path(folder), 1)
            return
    sys.exit(f"there is no run '{name}' among {links} links of seed {seed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
