"""The paths of a set, for the streams of a copy: tells the controller which TCP port takes which path.

A stream says its port before it connects; that waits for the controller, so that the first packet takes the
path already. All else (renewal, streams that have ended, streams that are to take another path) is done by
a thread of its own. Where the controller cannot be asked, streams take what the network chooses; what it
refuses concerns the ports that it was asked for, and nothing else waits.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from mpx.engine.path_set import PathSet, Side
from mpx.errors import ControllerError
from mpx.multipath.controller import ANSWER_S, Controller, Forgotten, Refusal
from mpx.multipath.port_registry import MOST_AT_ONCE, Port, PortRegistry
from mpx.multipath.server_address import ServerAddress
from mpx.report import OnNote, Severity
from mpx.units import counted

AWAY_S = 5.0  # a controller that was not there, or refused, is not asked for the same again before
RENEWALS = 4  # in each lease, ...
LOOKED_S = 5.0  # ... and not less often than so: somebody wants to know what has become of the paths
WATCHED_S = 1.0  # where a path is lost the set is asked for so often
TAKEN, FULL = 409, 429  # why a port is refused: another set has it, there are too many


class SteeredPaths(threading.Thread):
    """See Paths. `note` is called with lines for the report, `changed` with the set as it has become."""

    def __init__(
        self,
        client: Controller,
        known: PathSet,
        *,
        far: ServerAddress,
        note: OnNote,
        changed: Callable[[PathSet], None],
    ) -> None:
        super().__init__(name="mpx-paths", daemon=True)
        self.names, self.lead_to = known.names, far.is_that_of
        self._client, self._known, self._note, self._changed = client, known, note, changed
        self._guard = threading.Condition()  # guards all below
        self._telling = threading.Lock()  # held while streams that have ended are told of; before _guard
        self._book = PortRegistry(known.names, known.most_streams)
        self._noted: set[int] = set()  # each kind of refusal is told once
        self._away_until_s = 0.0
        self._forgotten = False
        self._renewed_at_s = time.monotonic()
        self._renew_at_s = self._renewed_at_s + _renewed_after_s(known)
        self._closed = False

    # --- for streams ---------------------------------------------------------------------------------

    def register(self, path: str, side: Side, *, stays: bool = False) -> Callable[[int], None]:
        """See Paths. `stays`: it is to take this path even while that is lost."""
        return lambda port: self._begin(port, side, Port(path, stays))

    def ended(self, port: int, side: Side) -> None:
        """See Paths."""
        with self._guard:
            if self._book.end((port, side), time.monotonic()):
                self._guard.notify_all()

    def _begin(self, number: int, side: Side, port: Port) -> None:
        with self._guard:
            self._book.begin((number, side), port)
            if self._closed or self._is_away():
                self._guard.notify_all()  # the thread tells it as soon as somebody can be asked
                return
            is_full = self._book.is_full
        if is_full:
            self._tell_ended()
        with self._guard:
            # The thread may be asking for it, or somebody for one that had its number.
            self._guard.wait_for(lambda: self._closed or not self._book.is_asked((number, side)), ANSWER_S)
            if self._book.is_full and not port.known:
                self._guard.notify_all()  # ... or others have ended
                most = self._known.most_streams or 0
                self._note_once(
                    FULL,
                    f"path set {self._known.number} has the {counted(most, 'stream')} that it may have",
                    Severity.INFO,
                )
                return
            over = self._book.wanted(port)
        self._put([number], side, over)

    # --- for who decides -----------------------------------------------------------------------------

    def move(self, path: str, over: str) -> None:
        """Have the streams of a path take that of another from now on, or their own again."""
        with self._guard:
            self._book.move(path, over)
            self._guard.notify_all()

    def stop(self) -> None:
        """Tell the controller of no stream any more."""
        with self._guard:
            self._closed = True
            self._guard.notify_all()

    def close(self) -> None:
        """Give the set back. Waits for the controller, as long as a few questions take."""
        self.stop()
        if self.is_alive():
            self.join()
        self._ask(lambda: self._client.release(self._known.number))

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Tell the controller what it is to know, until the copy ends."""
        while self._wait():
            self._tell_ended()  # first: those that come take their place
            self._moves()
            self._renew()

    def _wait(self) -> bool:
        with self._guard:
            while not self._closed:
                pause_s = self._due_s() - time.monotonic()
                if pause_s <= 0:
                    return True
                self._guard.wait(None if math.isinf(pause_s) else pause_s)
            return False

    def _due_s(self) -> float:
        """Return when there is something to tell; nothing for ever where the set is forgotten."""
        if self._forgotten:
            return math.inf
        return max(self._away_until_s, min(self._renew_at_s, self._book.due_s()))

    def _is_away(self) -> bool:
        with self._guard:
            return self._forgotten or time.monotonic() < self._away_until_s

    def _moves(self) -> None:
        """Have every stream where it is to be."""
        with self._guard:
            wrong = self._book.wrong(time.monotonic())
        for (side, over), numbers in wrong.items():
            some = (numbers[at : at + MOST_AT_ONCE] for at in range(0, len(numbers), MOST_AT_ONCE))
            if not all(self._put(each, side, over) for each in some):
                with self._guard:
                    self._book.put_off(numbers, side, time.monotonic() + AWAY_S)

    def _put(self, numbers: Sequence[int], side: Side, over: str) -> bool:
        """Have streams on a path, so far as they are to be; False where it makes no sense to ask more now.

        Of several that are refused each half is asked for, until it is known whom that concerns.
        """
        with self._guard:
            asked = self._book.ask(numbers, side, over)
        numbers = asked.numbers  # others have ended since, or somebody else has asked
        if not numbers:
            return True
        try:
            is_there = self._ask(lambda: self._client.place(self._known.number, numbers, side, over))
        except Refusal as error:
            half = len(numbers) // 2
            with self._guard:
                self._book.refused(asked)
                if not half:
                    self._book.put_off(numbers, side, time.monotonic() + AWAY_S)
                self._guard.notify_all()
            if half:
                return self._put(numbers[:half], side, over) and self._put(numbers[half:], side, over)
            self._note_once(error.status, str(error))
            return error.status == TAKEN
        with self._guard:
            settle = self._book.granted if is_there else self._book.unanswered
            settle(asked)
            self._guard.notify_all()
        return is_there

    def _renew(self) -> None:
        with self._guard:
            if time.monotonic() < self._renew_at_s:
                return
        try:
            if self._ask(self._renewed):
                return
        except Refusal as error:
            self._note_once(error.status, str(error))
        with self._guard:
            self._renew_at_s = max(self._renew_at_s, time.monotonic() + AWAY_S)

    def _renewed(self) -> None:
        now = self._client.renew(self._known.number)
        is_whole = all(path.is_up for path in now.paths)
        with self._guard:
            self._renewed_at_s = time.monotonic()
            self._renew_at_s = self._renewed_at_s + (_renewed_after_s(now) if is_whole else WATCHED_S)
        self._changed(now)

    def look(self) -> None:
        """Ask soon how the paths are, though not more often than each WATCHED_S."""
        with self._guard:
            soon_s = max(time.monotonic(), self._renewed_at_s + WATCHED_S, self._away_until_s)
            if soon_s < self._renew_at_s:
                self._renew_at_s = soon_s
                self._guard.notify_all()

    def _tell_ended(self) -> None:
        with self._telling:
            with self._guard:
                ended = [] if self._is_away() else self._book.take_ended()
            for side, numbers in ended:
                try:
                    is_told = self._ask(partial(self._client.remove, self._known.number, numbers, side))
                except Refusal as error:
                    self._note_once(error.status, str(error))
                    is_told = False
                with self._guard:
                    if is_told:
                        self._book.left(numbers, side)
                    else:
                        self._book.not_left(numbers, side, time.monotonic() + AWAY_S)

    def _ask(self, question: Callable[[], object]) -> bool:
        """Ask; False where the controller cannot be asked, which is noted. Raises Refusal of the question."""
        if self._is_away():
            return False
        try:
            question()
        except ControllerError as error:
            with self._guard:
                if self._closed:  # it was cut off, perhaps
                    return False
                is_forgotten = isinstance(error, Forgotten)
                if isinstance(error, Refusal) and not is_forgotten:
                    raise
                self._forgotten |= is_forgotten
                self._away_until_s = time.monotonic() + AWAY_S
            self._note(
                f"{error}; streams that begin now take the path that the network chooses", Severity.NOTICE
            )
            return False
        return True

    def _note_once(self, status: int, why: str, severity: Severity = Severity.NOTICE) -> None:
        with self._guard:
            is_new = status not in self._noted
            self._noted.add(status)
        if is_new:
            chosen = "until then streams take the path that the network chooses"
            self._note(f"{why}; it is asked for again, and {chosen}", severity)


def _renewed_after_s(known: PathSet) -> float:
    return max(WATCHED_S, min(LOOKED_S, known.lease_s / RENEWALS))
