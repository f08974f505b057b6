"""Several questions to a web server that takes none ahead: each over a connection of its own."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from mpx.endpoints.web.connection import HttpConnection, WebRequest
from mpx.endpoints.web.reply import HttpReply
from mpx.errors import ConnectionLost, TransferTimeout
from mpx.net import tcp

MOST_CONNECTIONS = 8
_HANDSHAKES = 3  # round trips until a connection is open, as long as so many questions take over another one


class SideBySide:
    """Connections to one server, which are kept from one batch of questions to the next. For one thread."""

    def __init__(
        self,
        connect: Callable[[], HttpConnection],
        answer: Callable[[HttpConnection, str], tuple[HttpReply, bytes]],
    ) -> None:
        """`connect` opens one; `answer` reads the answer to a method, with its body. Both raise as usual."""
        self._connect, self._answer = connect, answer
        self._idle: list[HttpConnection] = []

    def take(self) -> HttpConnection | None:
        """Return a connection on which nothing is under way, which is kept no longer; None: there is none."""
        return self._idle.pop() if self._idle else None

    def keep(self, connection: HttpConnection | None) -> None:
        """Take a connection on which nothing is under way."""
        if connection is not None:
            self._idle.append(connection)

    def ask(
        self, requests: Sequence[WebRequest], body: bytes, most: int, patience_s: float | None
    ) -> Iterator[tuple[HttpReply, bytes] | None]:
        """Give the answer to each request, in order; None for one that is to be asked alone.

        `most`: how many are asked at once; fewer where opening connections takes longer than it saves, or
        where the server admits no more. `patience_s`: see HttpConnection.be_patient. Raises what keeps the
        first connection from being opened.
        """
        most = min(most, max(len(self._idle), math.isqrt(len(requests) // _HANDSHAKES), 1))
        under_way: deque[tuple[WebRequest, HttpConnection | None]] = deque()
        try:
            for request in requests:
                connection: HttpConnection | None = None
                while under_way and connection is None:
                    try:
                        connection = self._open() if len(under_way) < most else None
                    except (ConnectionLost, TransferTimeout):
                        most = len(under_way)  # the server admits no more
                    if connection is None:
                        yield self._next(under_way)
                connection = connection or self._open()
                connection.be_patient(patience_s)
                under_way.append((request, self._sent(connection, request, body)))
            while under_way:
                yield self._next(under_way)
        finally:
            for _, connection in under_way:
                if connection is not None:
                    connection.close()
            for connection in self._idle:
                connection.be_patient(None)

    def _open(self) -> HttpConnection:
        """Return a connection that lasts."""
        while self._idle:
            connection = self._idle.pop()
            if tcp.is_open(connection.socket):
                return connection
            connection.close()
        return self._connect()

    @staticmethod
    def _sent(connection: HttpConnection, request: WebRequest, body: bytes) -> HttpConnection | None:
        try:
            connection.send(request, body)
        except (ConnectionLost, TransferTimeout):
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise
        return connection

    def _next(
        self, under_way: deque[tuple[WebRequest, HttpConnection | None]]
    ) -> tuple[HttpReply, bytes] | None:
        """Return the answer that was asked for first."""
        request, connection = under_way.popleft()
        if connection is None:
            return None
        try:
            reply, content = self._answer(connection, request.method)
        except (ConnectionLost, TransferTimeout):
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise
        if reply.is_reusable:
            self._idle.append(connection)
        else:
            connection.close()
        return reply, content

    def close(self) -> None:
        """Close all connections."""
        while connection := self.take():
            connection.close()
