"""The TCP ports of the streams of a copy: the path of each, and what the controller knows of it. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpx.engine.path_set import Side

MOST_AT_ONCE = 256  # ports in one request
ENDED_TOGETHER_S = 0.5  # streams that end within so long are reported together

Key = tuple[int, Side]


@dataclass(slots=True)
class Port:
    """The path of one port, and what the controller knows."""

    path: str  # its own path
    stays: bool = False  # it takes its own path even while that is lost
    known: bool = False  # the controller may have it, even without a confirmation
    registered: str = ""  # the path that was confirmed or requested; empty: none
    again_s: float = 0.0  # no request before that time, after a refusal


@dataclass(frozen=True, slots=True)
class PortRequest:
    """The ports of one request, with their state before it."""

    numbers: list[int]
    side: Side
    over: str
    before: tuple[tuple[Port, bool, str], ...]


class PortRegistry:
    """All ports of a copy. `most`: streams that the controller accepts at once; None: not known.

    Times are of time.monotonic().
    """

    def __init__(self, names: Iterable[str], most: int | None) -> None:
        self._most = math.inf if most is None else most
        self._ports: dict[Key, Port] = {}
        self._over = {name: name for name in names}  # which path the streams of each path take now
        self._ended: list[Key] = []
        self._ended_since_s = 0.0
        self._leaving: list[Key] = []  # ended, and being reported
        self._asked: set[Key] = set()  # a request for them is under way: no other is sent meanwhile

    def begin(self, key: Key, port: Port) -> None:
        """Add the port of a stream that begins."""
        self._ports[key] = port
        if key in self._ended:  # used again, before its end was reported
            self._ended.remove(key)
            port.known = True

    def end(self, key: Key, now_s: float) -> bool:
        """Note that a stream has ended; return whether the thread that reports it is to be woken."""
        port = self._ports.pop(key, None)
        if port is None or not port.known:
            return False
        if not self._ended:
            self._ended_since_s = now_s
        self._ended.append(key)
        return len(self._ended) == 1 or self.is_full

    def move(self, path: str, over: str) -> None:
        """Move the streams of a path to another from now on, or back to their own."""
        self._over[path] = over

    def wanted(self, port: Port) -> str:
        """Return the path where it belongs now."""
        return port.path if port.stays else self._over[port.path]

    @property
    def is_full(self) -> bool:
        """Whether the controller has as many streams as it accepts."""
        return self._room() <= 0

    def _room(self) -> float:
        known = sum(port.known for port in self._ports.values())
        return self._most - known - len(self._ended) - len(self._leaving)

    def due_s(self) -> float:
        """Return when there is something to report."""
        due_s, is_full, one_waits = math.inf, self.is_full, False
        for key, port in self._ports.items():
            if port.registered != self.wanted(port) and key not in self._asked:
                if port.known or not is_full:
                    due_s = min(due_s, port.again_s)
                else:
                    one_waits = True
        if not self._asked.issuperset(self._ended):
            due_s = min(due_s, self._ended_since_s + (0.0 if one_waits else ENDED_TOGETHER_S))
        return due_s

    # --- which path ----------------------------------------------------------------------------------

    def wrong(self, now_s: float) -> dict[tuple[Side, str], list[int]]:
        """Return the ports that are not on their path, by side and path, as far as there is room.

        Those that the controller knows come first: they need no room.
        """
        wrong: dict[tuple[Side, str], list[int]] = defaultdict(list)
        room = self._room()
        for key, port in sorted(self._ports.items(), key=lambda each: not each[1].known):
            (number, side), over = key, self.wanted(port)
            if port.registered == over or key in self._asked or now_s < port.again_s:
                continue
            if not port.known:
                room -= 1
            if port.known or room >= 0:
                wrong[side, over].append(number)
        return wrong

    def ask(self, numbers: Iterable[int], side: Side, over: str) -> PortRequest:
        """Begin a request for those of these ports that belong on a path and are not there.

        Ports of another request under way are left out. `granted`, `refused` or `unanswered` follows.
        """
        found: dict[int, Port] = {}
        for number in numbers:
            port = None if (number, side) in self._asked else self._ports.get((number, side))
            if port is not None and port.registered != over == self.wanted(port):
                found[number] = port
        request = PortRequest(
            list(found), side, over, tuple((port, port.known, port.registered) for port in found.values())
        )
        for number, port in found.items():
            port.known, port.registered = True, over
            self._asked.add((number, side))
        return request

    def is_asked(self, key: Key) -> bool:
        """Whether a request is under way for this port, or for an earlier stream with its number."""
        return key in self._asked

    def granted(self, request: PortRequest) -> None:
        """Note that the controller has confirmed the request."""
        self._answered(request)

    def refused(self, request: PortRequest) -> None:
        """Note that the controller has refused: its state is that before."""
        self._answered(request)
        for port, known, registered in request.before:
            port.known = known
            if port.registered == request.over:  # else the end of a stream with this number was reported
                port.registered = registered

    def unanswered(self, request: PortRequest) -> None:
        """Note that the state of the controller is not known."""
        self._answered(request)
        for port, _, _ in request.before:
            port.registered = ""

    def _answered(self, request: PortRequest) -> None:
        self._asked.difference_update((number, request.side) for number in request.numbers)

    def put_off(self, numbers: Iterable[int], side: Side, until_s: float) -> None:
        """Send no request before that time for those of these ports that are not on their path."""
        for number in numbers:
            port = self._ports.get((number, side))
            if port is not None and port.registered != self.wanted(port):
                port.again_s = until_s

    # --- the end -------------------------------------------------------------------------------------

    def take_ended(self) -> list[tuple[Side, list[int]]]:
        """Return the ports of ended streams, by side, in parts for one request each; they are being reported.

        Ports of a request under way are left out: the controller could get the report first.
        """
        ended = [key for key in self._ended if key not in self._asked]
        self._ended = [key for key in self._ended if key in self._asked]
        self._leaving += ended
        sides: tuple[Side, ...] = ("source", "sink")
        found = [(side, [number for number, of in ended if of == side]) for side in sides]
        return [
            (side, numbers[first : first + MOST_AT_ONCE])
            for side, numbers in found
            for first in range(0, len(numbers), MOST_AT_ONCE)
        ]

    def left(self, numbers: Sequence[int], side: Side) -> None:
        """Note that the report has arrived; a new stream with such a port may have been removed with it."""
        for key in self._taken(numbers, side):
            if (port := self._ports.get(key)) is not None:
                port.registered = ""

    def not_left(self, numbers: Sequence[int], side: Side, until_s: float) -> None:
        """Note that the report has not arrived, and is repeated at that time."""
        for key in self._taken(numbers, side):
            if (port := self._ports.get(key)) is not None:
                port.known = True
            else:
                self._ended.append(key)
        self._ended_since_s = until_s

    def _taken(self, numbers: Sequence[int], side: Side) -> list[Key]:
        keys: list[Key] = [(number, side) for number in numbers]
        for key in keys:
            self._leaving.remove(key)
        return keys
