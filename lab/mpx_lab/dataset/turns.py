"""When a run may begin: one after the other, and beside others only where the processors have room for it."""

import contextlib
import threading
from collections.abc import Callable, Iterator

ROOM = 0.65  # busier processors have none: where a further link begins all the same, all runs come to nothing


class Turns:
    """Lets runs begin; `busy` looks at the processors for some seconds, and returns their busy share."""

    def __init__(self, busy: Callable[[], float]) -> None:
        self._busy = busy
        self._beginning = threading.Lock()
        self._under_way: set[object] = set()

    @contextlib.contextmanager
    def turn(self) -> Iterator[contextlib.ExitStack]:
        """Wait for a turn; no other has one until what is yielded is closed. Raises what `busy` raises.

        The first that is under way has room whatever else keeps the processors busy.
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
