"""Requests to a switch that it has not answered yet."""

import asyncio
from typing import Any

MOST_PARTS = 4096  # of one answer; a switch with more does not end
MOST_ANSWER = 16 << 20  # bytes of one answer: some 100,000 entries


class SwitchLost(Exception):
    """The connection to a switch has ended, or the switch does not answer."""


class CutOff(SwitchLost):
    """The switch sends what is not OpenFlow 1.3, or was not requested; its connection is ended."""


class WrongAnswer(SwitchLost):
    """The reply is of another kind than the request asks for."""


class PendingReplies:
    """Outstanding replies, by the number of their request; each can come in several parts."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[list[Any]]] = {}
        self._kinds: dict[int, type] = {}
        self._parts: dict[int, list[Any]] = {}
        self._bytes: dict[int, int] = {}

    def expect(self, xid: int, kind: type) -> "asyncio.Future[list[Any]]":
        """Return a future of all parts of the reply, each a `kind`; it raises SwitchLost if there is none."""
        self._kinds[xid], self._parts[xid], self._bytes[xid] = kind, [], 0
        self._waiting[xid] = asyncio.get_running_loop().create_future()
        return self._waiting[xid]

    def forget(self, xid: int) -> None:
        """Forget a request."""
        for known in (self._waiting, self._kinds, self._parts, self._bytes):
            known.pop(xid, None)

    def is_asked(self, xid: int) -> bool:
        """Whether this reply is awaited."""
        return xid in self._waiting

    def part(self, xid: int, part: Any, size: int, *, more: bool) -> bool:
        """Take a part of `size` bytes; return whether it was requested.

        A part of another kind fails the request with WrongAnswer.
        """
        if xid not in self._waiting:
            return False
        if not isinstance(part, self._kinds[xid]):
            self._end(xid, WrongAnswer(f"{type(part).__name__} is not a reply to this request"))
            return True
        self._parts[xid].append(part)
        self._bytes[xid] += size
        if len(self._parts[xid]) > MOST_PARTS or self._bytes[xid] > MOST_ANSWER:
            self.refused(xid, "the reply is too long")
        elif not more:
            self._end(xid, None)
        return True

    def refused(self, xid: int, why: str) -> bool:
        """Fail a request that the switch does not answer; return whether it was awaited."""
        if xid not in self._waiting:
            return False
        self._end(xid, SwitchLost(why))
        return True

    def lost(self, why: str) -> None:
        """Fail all requests, as the connection has ended."""
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
