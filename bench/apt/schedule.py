"""Which cells run at the same time: as many as the machine emulates without being late."""

import sys
from collections.abc import Callable, Sequence

from mpx_lab.room import Room, under_way

from apt.cell import Cell

# Of all links that run at once: less than the emulator's limit, as the tools need processor time, too.
CAPACITY_BPS = 400_000_000
MOST_AT_ONCE = 4


def run_all(
    cells: Sequence[Cell],
    run: Callable[[Cell, int], None],
    *,
    at_once: int = MOST_AT_ONCE,
    capacity_bps: float = CAPACITY_BPS,
    stop: Callable[[], None] = lambda: None,
) -> list[RuntimeError]:
    """Run every cell, the longest first; returns what went wrong with those that could not be measured.

    Any other error is raised once all that had begun have ended, which `stop` makes them do.
    `run` is told a slot, 1 to `at_once`, that no other cell has at the same time.
    """
    room = Room(capacity_bps, at_once)

    def one(cell: Cell) -> None:
        with room.part(cell.link.rate_bps) as slot:
            sys.stderr.write(f"{cell.name}\n")
            run(cell, slot)

    failed = []
    longest_first = sorted(cells, key=lambda cell: -cell.seconds)
    with under_way(longest_first, one, at_once, stop) as running:
        for done in running:
            try:
                done.result()
            except RuntimeError as error:
                failed.append(error)
    return failed
