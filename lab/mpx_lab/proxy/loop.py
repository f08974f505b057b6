"""One thread's event loop: sockets through epoll, timers through a heap, calls from other threads.

`selectors` is not used: it cannot watch a socket for a reset alone, which is what a connection
needs while its rate holds it back.
"""

import heapq
import itertools
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable

READABLE, WRITABLE = select.EPOLLIN, select.EPOLLOUT
FAILED, BOTH_ENDED = select.EPOLLERR, select.EPOLLHUP


class Loop:
    """Calls handlers when their sockets are ready and timers when they are due, never too early.

    epoll counts in whole milliseconds and is asked to round up, so a timer is up to 1 ms late.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()  # so that the heap never has to compare two functions
        self._calls: deque[Callable[[], None]] = deque()
        self._doomed: list[socket.socket] = []
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake_fd, READABLE)
        self._handlers[self._wake_fd] = self._on_wake

    def watch(self, sock: socket.socket, events: int, handler: Callable[[int], None]) -> None:
        """Call `handler(events)` when one of `events` is there, and always on FAILED and BOTH_ENDED."""
        self._epoll.register(sock.fileno(), events)
        self._handlers[sock.fileno()] = handler

    def change(self, sock: socket.socket, events: int) -> None:
        """Watch an already watched socket for other events."""
        self._epoll.modify(sock.fileno(), events)

    def unwatch(self, sock: socket.socket) -> None:
        """Stop watching; a socket that is not watched is left as it is."""
        if self._handlers.pop(sock.fileno(), None):
            self._epoll.unregister(sock.fileno())

    def close(self, sock: socket.socket) -> None:
        """Close a socket after this round, as events already fetched may name its descriptor."""
        self.unwatch(sock)
        self._doomed.append(sock)

    def at(self, due_s: float, callback: Callable[[], None]) -> None:
        """Call back once, when `time.monotonic()` has reached `due_s`."""
        heapq.heappush(self._timers, (due_s, next(self._order), callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the loop's thread; the only method for other threads."""
        self._calls.append(callback)
        os.eventfd_write(self._wake_fd, 1)

    def run_calls(self) -> None:
        """Run the calls of other threads now."""
        while self._calls:
            self._calls.popleft()()

    def run(self, until: Callable[[], bool]) -> None:
        """Run until `until()` is true."""
        timers = self._timers
        while not until():
            wait_s = max(0.0, timers[0][0] - time.monotonic()) if timers else None
            for fd, events in self._epoll.poll(wait_s):
                if handler := self._handlers.get(fd):
                    handler(events)
            now_s = time.monotonic()
            while timers and timers[0][0] <= now_s:
                heapq.heappop(timers)[2]()
            self._close_doomed()

    def end(self) -> None:
        """Close the loop's own descriptors; its owner closes the sockets."""
        self._close_doomed()
        self._epoll.close()
        os.close(self._wake_fd)

    def _close_doomed(self) -> None:
        while self._doomed:
            self._doomed.pop().close()

    def _on_wake(self, _events: int) -> None:
        os.eventfd_read(self._wake_fd)
        self.run_calls()
