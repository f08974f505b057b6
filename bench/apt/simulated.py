"""Measures cells on simulated machines, one machine for each, so that they do not share a core.

As a program, inside: python bench/apt/simulated.py STORE CELL
"""

import io
import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

BENCH = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(BENCH))

from mpx_lab.simulator.machine import run_simulated

from apt.cell import Cell, Link
from apt.code import code
from apt.run_cell import measure
from apt.store import Store

CORES = 2


def measure_all(kernel: Path, cells: Iterable[Cell], store: Store) -> list[str]:
    """Measure cells, two at a time; returns what went wrong with those that could not be measured."""
    free: SimpleQueue[int] = SimpleQueue()
    for core in range(CORES):
        free.put(core)

    def one(cell: Cell) -> str:
        job, errors, core = json.dumps(cell.described()), io.BytesIO(), free.get()
        words = [sys.executable, __file__, str(store.folder.absolute()), job]
        try:
            returned = run_simulated(kernel, words, os.environ, folder=Path("/"), core=core, errors=errors)
        finally:
            free.put(core)
        said = errors.getvalue().decode(errors="replace").strip().splitlines()[-1:] or ["nothing"]
        return f"{cell.name}: exit code {returned}, {said[0]}" if returned else ""

    with ThreadPoolExecutor(CORES) as pool:
        return [why for why in pool.map(one, cells) if why]


def main(folder: str, job: str) -> None:
    """Measure one cell into a store."""
    saved = json.loads(job)
    cell = Cell(**{**saved, "link": Link(**saved["link"])})
    measure(cell, Store(Path(folder), code()), 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
