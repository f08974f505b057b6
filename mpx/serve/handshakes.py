"""TLS handshakes under way: one thread for all, so that those who never finish cost little.

What comes out of a handshake is a control connection, or a data connection once its opening was read.
"""

import logging
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from mpx.endpoints.ftp.extensions import dialing
from mpx.endpoints.ftp.extensions.dialing import parse_opening
from mpx.net import tls
from mpx.net.tls import TlsSocket
from mpx.serve import admission
from mpx.serve.admission import Room
from mpx.serve.tickets import Tickets

HANDSHAKE_S = 10.0  # from the connection to the end of its handshake, and of its opening if it is for data
# Streams of several copies from one address may begin at once, and each handshake costs little.
ROOM = Room(strangers=2048, strangers_of_party=1024)

_log = logging.getLogger(__name__)


class _Pending:
    """A connection that is not through yet; as `admission.Occupant`."""

    user, busy = "", False

    def __init__(self, connection: TlsSocket, host: str) -> None:
        self.connection = connection
        self.party = admission.party(host)
        self.since_s = time.monotonic()
        self.is_through = False  # the handshake
        self.opening = b""


class Handshakes:
    """Takes connections that were accepted, and gives back those whose handshake is done."""

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        tickets: Tickets,
        begin: Callable[[TlsSocket], None],
    ) -> None:
        """`context` is asked for each; `begin` gets control connections, in the thread of the handshakes."""
        self._context = context
        self._tickets = tickets
        self._room = ROOM
        self._begin = begin
        self._lock = threading.Lock()
        self._new: list[_Pending] = []  # guarded by _lock
        self._pending: dict[int, _Pending] = {}  # of the thread, as is _poll
        self._poll = select.poll()
        self._stopping = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._wake, select.POLLIN)
        self._thread = threading.Thread(target=self._run, name="mpx-serve-handshakes", daemon=True)
        self._thread.start()

    def add(self, sock: socket.socket, host: str) -> None:
        """Begin a handshake. Raises OSError if the client has gone already."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = tls.wrapped(sock, self._context(), server=True)
        connection.settimeout(0.0)
        with self._lock:
            self._new.append(_Pending(connection, host))
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Close those that are not through; the thread ends."""
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)

    def _run(self) -> None:
        while not self._stopping:
            oldest = next(iter(self._pending.values()), None)  # they stand in the order of their beginning
            wait_s = max(0.0, oldest.since_s + HANDSHAKE_S - time.monotonic()) if oldest else None
            for fd, _ in self._poll.poll(None if wait_s is None else wait_s * 1000 + 1):
                if fd == self._wake:
                    os.eventfd_read(self._wake)
                    self._take_new()
                elif pending := self._pending.get(fd):
                    self._go_on(fd, pending)
            self._drop_late(time.monotonic())
        self._take_new()
        for fd in list(self._pending):
            self._drop(fd)

    def _take_new(self) -> None:
        with self._lock:
            new, self._new = self._new, []
        for pending in new:
            leaves = admission.stranger_to_drop(list(self._pending.values()), pending.party, self._room)
            if leaves:
                self._drop(leaves.connection.fileno())
            fd = pending.connection.fileno()
            self._pending[fd] = pending
            self._poll.register(fd, select.POLLIN)
            self._go_on(fd, pending)

    def _go_on(self, fd: int, pending: _Pending) -> None:
        """Do what can be done without waiting."""
        try:
            if not pending.is_through:
                pending.connection.do_handshake()
                pending.is_through = True
            if pending.connection.selected_alpn_protocol() == dialing.DATA_PROTOCOL:
                self._read_opening(fd, pending)
            else:
                self._release(fd)
                self._begin(pending.connection)
        except (ssl.SSLWantReadError, BlockingIOError):
            self._poll.modify(fd, select.POLLIN)
        except ssl.SSLWantWriteError:
            self._poll.modify(fd, select.POLLOUT)
        except (OSError, ValueError) as error:
            _log.info("%s: no TLS: %s", pending.party, error)
            self._drop(fd)
        except Exception:  # of one client; others are to get in all the same
            _log.exception("%s: cannot take the connection", pending.party)
            self._drop(fd)

    def _read_opening(self, fd: int, pending: _Pending) -> None:
        missing = dialing.BYTES - len(pending.opening)
        data = pending.connection.recv(missing, socket.MSG_DONTWAIT)
        pending.opening += data
        if not data:
            raise ValueError("closed before its opening")
        if len(pending.opening) < dialing.BYTES:
            raise BlockingIOError
        opening = parse_opening(pending.opening)
        arrivals = self._tickets.find(opening)
        if arrivals is None:
            raise ValueError("its opening is not valid")
        self._release(fd)
        pending.connection.settimeout(None)
        arrivals.put(pending.connection, opening.first)

    def _drop_late(self, now_s: float) -> None:
        while oldest := next(iter(self._pending.items()), None):
            fd, pending = oldest
            if pending.since_s + HANDSHAKE_S > now_s:
                return
            self._drop(fd)

    def _release(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self._pending[fd]

    def _drop(self, fd: int) -> None:
        """Close a connection, if it is still one of ours."""
        if pending := self._pending.get(fd):
            self._release(fd)
            with suppress(OSError):
                pending.connection.close()
