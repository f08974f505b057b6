"""Measures cells in simulated time, each on a machine and a core of its own.

As a program, inside: python bench/apt/simulated.py STORE CELL
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(BENCH))

from mpx_lab.simulator.machine import check_seen
from mpx_lab.simulator.programs import SimulatedPrograms

from apt.cell import Cell, Link
from apt.code import code
from apt.run_cell import measure
from apt.schedule import run_all
from apt.store import Store
from mpx.errors import MpxError


def measure_all(kernel: Path, cells: Sequence[Cell], store: Store, at_once: int) -> list[RuntimeError]:
    """Measure the cells that the store lacks; returns what went wrong with those that could not be measured.

    It may be interrupted at any time: the machines end, and what was being measured is measured again.
    """
    check_seen(store.folder)
    programs = SimulatedPrograms(kernel)

    def one(cell: Cell, slot: int) -> None:
        words = [__file__, str(store.folder.absolute()), json.dumps(cell.described())]
        try:
            programs.run(words, slot)
        except MpxError as error:
            raise RuntimeError(f"{cell.name}: {error}") from error

    missing = [cell for cell in cells if cell.can_be_simulated and not store.has(cell)]
    return run_all(missing, one, at_once=at_once, capacity_bps=math.inf, stop=programs.stop.set)


def main(folder: str, job: str) -> None:
    """Measure one cell into a store."""
    saved = json.loads(job)
    cell = Cell(**{**saved, "link": Link(**saved["link"])})
    measure(cell, Store(Path(folder), code()), 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
