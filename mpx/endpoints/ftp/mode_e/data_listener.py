"""The listening port of a download: a connection is on trial until its first MODE E header has come.

Anybody may connect to a port that listens, and a server may send from other hosts than the one we talk to.
So a connection is judged by its first header and not by its address. One that does not fit is closed, and
the transfer goes on (docs/decisions/0010).
"""

import contextlib
import errno
import select
import socket
import threading
from collections.abc import Callable

from mpx.endpoints.ftp.framing import HEADER_BYTES, UNDEFINED, BlockHeader, unpack_header
from mpx.net import tcp

MOST_STREAMS = 1 << 16  # a header that announces more was not made by a server
MOST_STRANGERS = 64  # on trial at once, beside as many as were asked for from the server's own address
PAUSE_S = 0.05  # when this process has no descriptor left for a connection
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class DataListener(threading.Thread):
    """Accepts connections until `most` of them were admitted, or until it is closed.

    `stays_open`: the port goes on listening then, as the kernel lets further subflows in at a port that
    listens only. Nobody is accepted there any more.

    `connected` is called with the address of each; `admit` with each whose first header makes sense as
    such, and answers whether it belongs to what was asked for.
    """

    def __init__(
        self,
        listener: socket.socket,
        most: int,
        *,
        server_host: str,
        connected: Callable[[str], None],
        admit: Callable[[socket.socket, BlockHeader], bool],
        stays_open: bool = False,
    ) -> None:
        super().__init__(name="mpx-inbound", daemon=True)
        host, port = listener.getsockname()[:2]
        self.address: tcp.Address = (str(host), int(port))
        self.ports = (int(port),)
        self._listener = listener
        self._most = most
        self._server_host = server_host
        self._connected = connected
        self._admit = admit
        self._stays_open = stays_open
        self._admitted = 0
        self._closed = threading.Event()
        self._on_trial: dict[int, socket.socket] = {}
        self._strangers: list[int] = []  # of those, in the order in which they came
        self._from_server: list[int] = []
        self._poll = select.poll()

    def run(self) -> None:
        """Accept and judge."""
        listening = self._listener.fileno()
        self._poll.register(listening, select.POLLIN)
        try:
            while self._admitted < self._most and not self._closed.is_set():
                for number, _ in self._poll.poll():
                    if number != listening:
                        self._judge(number)
                    elif not self._accept():
                        return
            if self._stays_open:
                self._closed.wait()
        finally:
            self._listener.close()
            for connection in self._on_trial.values():
                connection.close()

    def close(self) -> None:
        """Stop accepting; the thread ends soon."""
        self._closed.set()
        tcp.reset(self._listener)

    def _accept(self) -> bool:
        """Put one more connection on trial; False when the port is closed."""
        try:
            connection, address = self._listener.accept()
        except OSError as error:
            if error.errno in _NO_DESCRIPTOR:
                return not self._closed.wait(PAUSE_S)
            return error.errno in (errno.ECONNABORTED, errno.EAGAIN)
        number = connection.fileno()
        with contextlib.suppress(OSError):  # wake us for a whole header, not for its first byte
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, HEADER_BYTES)
        self._on_trial[number] = connection
        self._poll.register(number, select.POLLIN)
        alike, room = self._strangers, MOST_STRANGERS
        if address[0] == self._server_host:  # others use that host, too
            alike, room = self._from_server, MOST_STRANGERS + self._most
        alike.append(number)
        if len(alike) > room:
            self._release(alike[0]).close()
        self._connected(str(address[0]))
        return True

    def _judge(self, number: int) -> None:
        """Admit or drop a connection that has said something, or was closed."""
        if number not in self._on_trial:
            return  # it made room for a later one just now
        connection = self._release(number)
        try:
            said = connection.recv(HEADER_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            belongs = len(said) == HEADER_BYTES and self._belongs(connection, unpack_header(said))
        except (OSError, ValueError):
            belongs = False
        if belongs:
            self._admitted += 1
        else:
            connection.close()

    def _belongs(self, connection: socket.socket, header: BlockHeader) -> bool:
        plausible = not header.descriptor & UNDEFINED and (header.total_streams or 0) <= MOST_STREAMS
        return plausible and self._admit(connection, header)

    def _release(self, number: int) -> socket.socket:
        self._poll.unregister(number)
        for alike in (self._strangers, self._from_server):
            if number in alike:
                alike.remove(number)
        return self._on_trial.pop(number)
