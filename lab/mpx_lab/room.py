"""How much of the machine runs at once: links wait until there is room for them."""

import contextlib
import threading
from collections.abc import Iterator


class Room:
    """So many bit/s of all links together, and so many links; who asks for a part waits until it is free."""

    def __init__(self, capacity_bps: int, most: int) -> None:
        self._free_bps = self._capacity_bps = capacity_bps
        self._free = most
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def part(self, rate_bps: int) -> Iterator[None]:
        """Wait for that much, at most all there is, and give it back at the end of the block."""
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
