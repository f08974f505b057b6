"""The paths of a set, for the streams of a copy: registers at the controller which TCP port takes which path.

A stream registers its port before it connects, and waits for the controller, so that its first packet takes
the path already. All else (renewing the lease, streams that have ended or are to take another path) is done
by a thread of its own. While the controller does not answer, streams take the default path;
a refusal affects only the ports of that request.
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

AWAY_S = 5.0  # pause after a failure or a refusal, before the same is requested again
RENEWALS = 4  # in each lease, ...
CHECKED_S = 5.0  # ... and at least this often, as a renewal also returns the state of the paths
WATCHED_S = 1.0  # interval of renewals while a path is lost
TAKEN, FULL = 409, 429  # HTTP status: another set has the port; too many


class SteeredPaths(threading.Thread):
    """See Paths. `note` is called with lines for the report, `changed` with the set after each renewal."""

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
        self.names, self.lead_to = known.names, far.is_steered
        self._client, self._known, self._note, self._changed = client, known, note, changed
        self._lock = threading.Condition()  # guards all below; never held during a request
        self._removing = threading.Lock()  # one thread at a time reports ended streams; before _lock
        self._ports = PortRegistry(known.names, known.most_streams)
        self._noted: set[int] = set()  # each kind of refusal is noted once, by its status
        self._away_until_s = 0.0
        self._forgotten = False
        self._renewed_at_s = time.monotonic()
        self._renew_at_s = self._renewed_at_s + _renewed_after_s(known)
        self._closed = False

    # --- for streams ---------------------------------------------------------------------------------

    def register(self, path: str, side: Side, *, stays: bool = False) -> Callable[[int], None]:
        """See Paths. `stays`: the stream takes this path even while it is lost."""
        return lambda port: self._begin(port, side, Port(path, stays))

    def ended(self, port: int, side: Side) -> None:
        """See Paths."""
        with self._lock:
            if self._ports.end((port, side), time.monotonic()):
                self._lock.notify_all()

    def _begin(self, number: int, side: Side, port: Port) -> None:
        with self._lock:
            self._ports.begin((number, side), port)
            if self._closed or self._is_away():
                self._lock.notify_all()  # this thread registers it as soon as the controller answers
                return
            is_full = self._ports.is_full
        if is_full:
            self._report_ended()
        with self._lock:
            # A request for this port may be under way, or for an earlier stream with its number.
            self._lock.wait_for(lambda: self._closed or not self._ports.is_asked((number, side)), ANSWER_S)
            if self._ports.is_full and not port.known:
                self._lock.notify_all()  # ... or others have ended
                most = self._known.most_streams or 0
                self._note_once(
                    FULL,
                    f"path set {self._known.number} has its maximum of {counted(most, 'stream')}",
                    Severity.INFO,
                )
                return
            over = self._ports.wanted(port)
        self._put([number], side, over)

    # --- for the control loop ----------------------------------------------------------------------------

    def move(self, path: str, over: str) -> None:
        """Move the streams of a path to another from now on, or back to their own."""
        with self._lock:
            self._ports.move(path, over)
            self._lock.notify_all()

    def stop(self) -> None:
        """Register no further stream."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def close(self) -> None:
        """Release the set. Waits for the controller, as long as a few requests take."""
        self.stop()
        if self.is_alive():
            self.join()
        self._ask(lambda: self._client.release(self._known.number))

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Keep the controller informed, until the copy ends."""
        while self._wait():
            self._report_ended()  # first: this makes room for new ones
            self._moves()
            self._renew()

    def _wait(self) -> bool:
        with self._lock:
            while not self._closed:
                pause_s = self._due_s() - time.monotonic()
                if pause_s <= 0:
                    return True
                self._lock.wait(None if math.isinf(pause_s) else pause_s)
            return False

    def _due_s(self) -> float:
        """Return when there is something to report; never where the controller has forgotten the set."""
        if self._forgotten:
            return math.inf
        return max(self._away_until_s, min(self._renew_at_s, self._ports.due_s()))

    def _is_away(self) -> bool:
        with self._lock:
            return self._forgotten or time.monotonic() < self._away_until_s

    def _moves(self) -> None:
        """Put every stream on the path where it belongs."""
        with self._lock:
            wrong = self._ports.wrong(time.monotonic())
        for (side, over), numbers in wrong.items():
            some = (numbers[at : at + MOST_AT_ONCE] for at in range(0, len(numbers), MOST_AT_ONCE))
            if not all(self._put(each, side, over) for each in some):
                with self._lock:
                    self._ports.put_off(numbers, side, time.monotonic() + AWAY_S)

    def _put(self, numbers: Sequence[int], side: Side, over: str) -> bool:
        """Put streams on a path, if they belong there; return False where further requests are of no use now.

        When several are refused, each half is requested by itself, to find the streams that are refused.
        """
        with self._lock:
            asked = self._ports.ask(numbers, side, over)
        numbers = asked.numbers  # others have ended since, or are requested already
        if not numbers:
            return True
        try:
            is_there = self._ask(lambda: self._client.place(self._known.number, numbers, side, over))
        except Refusal as error:
            half = len(numbers) // 2
            with self._lock:
                self._ports.refused(asked)
                if not half:
                    self._ports.put_off(numbers, side, time.monotonic() + AWAY_S)
                self._lock.notify_all()
            if half:
                return self._put(numbers[:half], side, over) and self._put(numbers[half:], side, over)
            self._note_once(error.status, str(error))
            return error.status == TAKEN
        with self._lock:
            settle = self._ports.granted if is_there else self._ports.unanswered
            settle(asked)
            self._lock.notify_all()
        return is_there

    def _renew(self) -> None:
        with self._lock:
            if time.monotonic() < self._renew_at_s:
                return
        try:
            if self._ask(self._renewed):
                return
        except Refusal as error:
            self._note_once(error.status, str(error))
        with self._lock:
            self._renew_at_s = max(self._renew_at_s, time.monotonic() + AWAY_S)

    def _renewed(self) -> None:
        now = self._client.renew(self._known.number)
        is_whole = all(path.is_up for path in now.paths)
        with self._lock:
            self._renewed_at_s = time.monotonic()
            self._renew_at_s = self._renewed_at_s + (_renewed_after_s(now) if is_whole else WATCHED_S)
        self._changed(now)

    def check(self) -> None:
        """Renew soon, to know the state of the paths, but not more often than each WATCHED_S."""
        with self._lock:
            soon_s = max(time.monotonic(), self._renewed_at_s + WATCHED_S, self._away_until_s)
            if soon_s < self._renew_at_s:
                self._renew_at_s = soon_s
                self._lock.notify_all()

    def _report_ended(self) -> None:
        with self._removing:
            with self._lock:
                ended = [] if self._is_away() else self._ports.take_ended()
            for side, numbers in ended:
                try:
                    is_reported = self._ask(partial(self._client.remove, self._known.number, numbers, side))
                except Refusal as error:
                    self._note_once(error.status, str(error))
                    is_reported = False
                with self._lock:
                    if is_reported:
                        self._ports.left(numbers, side)
                    else:
                        self._ports.not_left(numbers, side, time.monotonic() + AWAY_S)

    def _ask(self, request: Callable[[], object]) -> bool:
        """Send a request; return False, with a note, where there is no answer. Raises Refusal."""
        if self._is_away():
            return False
        try:
            request()
        except ControllerError as error:
            with self._lock:
                if self._closed:  # the request may have been cut
                    return False
                is_forgotten = isinstance(error, Forgotten)
                if isinstance(error, Refusal) and not is_forgotten:
                    raise
                self._forgotten |= is_forgotten
                self._away_until_s = time.monotonic() + AWAY_S
            self._note(f"{error}; new streams take the default path", Severity.NOTICE)
            return False
        return True

    def _note_once(self, status: int, why: str, severity: Severity = Severity.NOTICE) -> None:
        with self._lock:
            is_new = status not in self._noted
            self._noted.add(status)
        if is_new:
            meanwhile = "until it succeeds these streams take the default path"
            self._note(f"{why}; mpx will try again, and {meanwhile}", severity)


def _renewed_after_s(known: PathSet) -> float:
    return max(WATCHED_S, min(CHECKED_S, known.lease_s / RENEWALS))
