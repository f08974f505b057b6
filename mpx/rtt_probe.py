"""Measures the round-trip time (RTT) while data flows, on a session that is idle otherwise.

A stock server answers nothing on a channel whose transfer runs, so none of those that move data can tell.
The session that lists the files can once it has done so; while that goes on, one is opened for the purpose.
"""

import threading
from collections.abc import Callable

from mpx.endpoint import Endpoint, Rtt
from mpx.errors import MpxError

INTERVAL_S = 1.0


class RttProbe(threading.Thread):
    """Asks once a second: on `endpoint` when `listing` has ended, before that on one of its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        first: Rtt | None,
        *,
        listing: threading.Thread,
        open_another: Callable[[], Endpoint],
    ) -> None:
        super().__init__(name="mpx-rtt", daemon=True)
        self._endpoint = endpoint
        self._latest = first
        self._listing = listing
        self._open_another = open_another
        self._done = threading.Event()

    def latest(self) -> Rtt | None:
        """Return what was measured last, None where there is nothing to measure."""
        return self._latest

    def run(self) -> None:
        """Measure until told to end, or until the session is lost: then the last value stands."""
        if self._latest is None:
            return
        self._listing.join(INTERVAL_S)
        if self._listing.is_alive():
            own = self._open_another()
            self._ask(own)
            own.close()
            self._listing.join()  # it let no other session in, or lost it
        self._ask(self._endpoint)

    def _ask(self, endpoint: Endpoint) -> None:
        while not self._done.wait(INTERVAL_S):
            try:
                self._latest = endpoint.measure_rtt()
            except MpxError:
                return

    def end(self) -> None:
        """Stop asking; the session is free afterwards."""
        self._done.set()
        self.join()
