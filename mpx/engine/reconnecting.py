"""Which workers have lost their session and try to open another: what a copy does while nothing arrives."""

import threading

from mpx.engine.retry import Retry, why_again
from mpx.errors import MpxError


class Reconnecting:
    """Workers between two sessions, and whoever else asks again, each with the number of its attempt.

    Used from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[str, tuple[int, str]] = {}  # by worker; guarded by `_lock`

    def begin(self, worker: str, attempt: int, why: str = "") -> None:
        """Note that a worker without a session waits for this attempt, or makes it.

        `why`: in words, where it is not that the session was lost.
        """
        with self._lock:
            self._attempts[worker] = attempt, why

    def end(self, worker: str) -> None:
        """Note that a worker has a session, or needs none any more."""
        with self._lock:
            self._attempts.pop(worker, None)

    def wait(self, who: str, retry: Retry, error: MpxError) -> None:
        """Wait before the next attempt, which is known meanwhile; raises as Retry.again."""
        self.begin(who, retry.next_attempt, why_again(error))
        try:
            retry.again(error)
        finally:
            self.end(who)

    @property
    def attempt(self) -> int:
        """The highest number of an attempt; 0 where every worker has what it needs."""
        return self.latest[0]

    @property
    def latest(self) -> tuple[int, str]:
        """The highest number of an attempt, and why it is needed."""
        with self._lock:
            return max(self._attempts.values(), default=(0, ""))
