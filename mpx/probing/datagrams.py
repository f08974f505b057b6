"""A connected socket of datagrams for ways of probing: what left when, what came when, what went wrong."""

import os
import select
import socket
import time

from mpx.probing.way import wait
from mpx.timestamped import Arrival, receive, stamp_arrivals


class Datagrams:
    """Takes `connection` over. Other sides that refuse or cannot be reached are only told in `trouble`."""

    def __init__(self, connection: socket.socket, host: str, port: int) -> None:
        self.trouble = ""
        self._sent: dict[int, float] = {}
        self._socket = connection
        self._socket.setblocking(False)
        stamp_arrivals(self._socket)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        try:
            self._socket.connect((host, port))
        except OSError as failure:
            self.trouble = failure.strerror or str(failure)  # and so will every probe be

    def send(self, number: int, data: bytes) -> float:
        """Send a probe, and return when it left (monotonic clock, seconds)."""
        if error := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.trouble = os.strerror(error)  # of an earlier one, and would be in the way of this
        self._sent[number] = sent_s = time.monotonic()
        try:
            self._socket.send(data)
        except OSError as failure:
            self.trouble = failure.strerror or str(failure)
        return sent_s

    def arrivals(self, until_s: float) -> list[Arrival]:
        """Return what has come; wait for the first until then at most."""
        found: list[Arrival] = []
        while not found and wait(self._poll, until_s):
            try:
                while True:
                    found.append(receive(self._socket))
            except BlockingIOError:
                pass  # that was all
            except OSError as failure:
                self.trouble = failure.strerror or str(failure)
        return found

    def take_sent(self, number: int) -> float | None:
        """Return when a probe left, once: None for one that was answered before, or never sent."""
        return self._sent.pop(number, None)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
