"""The control connection of a session: command lines in, replies out, and a look at what is coming.

Commands are taken strictly in order. While a transfer runs only two things count at once: an ABOR
anywhere in what has arrived, and that the client has gone. Nothing a client sends renews a deadline but
a whole command, and before login not even that.
"""

import math
import select
import socket
import struct
import time
from contextlib import suppress

from mpx.endpoints.ftp.wire import without_telnet
from mpx.net import congestion_control

LONGEST_LINE_BYTES = 16 * 1024  # a name has 4 KiB at most, a REST with 500 ranges 14
LONGEST_BEFORE_LOGIN_BYTES = 1024
LONGEST_QUEUE = 1000  # commands waiting behind a transfer, as in a stock server
LONGEST_QUEUE_BYTES = 256 * 1024
_TOO_LONG = (500, "Line too long.")
_ONE_READ_BYTES = 4096
_MOST_DRAINED_BYTES = 256 * 1024
_SEND_TIMEOUT_S = 60.0  # a client that does not read a whole reply in that time is given up
_ONE_WAIT_S = 60.0  # of the kernel; deadlines may be farther away

# ABOR usually follows the Telnet signals "interrupt process" and "data mark" (RFC 959).
_TELNET = b"\xff\xf4\xf2"


class ControlClosed(Exception):
    """The session is over: the client has gone, or broke a limit (then `farewell` tells it so)."""

    def __init__(self, why: str, farewell: tuple[int, str] | None = None) -> None:
        super().__init__(why)
        self.farewell = farewell


