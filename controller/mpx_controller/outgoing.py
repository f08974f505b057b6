"""Messages to one switch: sent in order, and kept for a while in case the switch refuses one."""

import time
from collections import deque
from collections.abc import Callable, Iterable

from mpx_controller import wire
from mpx_controller.cookies import Kind, kind_of
from mpx_controller.flows import Add, Entry, Message

MOST_SENT = 4096  # entries of path sets that are remembered; two for each stream
TURN_S = 0.001  # that messages of one switch take in a row; then others have their turn


class Outgoing:
    """Messages that wait to be written; thousands at once are written in turns."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._waiting: deque[Message] = deque()
        self._xid = 0
        self._sent: dict[int, Entry] = {}  # of path sets, by the number of the message; the last ones

    def __bool__(self) -> bool:
        """Whether messages wait."""
        return bool(self._waiting)

    def next_xid(self) -> int:
        """Return the number of the next message."""
        self._xid = (self._xid + 1) & 0xFFFFFFFF
        return self._xid

    def add(self, messages: Iterable[Message]) -> None:
        """Have messages wait, after those that do."""
        self._waiting.extend(messages)

    def write_some(self) -> None:
        """Write what waits, for one turn."""
        until_s = time.monotonic() + TURN_S
        while self._waiting and time.monotonic() <= until_s:
            message, xid = self._waiting.popleft(), self.next_xid()
            self._write(wire.to_bytes(message, xid))
            if isinstance(message, Add) and kind_of(message.entry.cookie) == Kind.PATH_SET:
                self._sent[xid] = message.entry
                if len(self._sent) > MOST_SENT:
                    del self._sent[next(iter(self._sent))]

    def refused(self, xid: int) -> Entry | None:
        """Return the entry of a path set that a message was to add, and forget it."""
        return self._sent.pop(xid, None)
