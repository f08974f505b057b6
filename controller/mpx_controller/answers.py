"""What a switch has been asked and has not answered yet."""

import asyncio
from typing import Any

MOST_PARTS = 4096  # of one answer; a switch with more does not end


class SwitchLost(Exception):
    """The connection to a switch has ended, or the switch does not answer."""


class WrongAnswer(SwitchLost):
    """The switch has answered something else than it was asked."""


class Answers:
    """Answers by the number of their question, of the kind asked for; each can come in several parts."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[list[Any]]] = {}
        self._kinds: dict[int, type] = {}
        self._parts: dict[int, list[Any]] = {}

    def expect(self, xid: int, kind: type) -> "asyncio.Future[list[Any]]":
        """Return what will have all parts of the answer, which are of `kind`, or raise SwitchLost."""
        self._kinds[xid], self._parts[xid] = kind, []
        self._waiting[xid] = asyncio.get_running_loop().create_future()
        return self._waiting[xid]

    def forget(self, xid: int) -> None:
        """Nobody waits for it any more."""
        for known in (self._waiting, self._kinds, self._parts):
            known.pop(xid, None)

    def part(self, xid: int, part: Any, *, more: bool) -> bool:
        """Take a part; return whether anybody has asked for it. One of another kind is no answer."""
        if xid not in self._waiting:
            return False
        if not isinstance(part, self._kinds[xid]):
            self._end(xid, WrongAnswer(f"{type(part).__name__} is no answer to what was asked"))
            return True
        self._parts[xid].append(part)
        if len(self._parts[xid]) > MOST_PARTS:
            self.refused(xid, "the answer does not end")
        elif not more:
            self._end(xid, None)
        return True

    def refused(self, xid: int, why: str) -> bool:
        """The switch does not answer it; return whether anybody has asked for it."""
        if xid not in self._waiting:
            return False
        self._end(xid, SwitchLost(why))
        return True

    def lost(self, why: str) -> None:
        """There will be no answers any more."""
        for xid in list(self._waiting):
            self._end(xid, SwitchLost(why))

    def _end(self, xid: int, error: SwitchLost | None) -> None:
        waiting, parts = self._waiting[xid], self._parts[xid]
        self.forget(xid)
        if waiting.done():
            return
        if error is None:
            waiting.set_result(parts)
        else:
            waiting.set_exception(error)
