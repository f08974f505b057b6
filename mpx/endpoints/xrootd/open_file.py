"""An open file of XRootD: reads and writes run beside each other, what comes after them waits for them."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

Start = Callable[[], None]


class OpenFile:
    """For any thread: answers come from threads of the library."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._running = 0
        self._after: deque[Start] = deque()  # of which each runs alone, in their order

    def beside(self, start: Start) -> None:
        """Begin a read or a write; nothing that runs alone was asked for before it."""
        with self._lock:
            self._running += 1
        start()

    def alone(self, start: Start) -> None:
        """Begin something once all that was asked for before is answered."""
        with self._lock:
            if self._running or self._after:
                self._after.append(start)
                return
            self._running = 1
        start()

    def answered(self) -> None:
        """Note that something is answered."""
        with self._lock:
            self._running -= 1
            if self._running or not self._after:
                return
            self._running, start = 1, self._after.popleft()
        start()
