"""The control connection of a session: command lines in, replies out, and a look at what is coming.

Commands are taken strictly in order. While a transfer runs only two things count at once: an ABOR
anywhere in what has arrived, and that the client has gone.
"""

import re
import select
import socket
import struct
from contextlib import suppress

from mpx import tcp

LONGEST_LINE_BYTES = 64 * 1024  # a REST with many ranges is long; more is an attack
LONGEST_QUEUE = 1000  # commands waiting behind a transfer, as in a stock server
_ONE_READ_BYTES = 4096
_SEND_TIMEOUT_S = 60  # a client that does not read its replies is given up

# ABOR usually follows the Telnet signals "interrupt process" and "data mark" (RFC 959).
_TELNET = b"\xff\xf4\xf2"
_ABOR = re.compile(rb"^[\xff\xf4\xf2]*ABOR[ \t]*\r?\n", re.IGNORECASE | re.MULTILINE)


class ControlClosed(Exception):
    """The session is over: the client has gone, or broke a limit (then `farewell` tells it so)."""

    def __init__(self, why: str, farewell: tuple[int, str] | None = None) -> None:
        super().__init__(why)
        self.farewell = farewell


class Control:
    """One control connection. Used by its session's thread alone, but for `shutdown`."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self.closed = False
        self.local: str = sock.getsockname()[0]
        self.peer: str = sock.getpeername()[0]
        self.family = sock.family
        self.congestion = tcp.congestion_of(sock)  # what the kernel, or the route, has for this client
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)  # Telnet's data mark comes urgent
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_TIMEOUT_S, 0))

    def fileno(self) -> int:
        """Return the descriptor, for poll."""
        return self._sock.fileno()

    def fill(self) -> None:
        """Take what has arrived, without waiting. Raises ControlClosed when a limit is broken."""
        try:
            data = self._sock.recv(_ONE_READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return
        self._buffer += data
        if len(self._buffer) - (self._buffer.rfind(b"\n") + 1) > LONGEST_LINE_BYTES:
            raise ControlClosed("an endless line", (500, "Line too long."))
        if self._buffer.count(b"\n") > LONGEST_QUEUE:
            raise ControlClosed("too many commands at once", (500, "Pipeline queue full."))

    def interrupted(self) -> bool:
        """Tell whether what runs should stop: the client has gone, or an ABOR has arrived."""
        while not self.closed and self._poll.poll(0):
            before = len(self._buffer)
            self.fill()
            if len(self._buffer) == before:
                break
        return self.closed or _ABOR.search(self._buffer) is not None

    def next_line(self, timeout_s: float) -> str:
        """Return the next command line, without its end. Raises ControlClosed."""
        while (end := self._buffer.find(b"\n")) < 0:
            if self.closed:
                raise ControlClosed("closed by the client")
            if not self._poll.poll(timeout_s * 1000):
                raise ControlClosed("idle", (421, "Idle Timeout: closing control connection."))
            self.fill()
        line = bytes(self._buffer[:end]).rstrip(b"\r").lstrip(_TELNET)
        del self._buffer[: end + 1]
        return line.decode("utf-8", "surrogateescape")

    def send(self, reply: bytes) -> None:
        """Send a reply, or a part of one. Raises ControlClosed if the client does not take it."""
        try:
            self._sock.sendall(reply)
        except OSError as error:
            self.closed = True
            raise ControlClosed(f"cannot answer: {error}") from error

    def shutdown(self) -> None:
        """End the session from another thread: whatever waits on this connection sees its end."""
        with suppress(OSError):  # it may have gone already
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()
