"""What every row of the thesis is: its cells, a table, a figure."""

import argparse
import shutil
import tempfile
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import harness
from figures import machine
from many_paths import ManyPaths, many_paths
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.record import Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.topology import Topology

from huang.cell import CopyCell
from huang.copies import Copy, copy, teach
from mpx.errors import UsageError


@dataclass(frozen=True)
class CopyResult:
    """What a run of a cell gave, and why it does not count, if so."""

    cell: CopyCell
    copy: Copy
    reasons: Sequence[str]


Results = Mapping[CopyCell, Sequence[CopyResult]]  # by the cell with repetition 1


class CopyRow(harness.CellRow[Results]):
    """One experiment: copies of one file with different numbers of paths and streams, repeated."""

    folder = "reports/huang"
    sizes_bytes: Mapping[str, int]  # of the file, quick and full
    topologies: Sequence[Topology]  # that cells name

    @abstractmethod
    def cells(self, effort: str, size_bytes: int) -> Sequence[CopyCell]:
        """Return what is to be measured, quick or full."""

    @abstractmethod
    def read(self, result: CopyResult) -> Any:
        """Return what is judged of a run, in plain values."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the size of the file, the scale of the lab, and the number of tries."""
        super().arguments(parser)
        parser.add_argument("--size", type=int, metavar="MB", help="of the file (default: what the row says)")
        parser.add_argument("--scale", type=float, default=1.0, help="factor of all rates, for slow machines")
        parser.add_argument("--tries", type=int, default=3, help="until a run is valid")

    def results(self, options: argparse.Namespace) -> Results:
        """Measure what is missing, print the table and which runs are not valid."""
        folder = options.data / self.name
        folder.mkdir(parents=True, exist_ok=True)
        size_bytes = options.size * 1_000_000 if options.size else self.sizes_bytes[options.effort]
        cells = [scaled(cell, options.scale) for cell in self.cells(options.effort, size_bytes)]
        missing = [] if options.measure_nothing else [cell for cell in cells if not _is_valid(folder, cell)]
        print(machine("cubic"))
        if missing:
            with harness.measuring(len(missing), len(cells)):
                groups = defaultdict(list)
                for cell in missing:
                    groups[cell.group].append(cell)
                for group in groups.values():
                    _measure(self, group, folder, options.tries)
        if absent := [cell.name for cell in cells if not _has(folder, cell)]:
            raise UsageError(f"{len(absent)} of {len(cells)} cells are missing, the first {absent[0]}")
        found: dict[CopyCell, list[CopyResult]] = defaultdict(list)
        for cell in cells:
            found[replace(cell, repetition=1)].append(_load(folder, cell))
        print("\n".join(self.table(found)))
        invalid = _invalid(found)
        print(f"{len(cells)} runs, {len(invalid)} of them not valid")
        for each in invalid:
            print(f"not valid / {each.cell.name} / {'; '.join(each.reasons)}")
        return found

    def measured(self, results: Results) -> dict[str, Any]:
        """Return what is judged of each cell; raises UsageError where a run is not valid."""
        if _invalid(results):
            raise UsageError(
                "no verdicts: runs that are not valid are among these; run it again to repeat them"
            )
        return {
            cell.name: {"cell": cell.described(), "runs": list(map(self.read, runs))}
            for cell, runs in results.items()
        }


def by_cell(stored: Mapping[str, Any]) -> dict[CopyCell, list[Any]]:
    """Return what was read of the runs of each cell; missing fields of a cell have their defaults."""
    return {CopyCell(**each["cell"]): each["runs"] for each in stored.values()}


def repeated(cells: Sequence[CopyCell], repetitions: int) -> list[CopyCell]:
    """Return the cells so many times, each time all of them."""
    return [replace(cell, repetition=n) for n in range(1, repetitions + 1) for cell in cells]


def scaled(cell: CopyCell, scale: float) -> CopyCell:
    """Return a cell with all rates times `scale`; so are windows, and numbers of streams stay."""
    window = cell.window_bytes and round(cell.window_bytes * scale)
    return replace(cell, scale=scale, a=cell.a / scale, window_bytes=window)


def _invalid(results: Results) -> list[CopyResult]:
    return [each for runs in results.values() for each in runs if each.reasons]


def _measure(row: CopyRow, cells: Sequence[CopyCell], folder: Path, tries: int) -> None:
    """Measure cells that share a lab; what an interrupted run has left in the same place is removed."""
    first = cells[0]
    named = next(each for each in row.topologies if each.name == first.topology)
    topology = named.scaled(first.scale)
    with tempfile.TemporaryDirectory() as made:
        if first.paths == 0:
            with Lab.up(topology, row.name) as lab:
                _measure_in(lab, cells, folder, tries)
            return
        config = {"path_sets": f'selection = "{first.selection}"'}
        with many_paths(topology, row.name, Path(made), config) as site:
            if first.a:
                print(f"{topology.name}: streams predicted with a = {first.a:g}: {teach(site, first.a)}")
            _measure_in(site, cells, folder, tries)


def _measure_in(site: ManyPaths | Lab, cells: Sequence[CopyCell], folder: Path, tries: int) -> None:
    lab = site if isinstance(site, Lab) else site.lab
    for host in lab.hosts:
        host.set_route(congestion="cubic", window_bytes=cells[0].window_bytes)
    for cell in cells:
        for _ in range(tries):
            kept = folder / cell.name
            shutil.rmtree(kept, ignore_errors=True)
            run = Run(kept, cell.name, cell.described(), routes=lab.routes(), scale=cell.scale)
            with run, judged(lab, run):
                seen = copy(site, cell.streams, cell.size_bytes, cell.paths, in_turn=cell.in_turn)
            seen.save(kept / "copy.json")
            if run.validity is not None and run.validity.valid:
                break
        print(f"{cell.name}: {seen.seconds:.1f} s", flush=True)


def _has(folder: Path, cell: CopyCell) -> bool:
    return (folder / cell.name / "copy.json").exists()


def _is_valid(folder: Path, cell: CopyCell) -> bool:
    return _has(folder, cell) and not _load(folder, cell).reasons


def _load(folder: Path, cell: CopyCell) -> CopyResult:
    run = RecordedRun.open(folder / cell.name)
    validity = run.about["validity"] or {"reasons": ["the run was not judged"]}
    return CopyResult(cell, Copy.load(folder / cell.name / "copy.json"), validity["reasons"])
