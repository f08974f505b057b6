"""A connected datagram socket for methods of probing: times of sending and arrival, and errors."""

import os
import select
import socket
import time
from collections.abc import Callable

from mpx.rtt.method import wait
from mpx.rtt.timestamps import Arrival, receive, stamp_arrivals

_KEEP_S = 60.0  # a probe without an answer by then is lost
_MOST_AT_ONCE = 64  # read at once: however many a hostile peer sends, the next probe leaves in time


class Datagrams:
    """Owns `connection`. Where the peer refuses or cannot be reached, only `trouble` says so.

    Raises OSError where the socket lacks what is needed.
    """

    def __init__(self, connection: socket.socket, host: str, port: int) -> None:
        self.trouble = ""
        self._sent: dict[int, float] = {}
        self._watched: dict[int, Callable[[], object]] = {}  # by descriptor
        self._socket = connection
        try:
            self._socket.setblocking(False)
            stamp_arrivals(self._socket)
        except OSError:
            self._socket.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._is_connected = True
        try:
            self._socket.connect((host, port))
        except OSError as failure:
            self._is_connected = False
            self.trouble = failure.strerror or str(failure)

    def watch(self, other: socket.socket, call: Callable[[], object]) -> None:
        """While waiting, call `call` whenever another socket is readable."""
        self._watched[other.fileno()] = call
        self._poll.register(other, select.POLLIN)

    def send(self, number: int, data: bytes) -> float:
        """Send a probe, and return when it left (monotonic clock, seconds)."""
        if error := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.trouble = os.strerror(error)  # of an earlier one: it would be reported for this one
        self._sent[number] = sent_s = time.monotonic()
        while self._sent[oldest := next(iter(self._sent))] < sent_s - _KEEP_S:
            del self._sent[oldest]
        self.send_other(data)
        return sent_s

    def send_other(self, data: bytes) -> None:
        """Send a datagram that is not a probe."""
        if self._is_connected:
            try:
                self._socket.send(data)
            except OSError as failure:
                self.trouble = failure.strerror or str(failure)

    def arrivals(self, until_s: float) -> list[Arrival]:
        """Return what has arrived; wait for the first until then. Raises what the calls of `watch` raise."""
        found: list[Arrival] = []
        while not found and (ready := wait(self._poll, until_s)):
            for descriptor, _ in ready:
                if descriptor in self._watched:
                    self._watched[descriptor]()
                else:
                    found += self._received()
            if time.monotonic() >= until_s:  # a hostile peer may send without end
                break
        return found

    def take_sent(self, number: int) -> float | None:
        """Return when a probe left; None for one that was answered before, or never sent."""
        return self._sent.pop(number, None)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _received(self) -> list[Arrival]:
        found: list[Arrival] = []
        try:
            while len(found) < _MOST_AT_ONCE:
                found.append(receive(self._socket))
        except BlockingIOError:
            pass  # that was all
        except OSError as failure:
            self.trouble = failure.strerror or str(failure)
        return found
