"""The control connection of a session inside TLS."""

import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from mpx.net.tls import RECORD_BYTES, TlsSocket
from mpx.serve.control import Control

_Moved = TypeVar("_Moved")


class SecureControl(Control):
    """As Control. OpenSSL takes one call at a time of a connection, and another thread may dismiss us."""

    def __init__(self, sock: TlsSocket, login_s: float) -> None:
        super().__init__(sock, login_s)
        self._guard = threading.Lock()
        self._wait_s = 0.0  # each call of the kernel may take so long
        sock.settimeout(0.0)

    def _wait_at_most(self, option: int, until_s: float) -> None:  # noqa: ARG002  for both directions
        self._wait_s = self._left_s(until_s)

    def _recv(self, flags: int) -> bytes:
        # A record at once: what OpenSSL held back would not show in a poll of the socket.
        return self._retried(lambda: self._sock.recv(RECORD_BYTES, socket.MSG_DONTWAIT), select.POLLIN, flags)

    def _send(self, view: memoryview, flags: int = 0) -> int:
        return self._retried(lambda: self._sock.send(view, socket.MSG_DONTWAIT), select.POLLOUT, flags)

    def _retried(self, call: Callable[[], _Moved], event: int, flags: int) -> _Moved:
        """Call until the connection is ready, unless the flags say that it may not wait."""
        until_s = time.monotonic() + self._wait_s
        while True:
            try:
                with self._guard:
                    return call()
            except BlockingIOError:
                if flags & socket.MSG_DONTWAIT or not self._is_ready(event, until_s - time.monotonic()):
                    raise

    def _is_ready(self, event: int, wait_s: float) -> bool:
        poll = select.poll()
        poll.register(self._sock, event)
        return bool(poll.poll(max(0.0, wait_s) * 1000))
