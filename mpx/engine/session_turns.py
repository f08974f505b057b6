"""Sessions of a copy with one server, no more at a time than it admits: whose turn it is to have one.

Whoever needs a session waits for its turn, in the order of asking, and whoever has one and nothing to do
gives it back. The pools of each protocol open sessions, and learn from refusals how many there may be.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from mpx.engine.retry import OneSessionOnly, SessionsFull
from mpx.errors import Interrupted
from mpx.report import OnNote

TURN_S = 0.2  # whoever waits for a turn looks so often whether the copy is stopped
TAKE_TURNS = 3  # scan, committer and one that moves data: with fewer sessions they take turns

Session = TypeVar("Session")
Spare = TypeVar("Spare")


class TurnsForSessions(Generic[Session, Spare]):
    """For any thread. `Spare`: a session that was given back, with what its pool knows of it."""

    def __init__(self, note: OnNote) -> None:
        """`note` takes a line for the report."""
        self.limit: int | None = None  # sessions that the server admits, as far as it is known
        self._note = note
        self._changed = threading.Condition()  # held to use what follows
        self._sessions: set[Session] = set()  # open, in use or spare
        self._spare: deque[Spare] = deque()
        self._opening = 0
        self._waiting: deque[object] = deque()  # a ticket for each who waits, in their order
        self._until_s = 0.0  # when the limit is to be tested

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a session, so that whoever does not need one should give it back."""
        return bool(self._waiting)

    @property
    def takes_turns(self) -> bool:
        """Whether there are fewer sessions than there is work for."""
        limit = self.limit
        return limit is not None and limit < TAKE_TURNS

    @property
    def is_single(self) -> bool:
        """Whether the server admits one session at a time, as far as it is known."""
        return self.limit == 1

    def _turn(
        self,
        stop: Callable[[], bool],
        *,
        waits: bool,
        while_waiting: Callable[[], None] = lambda: None,
        fits: Callable[[Spare], bool] = lambda spare: True,  # noqa: ARG005
    ) -> Spare | None:
        """Wait for a turn; return what was given back, None where the caller is to open a session.

        That counts as being opened then, and so does what is returned and does not fit: the caller closes it,
        and opens another in its place. `while_waiting` is called now and then. Raises SessionsFull where the
        caller does not wait, Interrupted.
        """
        with self._changed:
            ticket = object()
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or not (self._spare or self._has_room):
                    if not waits:
                        raise SessionsFull(f"the server admits no more than {self.limit} sessions")
                    if stop():
                        raise Interrupted
                    self._changed.wait(TURN_S)
                    self._changed.release()
                    try:
                        while_waiting()
                    finally:
                        self._changed.acquire()
                for spare in self._spare:
                    if fits(spare):
                        self._spare.remove(spare)
                        return spare
                unfit = None if self._has_room else self._spare.popleft()
                self._opening += 1
                return unfit
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    @property
    def _has_room(self) -> bool:
        if self.limit is None or len(self._sessions) + self._opening < self.limit:
            return True
        return not self._opening and time.monotonic() >= self._until_s

    def _tell_limit(self, what: str, count: int, refusal: Exception) -> None:
        """Note that a further session (`what`) was refused while so many were open."""
        sessions = "1 session was" if count == 1 else f"{count} sessions were"
        turns = ", so listing, moving and verifying take turns" if self.takes_turns else ""
        self._note(f"the server refused a further {what} while {sessions} open{turns}: {refusal}")


class MaybeSingle(Protocol):
    """What has the sessions with a server; see TurnsForSessions."""

    @property
    def is_single(self) -> bool:
        """Whether the server admits one session at a time."""
        ...


def check_admits_both(
    one: MaybeSingle | None,
    other: MaybeSingle | None,
    host: str,
    since_s: float,
    patience_s: float,
) -> None:
    """Raise OneSessionOnly where a session of each was to be had for so long, and both are one server's that
    admits one session at a time.

    `since_s`: when they were asked for first (monotonic clock).
    """
    if one is None or one is not other or not one.is_single or time.monotonic() < since_s + patience_s:
        return
    raise OneSessionOnly(
        f"{host} has admitted one session at a time for {patience_s:g} s (--timeout), and a copy from there "
        "to there needs two at once; copy to this host first, and then from here"
    )