class Control:
    """One control connection. Used by its session's thread alone, but for `shutdown`."""

    def __init__(self, sock: socket.socket, login_s: float, place: tuple[str, str] | None = None) -> None:
        """`login_s`: how long the client may take until `admit` is called.

        `place`: our address and the client's, where the connection itself has none, as it goes through ssh.
        """
        self._sock = sock
        self._buffer = bytearray()
        self._queued = b""
        self._searched = 0  # bytes of it that hold no ABOR, and no part of a line but whole ones
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._login_by_s = time.monotonic() + login_s
        self._longest_line_bytes = LONGEST_BEFORE_LOGIN_BYTES
        self.closed = False
        self.received_bytes = 0
        self.local: str = place[0] if place else sock.getsockname()[0]
        self.peer: str = place[1] if place else sock.getpeername()[0]
        self.family = socket.AF_INET6 if ":" in self.local else socket.AF_INET
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)  # Telnet's data mark comes urgent
        self.congestion = ""  # what the kernel, or the route, has for this client
        if place is None:
            self.congestion = congestion_control.congestion_of(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """Return the descriptor, for poll."""
        return self._sock.fileno()

    def admit(self) -> None:
        """Let this client have the time and the lines of one that has logged in."""
        self._login_by_s = math.inf
        self._longest_line_bytes = LONGEST_LINE_BYTES

    def interrupted(self) -> bool:
        """Tell whether what runs should stop: the client has gone, or an ABOR has arrived."""
        while not self.closed and self._poll.poll(0):
            before = self.received_bytes
            self._receive(socket.MSG_DONTWAIT)
            if self.received_bytes == before:
                break
        return self.closed or self._holds_abort()

    def holds_line(self) -> bool:
        """Tell whether the next command has arrived already."""
        return b"\n" in self._buffer

    def line_behind(self, number: int) -> str | None:
        """Return the command that comes after so many others, and has arrived; it stays where it is."""
        start = 0
        for _ in range(number):
            start = self._buffer.find(b"\n", start) + 1
            if not start:
                return None
        end = self._buffer.find(b"\n", start)
        return _decoded(self._buffer[start:end]) if end >= 0 else None

    def next_line(self, timeout_s: float) -> str:
        """Return the next command line, without its end. Raises ControlClosed."""
        until_s = min(time.monotonic() + timeout_s, self._login_by_s)
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            if self.closed:
                raise ControlClosed("closed by the client")
            searched = len(self._buffer)
            self._wait_at_most(socket.SO_RCVTIMEO, until_s)
            self._receive()
        if end > self._longest_line_bytes:
            raise self._too_long()
        line = _decoded(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = max(0, self._searched - end - 1)
        return line

    def _too_long(self) -> ControlClosed:
        return ControlClosed(f"command line exceeds {self._longest_line_bytes // 1024} KiB", _TOO_LONG)

    def queue(self, reply: bytes) -> None:
        """Have a reply leave with the next one that is sent, or by `flush`."""
        self._queued += reply

    def flush(self) -> None:
        """Send what is queued. Raises ControlClosed if the client does not take it in time."""
        if self._queued:
            self.send(b"")

    def send(self, reply: bytes) -> None:
        """Send a reply, or a part of one. Raises ControlClosed if the client does not take it in time."""
        queued, self._queued = self._queued, b""
        view, until_s = memoryview(queued + reply), 0.0
        try:
            view = view[self._send(view, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            pass
        except OSError as error:
            self._lost(error)
        while view:
            until_s = until_s or min(time.monotonic() + _SEND_TIMEOUT_S, self._login_by_s)
            self._wait_at_most(socket.SO_SNDTIMEO, until_s)
            try:
                view = view[self._send(view) :]
            except BlockingIOError:
                continue
            except OSError as error:
                self._lost(error)

    def say_farewell(self, reply: bytes) -> None:
        """Send a last reply without waiting, and see to it that it arrives."""
        with suppress(OSError):  # the client may have gone already
            self._send(memoryview(self._queued + reply), socket.MSG_DONTWAIT)
            self._sock.shutdown(socket.SHUT_WR)
            drained = 0  # else the kernel answers what nobody read with a reset, which may overtake the reply
            while drained < _MOST_DRAINED_BYTES and (data := self._recv(socket.MSG_DONTWAIT)):
                drained += len(data)

    def dismiss(self, reply: bytes) -> None:
        """Send a last reply without waiting and end the session, from another thread."""
        with suppress(OSError):
            self._send(memoryview(reply), socket.MSG_DONTWAIT)
        self.shutdown()

    def shutdown(self) -> None:
        """End the session from another thread: whatever waits on this connection sees its end."""
        with suppress(OSError):  # it may have gone already
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def _lost(self, error: OSError) -> None:
        self.closed = True
        raise ControlClosed(f"cannot answer: {error}") from error

    def _wait_at_most(self, option: int, until_s: float) -> None:
        """Have the kernel wait no longer than that; it costs a client one call less than to poll first."""
        seconds, rest = divmod(math.ceil(self._left_s(until_s) * 1e6), 1_000_000)
        self._sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, rest))

    def _left_s(self, until_s: float) -> float:
        """Return for how long the kernel may wait; raises ControlClosed if it is late already."""
        left_s = min(until_s - time.monotonic(), _ONE_WAIT_S)
        if left_s <= 0:
            raise ControlClosed("too slow", (421, "Idle Timeout: closing control connection."))
        return left_s

    def _recv(self, flags: int) -> bytes:
        return self._sock.recv(_ONE_READ_BYTES, flags)

    def _send(self, view: memoryview, flags: int = 0) -> int:
        return self._sock.send(view, flags)

    def _receive(self, flags: int = 0) -> None:
        """Take what has arrived. Raises ControlClosed when a limit is broken."""
        try:
            data = self._recv(flags)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return
        self._buffer += data
        self.received_bytes += len(data)
        if len(self._buffer) - (self._buffer.rfind(b"\n") + 1) > self._longest_line_bytes:
            raise self._too_long()
        if len(self._buffer) > LONGEST_QUEUE_BYTES or self._buffer.count(b"\n") > LONGEST_QUEUE:
            raise ControlClosed("too many commands at once", (500, "Pipeline queue full."))

    def _holds_abort(self) -> bool:
        """Tell whether one of the lines that have arrived is an ABOR; each line is looked at once."""
        end = self._buffer.rfind(b"\n") + 1
        if end > self._searched:
            lines = bytes(self._buffer[self._searched : end]).split(b"\n")
            if any(_plain(line).rstrip(b" \t\r").upper() == b"ABOR" for line in lines):
                return True
            self._searched = end
        return False


def _decoded(line: bytearray) -> str:
    return _plain(bytes(line).rstrip(b"\r")).decode("utf-8", "surrogateescape")


def _plain(line: bytes) -> bytes:
    """Return a line without what Telnet has before it; an urgent byte may have come alone."""
    return without_telnet(line).lstrip(_TELNET) if line[:1] in _TELNET else line
