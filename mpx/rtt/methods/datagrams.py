"""A connected socket of datagrams for ways of probing: what left when, what came when, what went wrong."""

import os
import select
import socket
import time
from collections.abc import Callable

from mpx.rtt.method import wait
from mpx.rtt.timestamps import Arrival, receive, stamp_arrivals

_KEEP_S = 60.0  # whose answer takes longer is lost
_MOST_AT_ONCE = 64  # however many an unfriendly side sends, the next probe leaves in time


class Datagrams:
    """Takes `connection` over. Other sides that refuse or cannot be reached are only told in `trouble`.

    Raises OSError where the socket cannot be had as it is needed.
    """

    def __init__(self, connection: socket.socket, host: str, port: int) -> None:
        self.trouble = ""
        self._sent: dict[int, float] = {}
        self._heeded: dict[int, Callable[[], object]] = {}  # by descriptor
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

    def heed(self, other: socket.socket, call: Callable[[], object]) -> None:
        """While waiting, call `call` whenever something comes on another socket."""
        self._heeded[other.fileno()] = call
        self._poll.register(other, select.POLLIN)

    def send(self, number: int, data: bytes) -> float:
        """Send a probe, and return when it left (monotonic clock, seconds)."""
        if error := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.trouble = os.strerror(error)  # of an earlier one, and would be in the way of this
        self._sent[number] = sent_s = time.monotonic()
        while self._sent[oldest := next(iter(self._sent))] < sent_s - _KEEP_S:
            del self._sent[oldest]
        self.say(data)
        return sent_s

    def say(self, data: bytes) -> None:
        """Send what is no probe."""
        if self._is_connected:
            try:
                self._socket.send(data)
            except OSError as failure:
                self.trouble = failure.strerror or str(failure)

    def arrivals(self, until_s: float) -> list[Arrival]:
        """Return what has come; wait for the first until then at most. Raises what is raised on heeding."""
        found: list[Arrival] = []
        while not found and (ready := wait(self._poll, until_s)):
            for descriptor, _ in ready:
                if descriptor in self._heeded:
                    self._heeded[descriptor]()
                else:
                    found += self._received()
            if time.monotonic() >= until_s:  # there is always more of what an unfriendly side sends
                break
        return found

    def take_sent(self, number: int) -> float | None:
        """Return when a probe left, once: None for one that was answered before, or never sent."""
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
