"""Measures a run of a dataset on a simulated machine: nothing there is ever late, so every run counts.

As a program, inside: python -m mpx_lab.dataset.simulated FOLDER NAME LINKS SEED
"""

import io
import os
import sys
import threading
from pathlib import Path

from mpx.errors import Interrupted, MpxError
from mpx_lab.dataset.draws import PARTS, recipes
from mpx_lab.dataset.recipe import Recipe
from mpx_lab.dataset.run import Bench
from mpx_lab.simulator.machine import check_seen, run_simulated


class SimulatedBench:
    """Where runs are measured, each on a machine and a core of its own: `stop` ends them all soon."""

    def __init__(self, kernel: Path, links: int, seed: int) -> None:
        self.stop = threading.Event()
        self._kernel = kernel
        self._drawn = (str(links), str(seed))

    def measure(self, recipe: Recipe, folder: Path, slot: int) -> None:
        """Measure a run; no other may have the same slot meanwhile.

        Raises Interrupted after `stop`, MpxError or OSError where it failed.
        """
        check_seen(folder)
        command = [sys.executable, "-m", __name__, str(folder.absolute()), recipe.name, *self._drawn]
        errors = io.BytesIO()
        code = run_simulated(
            self._kernel,
            command,
            os.environ,
            folder=Path("/"),
            core=slot - 1,
            errors=errors,
            check=self._check,
        )
        if code:
            last = errors.getvalue().decode(errors="replace").strip().splitlines()[-1:] or ["nothing"]
            raise MpxError(f"the simulated measurement failed with exit code {code}: {last[0]}")

    def _check(self) -> None:
        if self.stop.is_set():
            raise Interrupted("the collection was ended; what was being measured is measured again")


def main(folder: str, name: str, links: str, seed: str) -> None:
    """Measure the recipe of this name into a folder; exits with a message where there is none."""
    for recipe in recipes(PARTS, int(links), int(seed)):
        if recipe.name == name:
            Bench().measure(recipe, Path(folder), 1)
            return
    sys.exit(f"there is no run '{name}' among {links} links of seed {seed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
