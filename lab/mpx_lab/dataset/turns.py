"""When a run may begin: one after the other, and beside others only where the processors have room for it."""

import contextlib
import threading
from collections.abc import Callable, Iterator

ROOM = 0.65  # of the processors that are busy: with less idle time all runs would be late


class Turns:
    """Lets runs begin; `busy` watches the processors for some seconds and returns their busy share."""

    def __init__(self, busy: Callable[[], float]) -> None:
        self._busy = busy
        self._beginning = threading.Lock()
        self._under_way: set[object] = set()

    @contextlib.contextmanager
    def turn(self) -> Iterator[contextlib.ExitStack]:
        """Wait for a turn, which lasts until the block ends. Raises what `busy` raises.

        A run that would be the only one begins however busy the processors are.
        """
        with contextlib.ExitStack() as beginning:
            beginning.enter_context(self._beginning)
            while self._under_way and self._busy() > ROOM:
                pass
            run = object()
            self._under_way.add(run)
            try:
                yield beginning
            finally:
                self._under_way.discard(run)
