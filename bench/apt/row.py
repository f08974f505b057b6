"""The rows of the reproduction of APT: cells that are measured, a table, a figure.

In simulated time (`--simulated`, or `mpx lab simulate python bench/...`) cells with UDT are left out; without
it the same measures them.
"""

import argparse
import sys
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import harness
from figures import Spread, machine
from mpx_lab.simulated import is_simulated
from mpx_lab.simulator.kernel import built_kernel

from apt.cell import Cell, Link
from apt.code import UNKNOWN, code, described
from apt.measure import interval
from apt.run_cell import measure
from apt.schedule import run_all
from apt.simulated import measure_all
from apt.store import FAILED, INVALID, Result, Store
from mpx.errors import UsageError

Results = Mapping[tuple[Link, str], Sequence[Result]]  # the repetitions of a tool on a link
Read = Mapping[tuple[Link, str], Sequence[Any]]  # what a row has read of them


class ToolRow(harness.CellRow[Results]):
    """One experiment: several tools on several links, repeated."""

    folder = "reports/apt"

    @abstractmethod
    def cells(self, effort: str) -> Sequence[Cell]:
        """Return what is to be measured, quick or full."""

    @abstractmethod
    def read(self, run: Result) -> Any:
        """Return what is judged of a run, in plain values."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add how many links run at the same time, and whose runs count."""
        super().arguments(parser)
        parser.add_argument("--at-once", type=int, default=2, help="at most so many links at a time")
        parser.add_argument(
            "--simulated", action="store_true", help="in simulated time, each cell on a machine of its own"
        )
        parser.add_argument(
            "--any-code", action="store_true", help="also use cells that another version of the code measured"
        )

    def results(self, options: argparse.Namespace) -> Results:
        """Measure missing cells, print the table and the quality of the runs."""
        store = Store(options.data / self.name, None if options.any_code else code())
        cells = self.cells(options.effort)
        missing = [] if options.measure_nothing else [cell for cell in cells if not store.has(cell)]
        if options.simulated or is_simulated():
            missing = [cell for cell in missing if cell.can_be_simulated]
        print(machine(", ".join(sorted({cell.link.congestion for cell in cells}))))
        if missing:
            with harness.measuring(len(missing), len(cells)):
                for failed in self._measure(missing, store, options):
                    sys.stderr.write(f"{failed}\n")
        results = gather(store, cells)
        if not results:
            raise UsageError(f"no run of this row is stored in {store.folder}")
        print("\n".join(self.table(results)))
        print(account(store, cells, results))
        if absent := [cell.name for cell in cells if not store.has(cell)]:
            raise UsageError(
                f"no verdicts: {len(absent)} of {len(cells)} cells are missing, the first {absent[0]}"
            )
        return results

    @staticmethod
    def _measure(missing: Sequence[Cell], store: Store, options: argparse.Namespace) -> list[RuntimeError]:
        if options.simulated:
            say = partial(print, file=sys.stderr)
            return measure_all(built_kernel(say), missing, store, options.at_once)
        return run_all(missing, lambda cell, slot: measure(cell, store, slot), at_once=options.at_once)

    def measured(self, results: Results) -> dict[str, Any]:
        """Return what is judged of all runs, as JSON holds it."""
        return {
            f"{tool}, {link.name}": {"link": asdict(link), "tool": tool, "runs": list(map(self.read, runs))}
            for (link, tool), runs in results.items()
        }


def repeated(cells: Callable[[int], Sequence[Cell]], repetitions: int) -> list[Cell]:
    """Return the cells of each repetition, 1 to so many."""
    return [cell for repetition in range(1, repetitions + 1) for cell in cells(repetition)]


def gather(store: Store, cells: Sequence[Cell]) -> Results:
    """Return what is stored of the cells."""
    found: dict[tuple[Link, str], list[Result]] = defaultdict(list)
    for cell in cells:
        if store.has(cell):
            found[cell.link, cell.tool].append(store.load(cell))
    return found


def bps_of(values: Sequence[float]) -> str:
    """Return rates in Mbit/s: the median with smallest and largest, then the mean with its 95 % interval."""
    mean, half = interval([value / 1e6 for value in values])
    return f"{Spread(values).times(1e-6):.1f}, {mean:.1f} ± {half:.1f}"


def by_link_and_tool(stored: Mapping[str, Any]) -> Read:
    """Return what `Row.measured` returned, by link and tool; missing fields of a link have their defaults."""
    return {(Link(**each["link"]), each["tool"]): each["runs"] for each in stored.values()}


def account(store: Store, cells: Sequence[Cell], results: Results) -> str:
    """Return the quality of the runs: lateness, load, how many did not count, and the version of the code."""
    runs = [run for found in results.values() for run in found]
    measures = [run.about["validity"]["measures"] for run in runs]
    late_ms = max(link["late_p99_s"] for each in measures for link in each["links"]) * 1e3
    busy = max(each["cpu_busy"] for each in measures)
    invalid, failed = (sum(store.thrown_out(cell, kind) for cell in cells) for kind in (INVALID, FAILED))
    codes = [
        (tool, run.about["versions"].get("code", UNKNOWN))
        for (_, tool), each in results.items()
        for run in each
    ]
    return (
        f"{len(runs)} runs, {invalid} more were not valid and {failed} failed; 99 % of the frames at most "
        f"{late_ms:.2f} ms late in any, processors at most {busy:.0%} busy; {described(codes)}"
    )
