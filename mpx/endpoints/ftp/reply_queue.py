"""The replies that have come over a control channel and were not read yet."""

import contextlib
import socket
import time
from collections import deque

from mpx.endpoints.ftp.refusals import check_first, if_tls
from mpx.endpoints.ftp.wire import Reply, ReplyReader
from mpx.errors import ConnectionLost, TransferTimeout
from mpx.net import tcp


class ReplyQueue(deque[Reply]):
    """In the order in which they came; one thread uses it."""

    def __init__(self, connection: socket.socket, peer: str) -> None:
        """`peer`: the server, as shown to people."""
        super().__init__()
        self._connection, self._peer = connection, peer
        self._reader = ReplyReader()
        self._has_heard = False  # something of the server

    @property
    def taken_bytes(self) -> int:
        """The length of all that have come."""
        return self._reader.taken_bytes

    def receive(self, wait_s: float) -> None:
        """Wait so long for a reply where there is none; raises ConnectionLost."""
        deadline = time.monotonic() + wait_s
        is_late = False
        while not self and not is_late:
            try:
                self._receive_some(max(deadline - time.monotonic(), 0.001))
            except TransferTimeout:
                return
            is_late = time.monotonic() >= deadline

    @property
    def is_answered(self) -> bool:
        """Whether one that ends a command, or the session, is here or just coming."""
        if all(reply.is_preliminary for reply in self):
            with contextlib.suppress(TransferTimeout):
                self._receive_some(0.001)
        return not all(reply.is_preliminary for reply in self)

    def _receive_some(self, wait_s: float) -> None:
        """Take what comes within that; raises TransferTimeout, ConnectionLost, AuthenticationError."""
        try:
            data = tcp.receive(self._connection, wait_s, self._peer)
            if not data:
                raise ConnectionLost(f"{self._peer} closed the connection")
        except ConnectionLost as error:
            if self._has_heard:
                raise
            raise ConnectionLost(f"{error} before its greeting{if_tls(self._peer)}") from None
        if not self._has_heard:
            check_first(data, self._peer)
            self._has_heard = True
        try:
            self.extend(self._reader.feed(data))
        except ValueError as error:
            raise ConnectionLost(f"{self._peer} does not speak FTP: {error}") from None
