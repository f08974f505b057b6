"""Which cells run at the same time: as many as the machine emulates without being late."""

import queue
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from apt.cell import Cell

CAPACITY_BPS = (
    400_000_000  # of all links that run at once: less than what is valid, for the tools need a part
)
MOST_AT_ONCE = 4


class Room:
    """What is left of the machine; whoever asks for a part waits until it is free."""

    def __init__(self, capacity_bps: int = CAPACITY_BPS, most: int = MOST_AT_ONCE) -> None:
        self._free_bps = self._capacity_bps = capacity_bps
        self._free = most
        self._changed = threading.Condition()

    def take(self, rate_bps: int) -> int:
        """Wait for so much and return what was taken: at most all there is."""
        part = min(rate_bps, self._capacity_bps)
        with self._changed:
            self._changed.wait_for(lambda: self._free and self._free_bps >= part)
            self._free -= 1
            self._free_bps -= part
        return part

    def give(self, part_bps: int) -> None:
        """Give a part back."""
        with self._changed:
            self._free += 1
            self._free_bps += part_bps
            self._changed.notify_all()


def run_all(
    cells: Sequence[Cell], run: Callable[[Cell, int], None], *, at_once: int = MOST_AT_ONCE
) -> list[RuntimeError]:
    """Run every cell, the longest first; returns what went wrong with those that could not be measured.

    Any other error is raised once all that had begun have ended.
    `run` is told a slot, 1 to `at_once`, that no other cell has at the same time.
    """
    room = Room(most=at_once)
    slots: queue.SimpleQueue[int] = queue.SimpleQueue()
    for slot in range(1, at_once + 1):
        slots.put(slot)

    def one(cell: Cell) -> None:
        part, slot = room.take(cell.link.rate_bps), slots.get()
        try:
            sys.stderr.write(f"{cell.name}\n")
            run(cell, slot)
        finally:
            slots.put(slot)
            room.give(part)

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
