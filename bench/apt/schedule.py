"""Which cells run at the same time: as many as the machine emulates without being late."""

import queue
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from mpx_lab.room import Room

from apt.cell import Cell

# Of all links that run at once: less than the emulator's limit, as the tools need processor time, too.
CAPACITY_BPS = 400_000_000
MOST_AT_ONCE = 4


def run_all(
    cells: Sequence[Cell], run: Callable[[Cell, int], None], *, at_once: int = MOST_AT_ONCE
) -> list[RuntimeError]:
    """Run every cell, the longest first; returns what went wrong with those that could not be measured.

    Any other error is raised once all that had begun have ended.
    `run` is told a slot, 1 to `at_once`, that no other cell has at the same time.
    """
    room = Room(CAPACITY_BPS, at_once)
    slots: queue.SimpleQueue[int] = queue.SimpleQueue()
    for slot in range(1, at_once + 1):
        slots.put(slot)

    def one(cell: Cell) -> None:
        with room.part(cell.link.rate_bps):
            slot = slots.get()
            try:
                sys.stderr.write(f"{cell.name}\n")
                run(cell, slot)
            finally:
                slots.put(slot)

    failed = []
    with ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(one, cell) for cell in sorted(cells, key=lambda cell: -cell.seconds)]
        try:
            for done in running:
                try:
                    done.result()
                except RuntimeError as error:
                    failed.append(error)
        finally:
            for each in running:
                each.cancel()
    return failed
