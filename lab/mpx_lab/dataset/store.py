"""A folder of runs, each named for its recipe. What did not count lies beside it as NAME.N.invalid."""

import contextlib
import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpx.errors import Interrupted, MpxError, UsageError
from mpx_lab.dataset.recipe import Recipe
from mpx_lab.record_reader import RecordedRun

TRIES = 3
NOISE = "noise"  # a folder in that one: noise of hosts, in each file what `mpx probe --json` printed
INVALID, STALE, RUNNING, REASON = "invalid", "stale", "running", "reason.txt"


class Dataset:
    """The runs in a folder, which is made if there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, recipe: Recipe) -> bool:
        """Tell whether it has been measured with its present description."""
        return bool(self._described(recipe) == _as_read(recipe))

    def is_stale(self, recipe: Recipe) -> bool:
        """Tell whether it was measured before its recipe changed."""
        return self._described(recipe) not in (None, _as_read(recipe))

    def thrown_out(self) -> int:
        """Return how many runs did not count."""
        return len(list(self.folder.glob(f"*.{INVALID}")))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder for measuring; raises UsageError where another process has locked it."""
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(
                    f"another process is measuring into {self.folder}; wait until it has ended"
                ) from None
            yield

    def measure(self, recipe: Recipe, run: Callable[[Recipe, Path], None]) -> str:
        """Run it until a run counts; returns an empty text, or why none of three did.

        A failure makes a run that does not count, its reason beside it; only Interrupted is raised.
        """
        unfinished = self.folder / f"{recipe.name}.{RUNNING}"
        why = ""
        for _ in range(TRIES):
            shutil.rmtree(unfinished, ignore_errors=True)
            try:
                run(recipe, unfinished)
                found = RecordedRun.open(unfinished)
                if found.valid:
                    self._keep(recipe, unfinished)
                    return ""
                why = "; ".join(found.about["validity"]["reasons"])
            except Interrupted:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
            except (MpxError, OSError) as error:
                why = f"failed: {error}"
                unfinished.mkdir(exist_ok=True)
                (unfinished / REASON).write_text(f"{why}\n")
            unfinished.rename(self._beside(recipe, INVALID))
        return why

    def _keep(self, recipe: Recipe, unfinished: Path) -> None:
        place = self.folder / recipe.name
        if place.exists():
            place.rename(self._beside(recipe, STALE))
        unfinished.rename(place)

    def _beside(self, recipe: Recipe, kind: str) -> Path:
        turn = 1 + len(list(self.folder.glob(f"{recipe.name}.*.{kind}")))
        return self.folder / f"{recipe.name}.{turn}.{kind}"

    def _described(self, recipe: Recipe) -> Any:
        """Return how the run under its name was described, None where there is none."""
        folder = self.folder / recipe.name
        return RecordedRun.open(folder).about["parameters"] if folder.is_dir() else None


def _as_read(recipe: Recipe) -> Any:
    """Return its description as it is when it has been written and read."""
    return json.loads(json.dumps(recipe.described()))


def runs_of(folder: Path) -> list[RecordedRun]:
    """Return the runs of a dataset that count, by name."""
    places = sorted(file.parent for file in folder.glob("*/run.json") if "." not in file.parent.name)
    return [run for run in map(RecordedRun.open, places) if run.valid]


def noise_files(folder: Path) -> list[Path]:
    """Return the files of a dataset that hold the noise of hosts, by name."""
    return sorted((folder / NOISE).glob("*.json"))


def reasons_against(folder: Path) -> list[tuple[str, list[str]]]:
    """Return the recipe's name of each run that did not count, and the reasons."""
    found = []
    for place in sorted(folder.glob(f"*.{INVALID}")):
        if (place / REASON).exists():
            reasons = [(place / REASON).read_text().strip()]
        else:
            reasons = RecordedRun.open(place).about["validity"]["reasons"]
        found.append((place.name.split(".")[0], reasons))
    return found
