"""Measures the runs of a dataset that are not there yet, several links at a time."""

import contextlib
import queue
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpx_lab.dataset.draws import BURSTS, Recipe
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.record import Route, Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.room import Room
from mpx_lab.topology import Link, Topology
from mpx_lab.traffic.background import Background, RttProbe

CAPACITY_BPS = 500_000_000  # of all links that run at once
TRIES = 3


class Dataset:
    """A folder of runs, each named for its recipe; what did not count lies beside it as NAME.N.invalid."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, recipe: Recipe) -> bool:
        """Tell whether it has been measured."""
        return (self.folder / recipe.name).is_dir()

    def thrown_out(self) -> int:
        """Return how many runs did not count."""
        return len(list(self.folder.glob("*.invalid")))

    def measure(self, recipe: Recipe, slot: int) -> bool:
        """Run it until a run counts; False when none of three did."""
        for _ in range(TRIES):
            unfinished = self.folder / f"{recipe.name}.running"
            shutil.rmtree(unfinished, ignore_errors=True)
            _run(recipe, unfinished, slot)
            if RecordedRun.open(unfinished).valid:
                unfinished.rename(self.folder / recipe.name)
                return True
            turn = len(list(self.folder.glob(f"{recipe.name}.*.invalid"))) + 1
            unfinished.rename(self.folder / f"{recipe.name}.{turn}.invalid")
        return False


def collect(dataset: Dataset, recipes: Sequence[Recipe], at_once: int, say: Callable[[str], None]) -> int:
    """Measure what is missing; returns how many recipes had no run that counts."""
    room, failed = Room(CAPACITY_BPS, at_once), 0
    slots: queue.SimpleQueue[int] = queue.SimpleQueue()
    for slot in range(1, at_once + 1):
        slots.put(slot)

    def one(recipe: Recipe) -> bool:
        with room.part(recipe.wan.rate_bps):
            slot = slots.get()
            try:
                return dataset.measure(recipe, slot)
            finally:
                slots.put(slot)

    missing = [recipe for recipe in recipes if not dataset.has(recipe)]
    began_s = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(one, recipe) for recipe in missing]
        try:
            for number, (recipe, done) in enumerate(zip(missing, running, strict=True), 1):
                failed += not done.result()
                left_s = (time.monotonic() - began_s) / number * (len(missing) - number)
                say(f"{number} of {len(missing)}, {left_s / 60:.0f} min left: {recipe.name}")
        finally:
            for each in running:
                each.cancel()
    return failed


def topology_of(recipe: Recipe) -> Topology:
    """Return two hosts and the link between them."""
    wan = recipe.wan
    link = Link(
        "src", "dst", "wan", rate_bps=wan.rate_bps, delay_s=wan.rtt_s / 2, queue_bytes=wan.queue_bytes
    )
    return Topology("dataset", ("src",), ("dst",), (link,))


def _run(recipe: Recipe, folder: Path, slot: int) -> None:
    with Lab.up(topology_of(recipe), f"data-{slot}") as lab:
        source, sink = lab.host("src"), lab.host("dst")
        for host in lab.hosts:
            host.set_route(congestion="cubic")
        run = Run(
            folder,
            "dataset",
            recipe.described(),
            routes=[Route(host.name, None, "cubic") for host in lab.hosts],
        )
        address = sink.addresses[0]
        with run, judged(lab, run), contextlib.ExitStack() as stack:
            for name, every_s, train in (("single", 0.1, 1), ("train", 1.0, 10)):
                stack.enter_context(
                    RttProbe(name, source, sink, address, run.rtt, run.epoch_s, every_s=every_s, train=train)
                )
            begins = sorted(zip(recipe.begins_s(), recipe.streams, strict=True))
            for number, (begin_s, spec) in enumerate(begins, 1):
                _wait(run, begin_s)
                stack.enter_context(
                    Background(spec, f"mix-{number}", source, sink, address, run.flows, run.epoch_s)
                )
            for number, spec in enumerate(recipe.nuisance, 1):
                stack.enter_context(
                    Background(spec, f"nuisance-{number}", source, sink, address, run.flows, run.epoch_s)
                )
            _wait(run, recipe.warm_up_s)
            for number, spec in enumerate(BURSTS if recipe.active else (), 1):
                stack.enter_context(
                    Background(spec, f"burst-{number}", source, sink, address, run.flows, run.epoch_s)
                )
            _wait(run, recipe.warm_up_s + recipe.seconds)


def _wait(run: Run, until_s: float) -> None:
    time.sleep(max(0.0, until_s - run.now_s))
