"""Collecting: what is there is known by its recipe, what fails does not end it, an interruption soon does."""

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from mpx_lab.dataset import collect as collecting
from mpx_lab.dataset.collect import collect
from mpx_lab.dataset.draws import recipes
from mpx_lab.dataset.recipe import Recipe, Stretch
from mpx_lab.dataset.store import Dataset, reasons_against, runs_of

from mpx.errors import Interrupted, MpxError, UsageError

SOME = recipes(("links",), 1, 1)[:8]
RECIPE = SOME[0]


def written(recipe: Recipe, folder: Path, *, valid: bool = True) -> None:
    folder.mkdir()
    validity = {"valid": valid, "reasons": [] if valid else ["late: very"]}
    about = {"format": "mpx-lab-run-1", "status": "done", "parameters": recipe.described()}
    (folder / "run.json").write_text(json.dumps({**about, "validity": validity}))


class Tries:
    """Measures as it is told: each try is `True` (counts), `False` (does not), or an error."""

    def __init__(self, *tries: bool | Exception) -> None:
        self.left = list(tries)

    def __call__(self, recipe: Recipe, folder: Path) -> None:
        done = self.left.pop(0)
        if isinstance(done, Exception):
            raise done
        written(recipe, folder, valid=done)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(tmp_path / "data")


def test_what_counts_is_kept_and_is_there(dataset: Dataset) -> None:
    assert not dataset.has(RECIPE)
    assert dataset.measure(RECIPE, Tries(True)) == ""
    assert dataset.has(RECIPE) and [run.folder.name for run in runs_of(dataset.folder)] == [RECIPE.name]


def test_what_does_not_count_or_fails_lies_beside_it_with_its_reason(dataset: Dataset) -> None:
    tries = Tries(False, MpxError("the generator ended"), True)
    assert dataset.measure(RECIPE, tries) == "" and not tries.left
    assert dataset.thrown_out() == 2
    assert reasons_against(dataset.folder) == [
        (RECIPE.name, ["late: very"]),
        (RECIPE.name, ["failed: the generator ended"]),
    ]
    assert len(runs_of(dataset.folder)) == 1


def test_three_tries_and_no_more(dataset: Dataset) -> None:
    tries = Tries(False, False, OSError("no room"), True)
    assert dataset.measure(RECIPE, tries) == "failed: no room" and len(tries.left) == 1
    assert not dataset.has(RECIPE)


def test_an_interrupted_run_leaves_nothing_and_is_told(dataset: Dataset) -> None:
    def interrupted(recipe: Recipe, folder: Path) -> None:
        written(recipe, folder)
        raise Interrupted("ended")

    with pytest.raises(Interrupted):
        dataset.measure(RECIPE, interrupted)
    assert not list(dataset.folder.iterdir())


def test_what_a_kill_left_is_measured_anew(dataset: Dataset) -> None:
    written(RECIPE, dataset.folder / f"{RECIPE.name}.running")
    assert not dataset.has(RECIPE) and dataset.measure(RECIPE, Tries(True)) == ""
    assert [place.name for place in dataset.folder.iterdir()] == [RECIPE.name]


@pytest.mark.parametrize(
    "change",
    [
        {"stretches": (Stretch("passive", 41.0), *RECIPE.stretches[1:])},
        {"stretches": (Stretch("passive", 30.0, ("udp(rate=1Mbit/s)",)), *RECIPE.stretches[1:])},
        {"link": replace(RECIPE.link, queue_bdp=9.0)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_run_of_another_recipe_is_not_taken_for_it_and_is_kept_aside(
    dataset: Dataset, change: dict[str, object]
) -> None:
    dataset.measure(RECIPE, Tries(True))
    changed = replace(RECIPE, **change)
    assert changed.name == RECIPE.name
    assert not dataset.has(changed) and dataset.is_stale(changed) and not dataset.is_stale(RECIPE)
    dataset.measure(changed, Tries(True))
    assert dataset.has(changed) and len(runs_of(dataset.folder)) == 1
    assert (dataset.folder / f"{RECIPE.name}.1.stale").is_dir()


def test_only_one_measures_into_a_folder(dataset: Dataset) -> None:
    with dataset.alone(), pytest.raises(UsageError, match="another process"), Dataset(dataset.folder).alone():
        pass
    with dataset.alone():
        pass


def collected(
    dataset: Dataset, measure: Callable[[Recipe, Path, int], None], at_once: int = 2
) -> tuple[int, list[str]]:
    said: list[str] = []
    return collect(dataset, SOME, at_once, measure, lambda: None, said.append), said


def test_all_are_measured_and_no_two_have_a_slot_at_once(dataset: Dataset) -> None:
    busy: set[int] = set()
    lock = threading.Lock()
    together = threading.Barrier(2)  # both slots are used at the same time

    def measure(recipe: Recipe, folder: Path, slot: int) -> None:
        with lock:
            assert slot in (1, 2) and slot not in busy
            busy.add(slot)
        together.wait(30)
        written(recipe, folder)
        with lock:
            busy.remove(slot)

    failed, said = collected(dataset, measure)
    assert failed == 0 and len(said) == len(SOME) and all(map(dataset.has, SOME))


def test_one_that_always_fails_does_not_end_the_others(dataset: Dataset) -> None:
    def measure(recipe: Recipe, folder: Path, slot: int) -> None:
        if recipe == RECIPE:
            raise MpxError("its stream was lost")
        written(recipe, folder)

    failed, said = collected(dataset, measure)
    assert failed == 1 and sum(map(dataset.has, SOME)) == len(SOME) - 1
    assert sum("its stream was lost" in line for line in said) == 1


def test_where_everything_fails_it_ends(dataset: Dataset) -> None:
    tried: set[str] = set()

    def measure(recipe: Recipe, folder: Path, slot: int) -> None:
        tried.add(recipe.name)
        raise OSError("no such device")

    with pytest.raises(MpxError, match=r"in a row.*no such device"):
        collected(dataset, measure, at_once=1)
    assert len(tried) >= collecting.IN_A_ROW


def test_ctrl_c_ends_what_is_under_way(dataset: Dataset) -> None:
    stopped = threading.Event()
    numbers = itertools.count()

    def measure(recipe: Recipe, folder: Path, slot: int) -> None:
        if next(numbers) == 0:
            written(recipe, folder)
            return
        assert stopped.wait(30)
        raise Interrupted("ended")

    def ctrl_c(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(dataset, SOME, 2, measure, stopped.set, ctrl_c)
    assert len(runs_of(dataset.folder)) == 1
    assert not list(dataset.folder.glob("*.running"))
