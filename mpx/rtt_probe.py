"""Measures the round-trip time (RTT) while data flows, on a session of its own.

A stock server answers nothing on a channel whose transfer runs, so the session that listed the files
asks once it is idle.
"""

import threading

from mpx.endpoint import Endpoint
from mpx.errors import MpxError

INTERVAL_S = 1.0


class RttProbe(threading.Thread):
    """Asks once a second, as soon as `after` has ended and the session is free."""

    def __init__(self, endpoint: Endpoint, first_s: float | None, after: threading.Thread) -> None:
        super().__init__(name="mpx-rtt", daemon=True)
        self._endpoint = endpoint
        self._latest_s = first_s
        self._after = after
        self._done = threading.Event()

    def latest(self) -> float | None:
        """Return the smoothed RTT in seconds, None where there is none to measure."""
        return self._latest_s

    def run(self) -> None:
        """Measure until told to end, or until the session is lost: then the last value stands."""
        self._after.join()
        while self._latest_s is not None and not self._done.wait(INTERVAL_S):
            try:
                self._latest_s = self._endpoint.measure_rtt()
            except MpxError:
                return

    def end(self) -> None:
        """Stop asking; the session is free afterwards."""
        self._done.set()
        self.join()
