"""Measures the round-trip time of one path of a set, on a session of its own whose port takes that path.

It also tells whether the path is there: where nothing is answered the session is opened anew, again and
again, as one that waits for a timeout of TCP would notice late that the path is back.
"""

import threading
import time
from collections.abc import Callable

from mpx.engine.endpoint import Endpoint, Rtt
from mpx.errors import MpxError

INTERVAL_S = 1.0
MOST_REFUSALS = 3  # in a row, none of them for want of an answer: the server lets no further session in


class PathProber(threading.Thread):
    """Asks once a second, and whenever it is told to, until it is told to end.

    `open_session`: with short timeouts; what it is given is told the port before it connects. `steer` has
    a port take the path, `ended` lets it go. It begins when `may_begin`: a server may let few sessions in.
    """

    def __init__(
        self,
        path: str,
        open_session: Callable[[Callable[[int], None]], Endpoint],
        *,
        steer: Callable[[int], None],
        ended: Callable[[int], None],
        may_begin: threading.Event,
    ) -> None:
        super().__init__(name=f"mpx-path-{path}", daemon=True)
        self.latest: Rtt | None = None
        self.answered_at_s = 0.0
        self.asked_at_s: float | None = None  # the question that has no answer yet, of an open session
        self._open_session = open_session
        self._steer, self._ended = steer, ended
        self._may_begin = may_begin
        self._ports: list[int] = []
        self._done = threading.Event()
        self._wake = threading.Event()

    def run(self) -> None:
        """Measure."""
        while not self._may_begin.wait(INTERVAL_S):
            if self._done.is_set():
                return
        refusals = 0
        while not self._done.is_set() and refusals < MOST_REFUSALS:
            endpoint = self._open_session(self._bound)
            is_open = False  # to open it takes more than an answer
            try:
                while True:
                    self._wake.clear()
                    if self._done.is_set():
                        break
                    self.asked_at_s = time.monotonic() if is_open else None
                    self.latest = endpoint.measure_rtt()
                    self.answered_at_s, self.asked_at_s = time.monotonic(), None
                    refusals, is_open = 0, True
                    self._wake.wait(INTERVAL_S)
            except MpxError as error:
                self.asked_at_s = None
                refusals = 0 if error.may_retry else refusals + 1
                self._done.wait(INTERVAL_S)
            finally:
                endpoint.close()
                while self._ports:
                    self._ended(self._ports.pop())

    def _bound(self, port: int) -> None:
        self._ports.append(port)
        self._steer(port)

    def ask(self) -> None:
        """Ask at once, unless an answer is waited for."""
        if self.asked_at_s is None:
            self._wake.set()

    def end(self) -> None:
        """Stop; the session is closed when this returns, or soon after."""
        self._done.set()
        self._wake.set()
