"""A server of XRootD on loopback with files in memory, which leads clients to a file of their own host."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HELLO_BYTES, HEADER_BYTES = 20, 24
VERSION, IS_SERVER = 0x520, 1
OK, ERROR, REDIRECT = 0, 4003, 4004  # kXR_ok, ...
NOT_FOUND, THERE = 3011, 3018
QUERY, CLOSE, PROTOCOL, LOGIN, MKDIR, MV, OPEN, READ, RM, STAT, WRITE, TRUNCATE = (
    *(3001, 3003, 3006, 3007, 3008, 3009, 3010, 3013, 3014, 3017, 3019, 3028),
)
NEW, UPDATE = 0x08, 0x20  # of what is to be opened
IS_FOLDER, FLAGS = 0x13, 0x30


@dataclass
class LeadingServer:
    """`leads`: requests that are led to the file `to` of whoever asks; `led`: those that were."""

    to: Path
    leads: set[int] = field(default_factory=set)
    led: list[int] = field(default_factory=list)
    files: dict[bytes, bytearray] = field(default_factory=dict)
    port: int = 0

    @property
    def url(self) -> str:
        """Of its root, with a slash at its end."""
        return f"root://127.0.0.1:{self.port}//"

    def serve(self, connection: socket.socket) -> None:
        """Answer one client until it has gone."""
        opened: list[bytes] = []
        with connection, contextlib.suppress(EOFError, OSError):
            _received(connection, HELLO_BYTES)
            connection.sendall(struct.pack(">HHiii", 0, OK, 8, VERSION, IS_SERVER))
            while True:
                header = _received(connection, HEADER_BYTES)
                (request,), (size,) = struct.unpack(">H", header[2:4]), struct.unpack(">i", header[20:])
                data = _received(connection, size)
                status, body = self._answer(request, header[4:20], data, opened)
                connection.sendall(header[:2] + struct.pack(">Hi", status, len(body)) + body)

    def _answer(self, request: int, words: bytes, data: bytes, opened: list[bytes]) -> tuple[int, bytes]:
        if request in self.leads:
            self.led.append(request)
            return REDIRECT, struct.pack(">i", -1) + f"file://localhost{self.to}".encode()
        if request == PROTOCOL:
            return OK, struct.pack(">ii", VERSION, IS_SERVER)
        if request == LOGIN:
            return OK, b"S" * 16
        if request == QUERY:
            return OK, b"none\n\0"
        name = b"/" + data.partition(b"?")[0].lstrip(b"/")
        (flags,) = struct.unpack(">H", words[2:4])
        if request == STAT:
            return self._described(name)
        if request == OPEN:
            if flags & NEW and name in self.files:
                return _refusal(THERE)
            if not flags & NEW and name not in self.files:
                return _refusal(NOT_FOUND)
            self.files.setdefault(name, bytearray())
            opened.append(name)
            _, described = self._described(name)
            return OK, struct.pack(">iii", len(opened) - 1, 0, 0) + described
        if request == MV:
            old, new = (b"/" + each.lstrip(b"/") for each in data.split(b" ", 1))
            self.files[new] = self.files.pop(old)
        if request in (READ, WRITE):
            handle, at, size = struct.unpack(">iqi", words)
            content = self.files[opened[handle]]
            if request == READ:
                return OK, bytes(content[at : at + size])
            content.extend(bytes(max(0, at - len(content))))
            content[at : at + len(data)] = data
        if request == TRUNCATE and not data:
            handle, at = struct.unpack(">iq", words[:12])
            del self.files[opened[handle]][at:]
        return OK, b""

    def _described(self, name: bytes) -> tuple[int, bytes]:
        if name == b"/":
            return OK, f"1 0 {IS_FOLDER} 1700000000\0".encode()
        if name not in self.files:
            return _refusal(NOT_FOUND)
        return OK, f"1 {len(self.files[name])} {FLAGS} 1700000000\0".encode()


@contextlib.contextmanager
def leading_server(to: Path) -> Iterator[LeadingServer]:
    """It answers while in the `with` block."""
    server = LeadingServer(to)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.port = listening.getsockname()[1]

        def accept() -> None:
            with contextlib.suppress(OSError):  # it has been shut down
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=server.serve, args=(connection,), daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield server
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _refusal(code: int) -> tuple[int, bytes]:
    return ERROR, struct.pack(">i", code) + b"no\0"
