"""The listening port of a download whose connections show who they are (GSI): a handshake comes first.

Anybody may connect to a port that listens. Each connection has its handshake in a thread of its own, so that
nobody holds up others, and no more of these run at once than are needed and MOST_STRANGERS beside them.
"""

import contextlib
import errno
import socket
import threading
from collections.abc import Callable

from mpx.endpoints.ftp.mode_e.data_listener import MOST_STRANGERS, PAUSE_S
from mpx.endpoints.ftp.secured import Secured
from mpx.errors import MpxError
from mpx.net import tcp

_PASSING = (errno.ECONNABORTED, errno.EAGAIN)
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class SecuredListener(threading.Thread):
    """Accepts connections until `most` have been admitted, or until it is closed.

    `connected` is called with the address of each; `admit` with each that is the server's, from any thread,
    and answers whether there is use for it. `stays_open`: see DataListener.
    """

    def __init__(
        self,
        listener: socket.socket,
        most: int,
        secured: Secured,
        timeout_s: float,
        *,
        connected: Callable[[str], None],
        admit: Callable[[socket.socket], bool],
        stays_open: bool = False,
    ) -> None:
        """`timeout_s`: for a handshake."""
        super().__init__(name="mpx-inbound", daemon=True)
        host, port = listener.getsockname()[:2]
        self.address: tcp.Address = (str(host), int(port))
        self.ports = (int(port),)
        self._listener = listener
        self._most = most
        self._secured, self._timeout_s = secured, timeout_s
        self._connected, self._admit = connected, admit
        self._stays_open = stays_open
        self._closed = threading.Event()
        self._guard = threading.Lock()  # of all that follows
        self._admitted = 0
        self._on_trial: dict[threading.Thread, threading.Event] = {}  # the oldest first; set: it is to end

    def run(self) -> None:
        """Accept, and have each connection shown to be the server's."""
        try:
            while not self._closed.is_set():
                try:
                    connection, address = self._listener.accept()
                except OSError as error:
                    if error.errno in _NO_DESCRIPTOR:
                        self._closed.wait(PAUSE_S)
                    elif error.errno not in _PASSING:
                        return
                    continue
                self._connected(str(address[0]))
                self._try(connection)
            if self._stays_open:
                self._closed.wait()
        finally:
            self._listener.close()

    def close(self) -> None:
        """Let no more in; the threads end soon."""
        self._closed.set()
        tcp.reset(self._listener)
        with self._guard:
            for is_over in self._on_trial.values():
                is_over.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until no connection is on trial any more."""
        super().join(timeout)
        with self._guard:
            threads = list(self._on_trial)
        for thread in threads:
            thread.join(timeout)

    def _try(self, connection: socket.socket) -> None:
        with self._guard:
            room = self._most + MOST_STRANGERS
            if len(self._on_trial) >= 2 * room:  # those that are to end have not yet
                connection.close()
                return
            waiting = [each for each in self._on_trial.values() if not each.is_set()]
            if len(waiting) >= room:  # the oldest makes room
                waiting[0].set()
            is_over = threading.Event()
            thread = threading.Thread(
                target=self._judge, args=(connection, is_over), name="mpx-inbound-trial", daemon=True
            )
            self._on_trial[thread] = is_over
            try:
                thread.start()
            except RuntimeError:  # no more threads
                del self._on_trial[thread]
                connection.close()

    def _judge(self, connection: socket.socket, is_over: threading.Event) -> None:
        try:
            with contextlib.suppress(MpxError):  # it was not the server's, or is lost; others may come
                found = self._secured.accept(connection, self._timeout_s, is_over.is_set)
                with self._guard:
                    is_wanted = self._admitted < self._most and not self._closed.is_set()
                    self._admitted += is_wanted
                    is_last = self._admitted == self._most
                if not (is_wanted and self._admit(found)):
                    found.close()
                if is_last and not self._stays_open:
                    tcp.reset(self._listener)
        finally:
            with self._guard:
                del self._on_trial[threading.current_thread()]
