"""How many links run at the same time: each waits until the machine has capacity for it."""

import contextlib
import threading
from collections.abc import Iterator


class Room:
    """A capacity in bit/s of all links together and in links; `part` waits for a share of it."""

    def __init__(self, capacity_bps: int, most: int) -> None:
        self._free_bps = self._capacity_bps = capacity_bps
        self._free = most
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def part(self, rate_bps: int) -> Iterator[None]:
        """Reserve a rate (at most the whole capacity) and a place; waits until both are free."""
        taken_bps = min(rate_bps, self._capacity_bps)
        with self._changed:
            self._changed.wait_for(lambda: self._free and self._free_bps >= taken_bps)
            self._free -= 1
            self._free_bps -= taken_bps
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._free_bps += taken_bps
                self._changed.notify_all()
