"""How a copy ends before its end: the first error stops every thread."""

import threading

from mpx.errors import MpxError


class Failure:
    """The first error that ends the whole copy, and the event that tells every thread to stop."""

    def __init__(self, cancel: threading.Event) -> None:
        self.cancel = cancel
        self.error: MpxError | None = None
        self._lock = threading.Lock()

    def set(self, error: MpxError) -> None:
        """Stop everything because of `error`, unless something else did before."""
        with self._lock:
            if self.error is None and not self.cancel.is_set():
                self.error = error
        self.cancel.set()
