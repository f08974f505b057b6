"""A client and a server that talk through the delaying proxy, for its tests."""

import contextlib
import re
import select
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from mpx_lab.proxy import DelayProxy

PATIENCE_S = 30
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class World:
    """A client and a server with a control connection through the proxy; the server's side is ours."""

    proxy: DelayProxy
    client: socket.socket
    server: socket.socket
    opened: list[socket.socket] = field(default_factory=list)

    def passive(self) -> tuple[socket.socket, tuple[str, int]]:
        """Have the server announce a port; return its listener and the address the client is told."""
        listener = self.keep(listen(self.server.getsockname()[0]))
        port = listener.getsockname()[1]
        self.server.sendall(b"229 Entering Extended Passive Mode (|||%d|)\r\n" % port)
        told = re.search(rb"\|\|\|(\d+)\|", read_line(self.client))
        assert told
        assert int(told[1]) != port
        return listener, (self.proxy.host, int(told[1]))

    def data(self, passive: tuple[socket.socket, tuple[str, int]]) -> tuple[socket.socket, socket.socket]:
        """Open a data connection from the client; return the client's and the server's socket."""
        listener, address = passive
        client = self.keep(socket.create_connection(address, PATIENCE_S))
        return client, self.keep(accept(listener))

    def keep(self, sock: socket.socket) -> socket.socket:
        self.opened.append(sock)
        return sock


def listen(host: str = "127.0.0.1") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family, backlog=64)
    listener.settimeout(PATIENCE_S)
    return listener


def accept(listener: socket.socket) -> socket.socket:
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE_S)
    return accepted


def read_line(sock: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = sock.recv(1)
        assert byte, f"the connection ended after {line!r}"
        line += byte
    return line


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(1 << 20), b""))


@contextlib.contextmanager
def world(host: str = "127.0.0.1", **options: float) -> Iterator[World]:
    with (
        listen(host) as front,
        DelayProxy((host, front.getsockname()[1]), host=host, **{"rtt_s": 0.0, **options}) as proxy,
        socket.create_connection((host, proxy.port), PATIENCE_S) as client,
        accept(front) as server,
    ):
        made = World(proxy, client, server)
        try:
            yield made
        finally:
            for sock in made.opened:
                sock.close()


def assert_nothing_has_come(sock: socket.socket) -> None:
    assert select.select([sock], [], [], 0) == ([], [], [])


def assert_reset(sock: socket.socket) -> None:
    with pytest.raises(ConnectionResetError):
        while sock.recv(1 << 20):
            pass


def send_and_end(sock: socket.socket, data: bytes) -> None:
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)


def is_refused(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, PATIENCE_S).close()
    except ConnectionRefusedError:
        return True
    return False
