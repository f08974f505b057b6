"""What comes over an HTTP connection: heads line by line, bodies straight into the caller's buffer."""

import select
import socket
import struct
import time
from collections.abc import Callable

from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError, TransferTimeout
from mpx.net.tcp import STOP_INTERVAL_S

_BUFFER_BYTES = 16 * 1024
_TICK = struct.pack(
    "ll", 0, 50_000
)  # a receive that is to fill a buffer hands over what has come after 50 ms
_NO_CERTIFICATE = "TLSV13_ALERT_CERTIFICATE_REQUIRED"  # after a handshake that has ended well for us
_LONGEST_LINE = 65_536


class HttpIncoming:
    """Reads one connection. Used by one thread; another may shut the connection down.

    Each method waits `timeout_s` for more at most (TransferTimeout), and raises Interrupted soon after `stop`
    says so, and ConnectionLost.
    """

    def __init__(
        self, connection: socket.socket, peer: str, timeout_s: float, stop: Callable[[], bool]
    ) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TICK)
        self._connection, self._peer = connection, peer
        self.timeout_s, self.stop = timeout_s, stop
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._begin = self._end = 0  # what of it has come and was not read

    @property
    def has_some(self) -> bool:
        """Whether something has come that was not read."""
        return self._begin < self._end

    def look(self) -> bool:
        """Tell whether something has come, or the connection has ended; waits for nothing."""
        if self.has_some:
            return True
        self._begin = self._end = 0
        try:
            self._end = self._connection.recv_into(self._buffer, len(self._buffer), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:  # as who reads is told
            return True
        return True

    def readline(self, limit: int = _LONGEST_LINE) -> bytes:
        """Return the next line with its end, `limit` bytes of it at most; what there is at the end."""
        line = b""
        while len(line) < limit:
            if not self.has_some and not self._more():
                break
            view = self._buffer[self._begin : min(self._end, self._begin + limit - len(line))]
            found = bytes(view)
            length = found.find(b"\n") + 1 or len(found)
            line += found[:length]
            self._begin += length
            if line.endswith(b"\n"):
                break
        return line

    def read_into(self, view: memoryview) -> int:
        """Fill a buffer as far as bytes come soon; return how many did, 0 at the end of the connection."""
        if self.has_some:
            size = min(len(view), self._end - self._begin)
            view[:size] = self._buffer[self._begin : self._begin + size]
            self._begin += size
            return size
        return self._receive(view, socket.MSG_WAITALL)

    def _more(self) -> bool:
        self._begin = 0
        self._end = 0  # as the receive may fail
        self._end = self._receive(self._buffer, socket.MSG_DONTWAIT)
        return self._end > 0

    def _receive(self, view: memoryview, flag: int) -> int:
        try:
            while True:
                try:
                    return self._connection.recv_into(view, len(view), flag)
                except BlockingIOError:
                    self._wait()
        except OSError as error:
            if self.stop():
                raise Interrupted from None
            raise lost(self._peer, error) from None

    def _wait(self) -> None:
        """Wait until something has come, or the connection has ended."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        until_s = time.monotonic() + self.timeout_s
        while not poll.poll(1000 * min(STOP_INTERVAL_S, max(0.0, until_s - time.monotonic()))):
            if self.stop():
                raise Interrupted
            if time.monotonic() >= until_s:
                raise TransferTimeout(f"nothing came from {self._peer} within {self.timeout_s:g} s")


def lost(peer: str, error: OSError) -> MpxError:
    """Return what it means that a connection fails; AuthenticationError where a certificate was asked for."""
    if getattr(error, "reason", None) == _NO_CERTIFICATE:
        return AuthenticationError(
            f"{peer} asks for a certificate of yours; name one, and its key, with --cert and --key"
        )
    return ConnectionLost(f"the connection to {peer} was lost: {_why(error)}")


def _why(error: OSError) -> str:
    """Say what became of a connection: OpenSSL's own words name its source files."""
    if type(error).__name__ == "SSLEOFError":
        return "it ended without the end that TLS has (close_notify)"
    return str(getattr(error, "reason", None) or error.strerror or error)
