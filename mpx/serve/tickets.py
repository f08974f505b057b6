"""Tickets for data connections that clients open inside TLS, and the connections that came with them.

See mpx/endpoints/ftp/extensions/dialing.py for what is on the wire.
"""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from mpx.endpoints.ftp.extensions.dialing import (
    MOST_NUMBERS,
    VALID_S,
    Direction,
    Opening,
    Ticket,
    new_ticket,
)
from mpx.serve.buffers import MOST_CONNECTIONS

_TICK_S = 0.25  # whoever waits for a connection looks so often whether it still should


class DialedConnections:
    """Connections that have come for one data channel and that no transfer has taken yet. For any thread."""

    missing = "the client opened no connection"

    def __init__(
        self, direction: Direction, ticket: Ticket, closed: "Callable[[DialedConnections], None]"
    ) -> None:
        self.direction = direction
        self.ticket = ticket
        self._issued_s = time.monotonic()
        self._closed = closed
        self._changed = threading.Condition()
        self._numbers: set[int] = set()  # that were used; guarded by _changed, as is what follows
        self._waiting: deque[socket.socket] = deque()
        self._early: list[tuple[int, socket.socket]] = []  # with the first transfer that they are for
        self._transfers = 0  # that have begun
        self._is_closed = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC | os.EFD_SEMAPHORE)

    def fileno(self) -> int:
        """Return a descriptor that is readable while a connection waits."""
        return self._wake

    def admits(self, opening: Opening) -> bool:
        """Tell whether a connection that begins so belongs here; each opening counts once."""
        late_s = time.monotonic() - self._issued_s - opening.age_s
        is_right = opening.is_of(self.ticket)  # first, so that nothing else decides how long it takes
        if not is_right or opening.direction is not self.direction or abs(late_s) > VALID_S:
            return False
        with self._changed:
            if opening.number in self._numbers or len(self._numbers) >= MOST_NUMBERS:
                return False
            self._numbers.add(opening.number)
            return True

    def put(self, connection: socket.socket, first: int = 0) -> None:
        """Have a connection that was admitted wait for a transfer; closed where it is not wanted any more.

        `first`: the transfer of this ticket that it is for, as data of the one before may be on their way.
        """
        with self._changed:
            if self._is_closed or len(self._waiting) + len(self._early) >= MOST_CONNECTIONS:
                connection.close()
            elif first and first >= self._transfers:
                self._early.append((first, connection))
            else:
                self._let_in(connection)

    def begin(self) -> None:
        """Let in those that are for the transfer which begins now."""
        with self._changed:
            self._transfers += 1
            early, self._early = self._early, []
            for first, connection in early:
                if first < self._transfers:
                    self._let_in(connection)
                else:
                    self._early.append((first, connection))

    def _let_in(self, connection: socket.socket) -> None:
        self._waiting.append(connection)
        os.eventfd_write(self._wake, 1)
        self._changed.notify()

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Take one that waits, as a listening socket does; its address is of no interest.

        Raises BlockingIOError if there is none.
        """
        with self._changed:
            connection = self._take()
        return connection, ("", 0)

    def wait(self, is_over: Callable[[], bool]) -> socket.socket | None:
        """Take one, waiting for it; None once `is_over`, too late for an opening, or closed."""
        until_s = time.monotonic() + VALID_S
        with self._changed:
            while not (self._waiting or self._is_closed or is_over()):
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return None
                self._changed.wait(min(left_s, _TICK_S))
            with suppress(BlockingIOError):
                return self._take()
        return None

    def _take(self) -> socket.socket:
        if not self._waiting:
            raise BlockingIOError
        os.eventfd_read(self._wake)
        return self._waiting.popleft()

    def close(self) -> None:
        """Close those that wait, and let no more in."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            for connection in (*self._waiting, *(each for _, each in self._early)):
                connection.close()
            self._waiting.clear()
            self._early.clear()
            os.close(self._wake)
            self._changed.notify_all()
        self._closed(self)


class Tickets:
    """All tickets that are valid now. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[bytes, DialedConnections] = {}

    def issue(self, direction: Direction) -> DialedConnections:
        """Make a ticket; it is valid until its arrivals are closed."""
        arrivals = DialedConnections(direction, new_ticket(), self._forget)
        with self._lock:
            self._open[arrivals.ticket.id] = arrivals
        return arrivals

    def find(self, opening: Opening) -> DialedConnections | None:
        """Return where a connection that begins so belongs; None: nowhere."""
        with self._lock:
            arrivals = self._open.get(opening.ticket_id)
        return arrivals if arrivals and arrivals.admits(opening) else None

    def _forget(self, arrivals: DialedConnections) -> None:
        with self._lock:
            self._open.pop(arrivals.ticket.id, None)
