"""A server of XRootD's own protocol that answers what a test says, without a login, for each name."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

CONFIG = 7  # kXR_Qconfig
LOGIN_AND_CONNECTION = (3011, 3018, 3023)  # ping, set, endsess
PROTOCOL, LOGIN, QUERY = 3006, 3007, 3001
KINDS = MappingProxyType({3009: "mv", 3014: "rm", 3017: "stat", 3027: "locate"})
NOT_AUTHORIZED, NOT_FOUND = 3010, 3011
_VERSION = 0x520
_FRAME, _SHAKEN, _HEAD = 24, 20, struct.Struct(">2sHi")

Reply = tuple[int, bytes]  # status and content
Answers = Callable[[str, list[str]], Reply]  # of what is asked, and the names


def fine(content: bytes = b"") -> Reply:
    return 0, content


def refused(number: int, why: str) -> Reply:
    return 4003, struct.pack(">i", number) + why.encode() + b"\0"


def led_to(port: int) -> Reply:
    return 4004, struct.pack(">i", port) + b"localhost"


@contextlib.contextmanager
def scripted_root(answers: Answers, told: Mapping[str, str]) -> Iterator[int]:
    """Its port, at loopback, while in the `with` block. `told`: what it is set up to be, as CONFIG asks.

    Of what `ASKED is refused` it tells nothing but that error number.
    """

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, EOFError):
            _taken(connection, _SHAKEN)
            connection.sendall(_HEAD.pack(b"\0\0", 0, 8) + struct.pack(">ii", _VERSION, 0))
            while True:
                frame = _taken(connection, _FRAME)
                stream, kind, infotype = struct.unpack_from(">2sHH", frame)
                content = _taken(connection, struct.unpack_from(">i", frame, 20)[0])
                status, reply = _answer(kind, infotype, content)
                connection.sendall(_HEAD.pack(stream, status, len(reply)) + reply)

    def _answer(kind: int, infotype: int, content: bytes) -> Reply:
        if kind == PROTOCOL:
            return fine(struct.pack(">ii", _VERSION, 2 if told["role"] == "manager" else 1))
        if kind == LOGIN:
            return fine(bytes(16))
        if kind in LOGIN_AND_CONNECTION:
            return fine()
        if kind == QUERY and infotype == CONFIG:
            asked = content.rstrip(b"\0\n").decode()
            refuses = told.get(f"{asked} is refused")
            return refused(int(refuses), "no") if refuses else fine(told.get(asked, asked).encode() + b"\n")
        names = [f"/{name.partition('?')[0].strip('/')}" for name in content.decode().split(" ")]
        return answers(KINDS.get(kind, ""), names)

    def accept() -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _taken(connection: socket.socket, count: int) -> bytes:
    taken = b""
    while len(taken) < count:
        more = connection.recv(count - len(taken))
        if not more:
            raise EOFError
        taken += more
    return taken
