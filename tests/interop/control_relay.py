"""Stands between a client and a real server on the control channel, where tests listen in and interfere.

Data connections do not pass it: client and server open those to each other.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

Change = Callable[[bytes], bytes]


def unchanged(line: bytes) -> bytes:
    return line


class ControlRelay:
    """Relays every control connection line by line, through `to_server` and `to_client`."""

    def __init__(
        self,
        port: int,
        *,
        host: str = "127.0.0.1",
        to_server: Change = unchanged,
        to_client: Change = unchanged,
    ) -> None:
        self.heard: list[bytes] = []  # what clients said
        self._server_port = port
        self._to_server = to_server
        self._to_client = to_client
        self._listener = socket.create_server((host, 0))
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._serve)]

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        for end in (*self._ends, self._listener):
            end.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._ends += [client, server]
            for source, target, change in (
                (client, server, self._listen_in),
                (server, client, self._to_client),
            ):
                self._threads.append(threading.Thread(target=_relay, args=(source, target, change)))
                self._threads[-1].start()

    def _listen_in(self, line: bytes) -> bytes:
        self.heard.append(line)
        return self._to_server(line)


def _relay(source: socket.socket, target: socket.socket, change: Change) -> None:
    with contextlib.suppress(OSError), source.makefile("rb") as lines:
        for line in lines:
            target.sendall(change(line))
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
