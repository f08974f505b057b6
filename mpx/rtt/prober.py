"""Measures the round-trip time (RTT) of one path, once a second, on a session that moves no data.

A stock server answers nothing on a control channel whose transfer runs, so sessions that move data cannot be
used. The caller provides others: a path of a path set has a session of its own, whose port takes that path;
the default path uses the session that lists files (`beside_listing`).
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from mpx.engine.endpoint import Endpoint, Rtt
from mpx.errors import MpxError

INTERVAL_S = 1.0
TICK_S = 0.1  # how soon a session is released when others need it
MOST_REFUSALS = 3  # in a row, none of them a timeout or a lost connection: the server has no session for us


@dataclass(frozen=True, slots=True)
class Measured:
    """What a prober knows. Times are of the monotonic clock, in seconds."""

    rtt: Rtt | None  # the last one
    answered_at_s: float = 0.0
    asked_at_s: float | None = None  # when the probe without a reply was sent, on an open session; None: none


class Prober(threading.Thread):
    """Probes one path until `end` is called, or until there is no session left for it; the last value stands.

    `sessions` yields them one after the other, each as a context manager that closes it; when one is lost or
    released, the next is used a second later. `first`: what has been measured before, so that the first probe
    is sent after a second. No session is used before `may_begin` is set, nor while `is_needed` returns True
    (others wait for one).
    """

    def __init__(
        self,
        name: str,
        sessions: Iterable[AbstractContextManager[Endpoint]],
        *,
        first: Rtt | None = None,
        may_begin: threading.Event | None = None,
        is_needed: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(name=name, daemon=True)
        # Written by this thread, read by others without a lock: one reference, replaced as a whole.
        self.measured = Measured(first)
        self._sessions = sessions
        self._may_begin, self._is_needed = may_begin, is_needed
        self._due_s = time.monotonic() + INTERVAL_S if first else 0.0  # used by this thread alone
        self._done = threading.Event()
        self._wake = threading.Event()

    def run(self) -> None:
        """Use one session after the other."""
        while self._may_begin and not self._may_begin.wait(INTERVAL_S):
            if self._done.is_set():
                return
        refusals = 0
        for session in self._sessions:
            if self._done.is_set():
                return
            try:
                with session as endpoint:
                    for measured in self._probes(endpoint):
                        self.measured = measured
                        refusals = 0 if measured.asked_at_s is None else refusals
            except MpxError as error:
                self.measured = replace(self.measured, asked_at_s=None)
                refusals = 0 if error.may_retry else refusals + 1
            if refusals == MOST_REFUSALS or self._done.wait(INTERVAL_S):
                return

    def ask(self) -> None:
        """Send the next probe at once, unless a reply is awaited."""
        if self.measured.asked_at_s is None:
            self._wake.set()

    def end(self) -> None:
        """Stop probing; the session is free when the thread has ended."""
        self._done.set()
        self._wake.set()

    @property
    def is_over(self) -> bool:
        """Whether nobody wants to know any more; from any thread."""
        return self._done.is_set()

    def _probes(self, endpoint: Endpoint) -> Iterator[Measured]:
        """Yield what is known before and after each probe, for as long as the session may be used."""
        is_open = False  # the first probe opens it, which takes longer than a round trip
        while self._is_due(endpoint):
            if is_open:
                yield replace(self.measured, asked_at_s=time.monotonic())
            rtt = endpoint.measure_rtt()
            now_s = time.monotonic()
            is_open, self._due_s = True, now_s + INTERVAL_S
            yield Measured(rtt, now_s)

    def _is_due(self, endpoint: Endpoint) -> bool:
        """Wait for the next probe; False where the session is to be used no longer."""
        while not self._wake.wait(max(0.0, min(TICK_S, self._due_s - time.monotonic()))):
            if self._is_needed():
                endpoint.let_go()
                return False
            endpoint.pause()
            if time.monotonic() >= self._due_s:
                break
        self._wake.clear()
        return not self._done.is_set()


def beside_listing(
    lists: Endpoint,
    listing: threading.Thread,
    open_another: Callable[[], Endpoint],
    *,
    has_let_go: Callable[[], bool],
) -> Iterator[AbstractContextManager[Endpoint]]:
    """Yield the sessions for the default path: that of `lists` once `listing` has ended, before it another.

    Where the listing takes less than a second, no other is opened, unless its session was given to others.
    """
    listing.join(INTERVAL_S)
    if listing.is_alive():
        yield contextlib.closing(open_another())
    listing.join()
    yield contextlib.closing(open_another()) if has_let_go() else _closed_if_lost(lists)


@contextlib.contextmanager
def _closed_if_lost(endpoint: Endpoint) -> Iterator[Endpoint]:
    try:
        yield endpoint
    except MpxError:
        endpoint.close()
        raise
