"""Measures the round-trip time (RTT) while data flows, on a session that is idle otherwise.

A stock server answers nothing on a channel whose transfer runs, so none of those that move data can tell.
The session that lists the files can once it has done so; while that goes on, one is opened for the purpose.
"""

import threading
import time
from collections.abc import Callable

from mpx.engine.endpoint import Endpoint, Rtt
from mpx.errors import MpxError

INTERVAL_S = 1.0
TICK_S = 0.1  # the session is let go so soon when others need it


class RttProber(threading.Thread):
    """Asks once a second: on `endpoint` when `listing` has ended, before that on one of its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        first: Rtt | None,
        *,
        listing: threading.Thread,
        open_another: Callable[[], Endpoint],
        is_needed: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_needed` tells whether sessions are scarce: then none is used for this."""
        super().__init__(name="mpx-rtt", daemon=True)
        self._endpoint = endpoint
        self._latest = first
        self._listing = listing
        self._open_another = open_another
        self._is_needed = is_needed
        self._done = threading.Event()

    def latest(self) -> Rtt | None:
        """Return what was measured last, None where there is nothing to measure."""
        return self._latest

    def run(self) -> None:
        """Measure until told to end, or until the session is lost: then the last value stands."""
        if self._latest is None:
            return
        self._listing.join(INTERVAL_S)
        if self._listing.is_alive() and not self._is_needed():
            own = self._open_another()
            self._ask(own)
            own.close()
        self._listing.join()
        self._ask(self._endpoint)

    def _ask(self, endpoint: Endpoint) -> None:
        due_s = time.monotonic() + INTERVAL_S
        while not self._done.wait(TICK_S):
            if self._is_needed():
                endpoint.let_go()
                return
            endpoint.pause()
            if time.monotonic() < due_s:
                continue
            try:
                self._latest = endpoint.measure_rtt()
            except MpxError:
                endpoint.close()
                return
            due_s = time.monotonic() + INTERVAL_S

    def end(self) -> None:
        """Stop asking; the session is free afterwards."""
        self._done.set()
        self.join()
