"""Direct connections to our own server at the other end of ssh: inside TLS, where it can be reached.

Both ends show the one certificate that was made for this copy and sent through ssh.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL
from mpx.endpoints.ftp.extensions.stdio import Ready
from mpx.endpoints.ftp.ssh.certificates import CopyCertificates
from mpx.endpoints.ftp.wire import command
from mpx.endpoints.ssh.addresses import addresses_of
from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError
from mpx.net import tcp, tls
from mpx.net.dial import Dial

_FIRST_PORT = 1024  # that is connected to
_READ_BYTES = 4096
_SOON_S, _NOT_SOON_S = 0.03, 1.0
_AHEAD_S = 5.0  # half of what a server waits for the opening of a connection


class DirectWay:
    """The way to one server that does not go through ssh, if there is one. For any thread."""

    def __init__(self, name: str, host: str, shown: CopyCertificates, ready: Ready) -> None:
        """`host`: where ssh has come to; `shown`: by both ends; `ready`: what the server has said."""
        self.address: tcp.Address | None = None  # where the server answers
        self.was_tried = threading.Event()  # so that `address` tells
        self._name, self._host, self._ready = name, host, ready
        self._shown = shown
        self._there_s = time.monotonic()  # since when the server is there
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._ahead: tuple[float, tls.TlsSocket] | None = None  # a connection for data, and since when

    def start(self, timeout_s: float) -> None:
        """Find out where the server can be reached, meanwhile."""
        threading.Thread(target=self._try, args=(timeout_s,), name="mpx-direct", daemon=True).start()

    def control(self, timeout_s: float, stop: Callable[[], bool]) -> tls.TlsSocket | None:
        """Return a control channel; None where all goes through ssh. Raises Interrupted.

        While it is not known whether the server answers, its first address is tried as long as is worth it.
        """
        address, was_tried = self.address, self.was_tried.is_set()
        if address is None and not was_tried:
            address = next(iter(self._candidates()), None)
        if address is None:
            return None
        until_s = time.monotonic() + worth_waiting_s(time.monotonic() - self._there_s)

        def is_over() -> bool:
            in_vain = self.was_tried.is_set() and self.address is None
            return stop() or in_vain or (self.address is None and time.monotonic() > until_s)

        try:
            return self._secured(
                tcp.connect(address, timeout_s, stop=is_over), CONTROL_PROTOCOL, timeout_s, is_over
            )
        except Interrupted:
            if stop():
                raise
        except (AuthenticationError, ConnectionLost):
            if was_tried:
                self.give_up()
        return None

    def data(self, dial: Dial, timeout_s: float, stop: Callable[[], bool]) -> tls.TlsSocket | None:
        """Return a connection for data, before its opening; None where all goes through ssh.

        Raises Interrupted, and UsageError as tcp.connect.
        """
        self.was_tried.wait(worth_waiting_s(time.monotonic() - self._there_s))
        if dial.is_ordinary and (ahead := self._take_ahead()):
            dial.adapt(ahead)
            return ahead
        if (address := self.address) is not None:
            try:
                return self._secured(dial.connect(address), DATA_PROTOCOL, timeout_s, stop)
            except (AuthenticationError, ConnectionLost):
                self.give_up()
        return None

    def addresses(self) -> tuple[tcp.Address, ...]:
        """Return where others may reach the server, the best first."""
        found = self._candidates()
        return tuple(dict.fromkeys([self.address, *found] if self.address else found))

    def _candidates(self) -> list[tcp.Address]:
        if self._ready.port < _FIRST_PORT:
            return []
        hosts = addresses_of(self._host, self._ready.host, self._closed.is_set)
        return [(host, self._ready.port) for host in hosts]

    def give_up(self) -> None:
        """Let all go through ssh from now on."""
        self.address = None
        if ahead := self._take_ahead(0.0):
            ahead.close()

    def close(self) -> None:
        """Try no more."""
        self._closed.set()
        self.give_up()

    def _take_ahead(self, most_s: float = _AHEAD_S) -> tls.TlsSocket | None:
        """Return the connection that was made before it was wanted, once, if it is not older than this."""
        with self._lock:
            ahead, self._ahead = self._ahead, None
        if ahead is None:
            return None
        since_s, connection = ahead
        if time.monotonic() - since_s <= most_s:
            return connection
        connection.close()
        return None

    # --- trying --------------------------------------------------------------------------------------

    def _try(self, timeout_s: float) -> None:
        """Try one address after the other, with a connection for data, which then need not wait for one.

        A server that shows our certificate is ours. Should it not take the same one from us (its clock may be
        wrong), that shows only when it greets us.
        """
        for address in self._candidates():
            with contextlib.suppress(MpxError, OSError):
                connection = tcp.connect(address, timeout_s, stop=self._closed.is_set)
                ahead = self._secured(connection, DATA_PROTOCOL, timeout_s, self._closed.is_set)
                with self._lock:
                    self.address, self._ahead = address, (time.monotonic(), ahead)
                self.was_tried.set()
                if not self._greets(address, timeout_s):
                    self.give_up()
                break
        self.was_tried.set()
        if self._closed.is_set():
            self.give_up()

    def _greets(self, address: tcp.Address, timeout_s: float) -> bool:
        """Tell whether the server greets us there: then it has taken our certificate."""
        try:
            connection = tcp.connect(address, timeout_s, stop=self._closed.is_set)
            with self._secured(connection, CONTROL_PROTOCOL, timeout_s, self._closed.is_set) as control:
                control.settimeout(timeout_s)
                is_there = control.recv(_READ_BYTES).startswith(b"220")
                control.sendall(command("QUIT"))
        except (MpxError, OSError):
            return False
        return is_there

    def _secured(
        self, connection: socket.socket, protocol: str, timeout_s: float, stop: Callable[[], bool]
    ) -> tls.TlsSocket:
        made = tls.context(server=False, protocols=[protocol])
        tls.load_pem(made, self._shown.own)
        secured = tls.secured(connection, made, self._name, timeout_s, stop=stop)
        if secured.getpeercert(binary_form=True) != self._shown.own_der:
            secured.close()
            raise AuthenticationError(f"another server answers for {self._name}; nothing was sent")
        return secured


def worth_waiting_s(there_s: float) -> float:
    """Return how long data wait to see whether they can go directly, if the server is there since `there_s`.

    That shows after two round trips. Who wants to send data has made two of them since, and to begin
    through ssh takes two more and a process at either end.
    """
    return _SOON_S + there_s * 0.6 if there_s < _NOT_SOON_S else 0.0
