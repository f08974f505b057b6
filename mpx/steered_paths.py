"""The paths of a set, for the streams of a copy: tells the controller which TCP port takes which path.

A stream says its port before it connects; that waits for the controller, so that the first packet takes the
path already. All else (renewal, streams that have ended, streams that are to take another path) is done by
a thread of its own. Where the controller cannot be asked, streams take what the network chooses.
"""

import contextlib
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mpx.controller_client import ControllerClient, Forgotten
from mpx.errors import ControllerError
from mpx.path_set import PathSet, Side

AWAY_S = 5.0  # a controller that was not there, or refused, is not asked again before
RENEWALS = 4  # in each lease, ...
LOOKED_S = 5.0  # ... and not less often than so: somebody wants to know what has become of the paths
WATCHED_S = 1.0  # where a path is lost the set is asked for so often
MOST_AT_ONCE = 256  # ports in one question
ENDED_TOGETHER_S = 0.5  # those that end within so long are told of at once


@dataclass(slots=True)
class _Port:
    path: str  # that it belongs on
    stays: bool  # there, whatever becomes of the path
    asked: bool = False  # the controller may know it, even where it has not said so
    told: str = ""  # the path that the controller has it on; empty: it has not been told


class SteeredPaths(threading.Thread):
    """See Paths. `note` is called with lines for the report, `changed` with the set as it has become."""

    def __init__(
        self,
        client: ControllerClient,
        known: PathSet,
        *,
        note: Callable[[str], None],
        changed: Callable[[PathSet], None],
    ) -> None:
        super().__init__(name="mpx-paths", daemon=True)
        self.names = known.names
        self._client, self._known, self._note, self._changed = client, known, note, changed
        self._guard = threading.Condition()
        self._ports: dict[tuple[int, Side], _Port] = {}
        self._over = {name: name for name in known.names}  # which path the streams of each take now
        self._ended: list[tuple[int, Side]] = []
        self._ended_since_s = 0.0
        self._away_until_s = 0.0
        self._forgotten = False
        self._renewed_at_s = time.monotonic()
        self._renew_at_s = self._renewed_at_s + _renewed_after_s(known)
        self._closed = False

    # --- for streams ---------------------------------------------------------------------------------

    def register(self, path: str, side: Side, *, stays: bool = False) -> Callable[[int], None]:
        """See Paths. `stays`: it is to take this path even while that is lost."""
        return lambda port: self._begin(port, side, _Port(path, stays))

    def ended(self, port: int, side: Side) -> None:
        """See Paths."""
        with self._guard:
            known = self._ports.pop((port, side), None)
            if known and known.asked:
                if not self._ended:
                    self._ended_since_s = time.monotonic()
                    self._guard.notify_all()
                self._ended.append((port, side))

    def _begin(self, port: int, side: Side, known: _Port) -> None:
        with self._guard:
            self._ports[port, side] = known
            with contextlib.suppress(ValueError):
                self._ended.remove((port, side))  # it is used again, before anybody was told
            if self._closed or self._forgotten or time.monotonic() < self._away_until_s:
                self._guard.notify_all()  # the thread tells it as soon as somebody can be asked
                return
            over = known.told = self._wanted(known)  # or the thread would tell, too
            known.asked = True
        if not self._ask(lambda: self._client.place(self._known.number, [port], side, over)):
            with self._guard:
                known.told = ""
                self._guard.notify_all()

    # --- for who decides -----------------------------------------------------------------------------

    def move(self, path: str, over: str) -> None:
        """Have the streams of a path take that of another from now on, or their own again."""
        with self._guard:
            self._over[path] = over
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
        if not self._forgotten and time.monotonic() >= self._away_until_s:
            self._ask(lambda: self._client.release(self._known.number))

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Tell the controller what it is to know, until the copy ends."""
        while self._wait():
            if self._moves() and self._renew():
                self._tell_ended()

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
        if any(known.told != self._wanted(known) for known in self._ports.values()):
            return min(self._renew_at_s, self._away_until_s)
        if self._ended:
            together_s = self._ended_since_s + ENDED_TOGETHER_S
            return min(self._renew_at_s, max(together_s, self._away_until_s))
        return self._renew_at_s

    def _wanted(self, known: _Port) -> str:
        return known.path if known.stays else self._over[known.path]

    def _moves(self) -> bool:
        """Have every stream where it is to be; False where the controller could not be asked."""
        with self._guard:
            wrong: dict[tuple[Side, str], list[int]] = defaultdict(list)
            for (port, side), known in self._ports.items():
                over = self._wanted(known)
                if known.told != over:
                    known.asked = True
                    wrong[side, over].append(port)
        for (side, over), ports in wrong.items():
            for first in range(0, len(ports), MOST_AT_ONCE):
                if not self._ask(partial(self._place, ports[first : first + MOST_AT_ONCE], side, over)):
                    return False
        return True

    def _place(self, ports: list[int], side: Side, over: str) -> None:
        self._client.place(self._known.number, ports, side, over)
        with self._guard:
            for port in ports:
                if (known := self._ports.get((port, side))) is not None:
                    known.told = over

    def _renew(self) -> bool:
        if time.monotonic() < self._renew_at_s:
            return True
        return self._ask(self._renewed)

    def _renewed(self) -> None:
        now = self._client.renew(self._known.number)
        is_whole = all(path.is_up for path in now.paths)
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
        with self._guard:
            ended, self._ended = self._ended, []
        sides: tuple[Side, ...] = ("source", "sink")
        for side in sides:
            ports = [port for port, of in ended if of == side]
            for first in range(0, len(ports), MOST_AT_ONCE):
                some = ports[first : first + MOST_AT_ONCE]
                self._ask(partial(self._client.remove, self._known.number, some, side))

    def _ask(self, question: Callable[[], object]) -> bool:
        """Ask; False where that failed, which is noted."""
        try:
            question()
        except ControllerError as error:
            with self._guard:
                if self._closed:  # it was cut off, perhaps
                    return False
                self._forgotten |= isinstance(error, Forgotten)
                self._away_until_s = time.monotonic() + AWAY_S
                self._renew_at_s = max(self._renew_at_s, self._away_until_s)
            self._note(f"{error}; streams that begin now take the path that the network chooses")
            return False
        return True


def _renewed_after_s(known: PathSet) -> float:
    return max(WATCHED_S, min(LOOKED_S, known.lease_s / RENEWALS))
