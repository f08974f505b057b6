"""The TCP ports of a copy's streams: on which path a controller is to have each, and what it has. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpx.engine.path_set import Side

MOST_AT_ONCE = 256  # ports in one question
ENDED_TOGETHER_S = 0.5  # those that end within so long are told of at once

Key = tuple[int, Side]


@dataclass(slots=True)
class Port:
    """What is to become of one, and what has."""

    path: str  # that it belongs on
    stays: bool = False  # there, whatever becomes of the path
    known: bool = False  # the controller may have it, even where it has not said so
    told: str = ""  # the path that the controller has it on, or is asked for; empty: it has not been told
    again_s: float = 0.0  # it was refused, and is not asked for before


@dataclass(frozen=True, slots=True)
class Asked:
    """Ports that a path is asked for in one question, with what was so before."""

    numbers: list[int]
    side: Side
    over: str
    before: tuple[tuple[Port, bool, str], ...]


class PortRegistry:
    """All of them. `most`: streams that the controller takes at once; None: it has not said.

    Times are of time.monotonic().
    """

    def __init__(self, names: Iterable[str], most: int | None) -> None:
        self._most = math.inf if most is None else most
        self._ports: dict[Key, Port] = {}
        self._over = {name: name for name in names}  # which path the streams of each take now
        self._ended: list[Key] = []
        self._ended_since_s = 0.0
        self._leaving: list[Key] = []  # have ended, and the controller is being told
        self._asked: set[Key] = set()  # the question for them is under way; nothing else is said of them

    def begin(self, key: Key, port: Port) -> None:
        """A stream has this port from now on."""
        self._ports[key] = port
        if key in self._ended:  # it is used again, before anybody was told
            self._ended.remove(key)
            port.known = True

    def end(self, key: Key, now_s: float) -> bool:
        """The stream has ended. Return whether it is the first that the controller is to be told of."""
        port = self._ports.pop(key, None)
        if port is None or not port.known:
            return False
        if not self._ended:
            self._ended_since_s = now_s
        self._ended.append(key)
        return len(self._ended) == 1 or self.is_full

    def move(self, path: str, over: str) -> None:
        """The streams of a path take that of another from now on, or their own again."""
        self._over[path] = over

    def wanted(self, port: Port) -> str:
        """Return the path that it is to be on."""
        return port.path if port.stays else self._over[port.path]

    @property
    def is_full(self) -> bool:
        """Whether the controller has as many as it takes."""
        return self._room() <= 0

    def _room(self) -> float:
        known = sum(port.known for port in self._ports.values())
        return self._most - known - len(self._ended) - len(self._leaving)

    def due_s(self) -> float:
        """Return when there is something to tell."""
        due_s, is_full, one_waits = math.inf, self.is_full, False
        for key, port in self._ports.items():
            if port.told != self.wanted(port) and key not in self._asked:
                if port.known or not is_full:
                    due_s = min(due_s, port.again_s)
                else:
                    one_waits = True
        if not self._asked.issuperset(self._ended):
            due_s = min(due_s, self._ended_since_s + (0.0 if one_waits else ENDED_TOGETHER_S))
        return due_s

    # --- which path ----------------------------------------------------------------------------------

    def wrong(self, now_s: float) -> dict[tuple[Side, str], list[int]]:
        """Return the ports that are not where they are to be, by side and path, as far as there is room.

        Those that the controller has come first: it cannot take them for too many.
        """
        wrong: dict[tuple[Side, str], list[int]] = defaultdict(list)
        room = self._room()
        for key, port in sorted(self._ports.items(), key=lambda each: not each[1].known):
            (number, side), over = key, self.wanted(port)
            if port.told == over or key in self._asked or now_s < port.again_s:
                continue
            if not port.known:
                room -= 1
            if port.known or room >= 0:
                wrong[side, over].append(number)
        return wrong

    def ask(self, numbers: Iterable[int], side: Side, over: str) -> Asked:
        """The controller is asked to have these on a path: those that are to be there still, and are not.

        Nor those for which another question is under way. `granted`, `refused` or `unanswered` follows.
        """
        found: dict[int, Port] = {}
        for number in numbers:
            port = None if (number, side) in self._asked else self._ports.get((number, side))
            if port is not None and port.told != over == self.wanted(port):
                found[number] = port
        asked = Asked(
            list(found), side, over, tuple((port, port.known, port.told) for port in found.values())
        )
        for number, port in found.items():
            port.known, port.told = True, over
            self._asked.add((number, side))
        return asked

    def is_asked(self, key: Key) -> bool:
        """Whether a question is under way for this port, or for one that had its number before."""
        return key in self._asked

    def granted(self, asked: Asked) -> None:
        """The controller has them there."""
        self._answered(asked)

    def refused(self, asked: Asked) -> None:
        """It has said no: it has what it had."""
        self._answered(asked)
        for port, known, told in asked.before:
            port.known = known
            if port.told == asked.over:  # or it has heard meanwhile that one of this number has ended
                port.told = told

    def unanswered(self, asked: Asked) -> None:
        """Nobody knows what it has."""
        self._answered(asked)
        for port, _, _ in asked.before:
            port.told = ""

    def _answered(self, asked: Asked) -> None:
        self._asked.difference_update((number, asked.side) for number in asked.numbers)

    def put_off(self, numbers: Iterable[int], side: Side, until_s: float) -> None:
        """Those of these that are not where they are to be are not asked for before."""
        for number in numbers:
            port = self._ports.get((number, side))
            if port is not None and port.told != self.wanted(port):
                port.again_s = until_s

    # --- the end -------------------------------------------------------------------------------------

    def take_ended(self) -> list[tuple[Side, list[int]]]:
        """Return those that have ended, by side, so many as one question holds; they are being told of.

        Not those that are being asked for: the controller could hear of their end first, and have them then.
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
        """The controller has heard that these have ended; one that has begun anew may have gone with them."""
        for key in self._taken(numbers, side):
            if (port := self._ports.get(key)) is not None:
                port.told = ""

    def not_left(self, numbers: Sequence[int], side: Side, until_s: float) -> None:
        """It has not, and is not told before."""
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
