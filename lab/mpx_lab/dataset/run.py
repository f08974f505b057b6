"""Measures one run of a dataset in a lab of its own."""

import contextlib
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import mpx_lab
from mpx.errors import Interrupted
from mpx_lab.cpu import busy_over
from mpx_lab.dataset.generators import Generator, generators
from mpx_lab.dataset.labels import wrong_with
from mpx_lab.dataset.recipe import Recipe
from mpx_lab.dataset.turns import Turns
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.record import Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.topology import Link, Topology
from mpx_lab.traffic.background import Background, RttProbe
from mpx_lab.validity import Punctual

# How often a link polls its frames: what that adds to a round trip is less than what training adds to each
# probe on purpose, and more links fit on the machine. For the same reason runs may be later than others:
# a virtual machine stands still for 2 % of the time now and then, whatever runs in it, so that tells nothing.
# Nor do busy processors, as long as the links are in time and the label is true (labels.py).
PAUSE_S = 0.0004
PUNCTUAL = Punctual(
    late_p99_s=0.003, very_late_share=0.03, pickup_p99_s=0.002, given_up_share=0.1, busy_share=0.8
)
LOOK_S = 5.0  # for which processors are watched before another run begins
APART_S = 12.0  # between the beginnings of two runs: twenty processes start, and what they load takes a core
AHEAD_S = 30.0  # processes are started so long before they are needed, one after the other on busy processors


class Bench:
    """Where runs are measured: `stop` ends them all soon, and only one begins at a time.

    Labs that start together would disturb one another and the runs under way.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._turns = Turns(lambda: busy_over(LOOK_S, self._pass))

    def measure(self, recipe: Recipe, folder: Path, slot: int) -> None:
        """Measure a run; no other may have the same slot meanwhile.

        Raises Interrupted after `stop`, MpxError or OSError where a part of it failed.
        """
        with self._turns.turn() as building, self._lab(recipe, slot) as lab:
            code = {"mpx_lab": code_sum()}
            with Run(folder, "dataset", recipe.described(), routes=lab.routes(), versions=code) as run:
                with judged(lab, run, PUNCTUAL), contextlib.ExitStack() as stack:
                    self._go_through(recipe, lab, run, stack, building)
                assert run.validity is not None  # `judged` has just judged it
                wrong = tuple(wrong_with(recipe, RecordedRun.open(folder)))
                reasons = run.validity.reasons + wrong
                run.validity = replace(run.validity, valid=not reasons, reasons=reasons)

    def _lab(self, recipe: Recipe, slot: int) -> Lab:
        self._check()
        return Lab.up(topology_of(recipe), f"data-{slot}")

    def _go_through(
        self, recipe: Recipe, lab: Lab, run: Run, stack: contextlib.ExitStack, building: contextlib.ExitStack
    ) -> None:
        source, sink = lab.host("src"), lab.host("dst")
        address = sink.addresses[0]
        started: dict[str, Background] = {}
        stops: list[
            Future[None]
        ] = []  # a starved copy takes seconds to end, which must not delay the next series

        def start(each: Generator) -> None:
            made = Background(
                each.spec, each.name, source, sink, address, run.flows, run.epoch_s, from_s=each.from_s
            )
            started[each.name] = stack.enter_context(made)

        def stop(each: Generator) -> None:
            stops.append(stopping.submit(started[each.name].stop))

        planned = list(generators(recipe))
        todo: list[tuple[float, Callable[[], None]]] = [(APART_S, building.close)]
        todo += [(each.from_s - AHEAD_S, partial(start, each)) for each in planned]
        todo += [(each.until_s, partial(stop, each)) for each in planned if each.until_s < recipe.ends_s]
        todo.sort(key=lambda step: step[0])
        while todo[0][0] <= 0:  # the mix, and copies that are there before it
            _, act = todo.pop(0)
            act()
        for name, every_s, train in (("single", 0.1, 1), ("train", 1.0, 10)):
            stack.enter_context(
                RttProbe(name, source, sink, address, run.rtt, run.epoch_s, every_s=every_s, train=train)
            )
        with ThreadPoolExecutor() as stopping:
            for at_s, act in todo:
                self._wait(run, at_s)
                act()
            self._wait(run, recipe.ends_s)
        for stopped in stops:
            stopped.result()

    def _wait(self, run: Run, until_s: float) -> None:
        self._pass(max(0.0, until_s - run.now_s))

    def _pass(self, seconds: float) -> None:
        self.stop.wait(seconds)
        self._check()

    def _check(self) -> None:
        if self.stop.is_set():
            raise Interrupted("the collection was ended; what was being measured is measured again")


@cache
def code_sum() -> str:
    """Return the first figures of a SHA-256 sum of the lab's code; run.json has it among its versions."""
    package = Path(mpx_lab.__file__).parent
    files = sorted(file for file in package.rglob("*") if file.suffix in (".py", ".c", ".h"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def topology_of(recipe: Recipe) -> Topology:
    """Return two hosts and the link between them."""
    wan = recipe.link
    link = Link(
        "src",
        "dst",
        "wan",
        rate_bps=wan.rate_bps,
        delay_s=wan.rtt_s / 2,
        queue_bytes=wan.queue_bytes,
        pause_s=PAUSE_S,
    )
    return Topology("dataset", ("src",), ("dst",), (link,))
