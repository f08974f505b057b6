"""Trying again: how often, and how long to wait in between.

The waits double from a quarter of a second to half a minute: ten of them, the default, last two minutes
together, so that a server may be started anew meanwhile.
"""

import threading

from mpx.errors import MpxError

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 30.0


def wait_s(failures: int) -> float:
    """Return how many seconds to wait after so many failures before this one."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**failures)


class Retry:
    """Counts attempts without progress; waits twice as long after each."""

    def __init__(self, retries: int, stop: threading.Event) -> None:
        self._retries = retries
        self._stop = stop
        self._failures = 0

    def progressed(self) -> None:
        """Start counting anew: the last attempt brought something over."""
        self._failures = 0

    def again(self, error: MpxError) -> None:
        """Wait before the next attempt; raises `error` when there is to be none, or the copy is stopped."""
        if not error.may_retry or self._failures >= self._retries or self._stop.is_set():
            raise error
        self._stop.wait(wait_s(self._failures))
        self._failures += 1
        if self._stop.is_set():
            raise error
