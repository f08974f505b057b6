"""Trying again: how often, and how long to wait in between.

The waits double from a quarter of a second to half a minute: ten of them, the default, last two minutes
together, so that a server may be started anew meanwhile.
"""

from typing import Protocol

from mpx.errors import ConnectionLost, DestinationError, Interrupted, MpxError

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 30.0
LONGEST_TOLD_S = 300.0  # that a server is not asked, however much longer it wants to be left alone
MOST_DOUBLED = 7  # after which the wait is the longest
MOST_GIVEN_UP = 3  # files, one after the other, before what carries them is to blame


class SessionsFull(ConnectionLost):
    """The server admits no further session, and the caller can go on without one."""


class OneSessionOnly(ConnectionLost):
    """The server admits one session at a time, and the caller needs two at once."""

    may_retry = False


class ServerBusy(ConnectionLost):
    """The server takes no more requests for now; `wait_s`: for how long, None if it does not say."""

    def __init__(self, text: str, wait_s: float | None) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class ServerFailed(ConnectionLost):
    """The server fails at something (500), and does not say why: it may pass, or not.

    `kind`: of error that it is where it does not pass.
    """

    def __init__(self, text: str, kind: type[MpxError]) -> None:
        super().__init__(text)
        self.kind = kind

    def at_last(self, times: int, *, is_refusal: bool = False) -> MpxError:
        """Return what is told after so many attempts, the last one among them."""
        often = f", {times} times in turn" if times > 1 else ""
        is_of_storing = issubclass(self.kind, DestinationError)
        look = ", and whether it has room and may write there" if is_of_storing else ""
        text = f"{self}{often}; see the server's log{look}"
        return self.kind(text) if is_refusal else ServerFailed(text, self.kind)


def why_again(error: MpxError) -> str:
    """Return in words why a server is asked again; empty where the connection was lost."""
    if isinstance(error, ServerBusy):
        return "the server is busy"
    return "the server answers 500" if isinstance(error, ServerFailed) else ""


def wait_s(failures: int) -> float:
    """Return how many seconds to wait, given the number of failures before the latest one."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures, MOST_DOUBLED))


def fewer(items: int) -> int:
    """Return how many to try at once when a connection did not last for so many."""
    return max(1, items // 4)


class Stop(Protocol):
    """Tells who waits that the copy is stopped: a threading.Event, or one of two (stop.Either)."""

    def is_set(self) -> bool:
        """Whether it is."""
        ...

    def wait(self, timeout: float) -> bool:
        """Wait until it is, for so many seconds at most; return whether it is."""
        ...


class Retry:
    """Counts attempts without progress; waits twice as long after each."""

    def __init__(self, retries: int, stop: Stop) -> None:
        self._retries = retries
        self._stop = stop
        self._failures = 0
        self._given_up = 0  # files, one after the other

    @property
    def next_attempt(self) -> int:
        """The number of the attempt that comes next, from 1."""
        return self._failures + 1

    def progressed(self) -> None:
        """Start counting anew: the last attempt brought something over."""
        self._failures = self._given_up = 0

    def begin(self) -> None:
        """Start counting anew, with other files."""
        self._failures = 0

    def may_give_up(self, error: MpxError) -> bool:
        """Tell whether the file that failed again and again is to be given up, and the others to go on.

        Starts counting anew if so.
        """
        is_over = error.may_retry and self._failures >= self._retries and not self._stop.is_set()
        if not is_over or self._given_up >= MOST_GIVEN_UP:
            return False
        self._failures = 0
        self._given_up += 1
        return True

    def again(self, error: MpxError) -> None:
        """Wait before the next attempt, at least as long as a busy server has told us to.

        Raises `error` if there is none, Interrupted if all is stopped.
        """
        if self._stop.is_set():
            raise Interrupted
        if not error.may_retry or self._failures >= self._retries:
            raise error
        told_s = (error.wait_s or 0.0) if isinstance(error, ServerBusy) else 0.0
        self._stop.wait(max(wait_s(self._failures), min(told_s, LONGEST_TOLD_S)))
        self._failures += 1
        if self._stop.is_set():
            raise Interrupted
