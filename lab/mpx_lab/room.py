"""How many links run at the same time: each waits until the machine has capacity for it."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Room:
    """A capacity in bit/s of all links together and in links; `part` waits for a share of it."""

    def __init__(self, capacity_bps: float, most: int) -> None:
        self._free_bps = self._capacity_bps = capacity_bps
        self._slots = list(range(most, 0, -1))
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def part(self, rate_bps: float) -> Iterator[int]:
        """Reserve a rate (at most the whole capacity) and a slot, from 1; waits until both are free."""
        taken_bps = min(rate_bps, self._capacity_bps)
        with self._changed:
            self._changed.wait_for(lambda: self._slots and self._free_bps >= taken_bps)
            slot = self._slots.pop()
            self._free_bps -= taken_bps
        try:
            yield slot
        finally:
            with self._changed:
                self._slots.append(slot)
                self._free_bps += taken_bps
                self._changed.notify_all()


@contextlib.contextmanager
def under_way(
    jobs: Sequence[Job], run: Callable[[Job], Result], threads: int, stop: Callable[[], None]
) -> Iterator[dict[Future[Result], Job]]:
    """Begin jobs in their order in so many threads, and yield what will become of each.

    At the end, also where the block is interrupted, those that have not begun never do, and `stop` is to make
    those that have begun end soon.
    """
    with ThreadPoolExecutor(threads) as pool:
        running = {pool.submit(run, job): job for job in jobs}
        try:
            yield running
        finally:
            for each in running:
                each.cancel()
            stop()
