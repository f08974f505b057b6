"""Whoever is between a client and a server: passes everything on, and does one thing to one connection."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

Bend = Callable[[int, bool, int, bytes], bytes]
"""What becomes of bytes: of connection number, whether from the client, at which offset. Raises Cut."""


class Cut(Exception):
    """The connection ends behind these bytes."""

    def __init__(self, last: bytes) -> None:
        super().__init__()
        self.last = last


class ManInTheMiddle:
    """Listens on loopback and passes connections on to a server there."""

    def __init__(self, server_port: int, bend: Bend) -> None:
        self._server_port = server_port
        self._bend = bend
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for sock in (self._listener, *self._sockets):
            sock.close()

    def _start(self, run: Callable[..., None], *words: object) -> None:
        thread = threading.Thread(target=run, args=words)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._sockets += [client, server]
                self._start(self._pass, client, server, number, True)
                self._start(self._pass, server, client, number, False)
                number += 1

    def _pass(self, source: socket.socket, target: socket.socket, number: int, from_client: bool) -> None:
        at = 0
        with contextlib.suppress(OSError):
            try:
                while data := source.recv(65536):
                    target.sendall(self._bend(number, from_client, at, data))
                    at += len(data)
            except Cut as cut:
                target.sendall(cut.last)
        for sock in (source, target):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def flipped(connection: int, from_client: bool, position: int) -> Bend:
    """Have one bit of one byte change."""

    def bend(number: int, client: bool, at: int, data: bytes) -> bytes:
        if (number, client) != (connection, from_client) or not at <= position < at + len(data):
            return data
        changed = bytearray(data)
        changed[position - at] ^= 0x01
        return bytes(changed)

    return bend


def cut(connection: int, from_client: bool, position: int) -> Bend:
    """Have one connection end behind so many bytes of one direction, in order."""

    def bend(number: int, client: bool, at: int, data: bytes) -> bytes:
        if (number, client) != (connection, from_client) or position >= at + len(data):
            return data
        raise Cut(data[: position - at])

    return bend
