"""`mpx serve --stdio`: what ssh starts at the other end: the server of one copy, or a lane to it.

A lane passes its input and output on to the server, which runs already; it imports little, as there may be
many.
"""

import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

from mpx.endpoints.ftp.extensions.stdio import (
    LENGTH_DIGITS,
    LaneRequest,
    encode_ready,
    parse_length,
    parse_request,
)
from mpx.errors import UsageError

_PIECE_BYTES = 256 * 1024


def run(asked: bytes | None = None) -> None:
    """Do what standard input asks for, or `asked` if that was read already, to its end. Raises UsageError."""
    try:
        body = _exactly(0, parse_length(_exactly(0, LENGTH_DIGITS))) if asked is None else asked
        request = parse_request(body)
    except ValueError as error:
        raise UsageError(f"mpx copy starts it at the other end of ssh, and nobody else: {error}") from None
    if isinstance(request, LaneRequest):
        _lane(request)
    else:
        from mpx.serve.stdio_server import serve

        serve(request)


def main(asked: bytes | None = None) -> None:
    """Run, and say in one line what went wrong."""
    try:
        run(asked)
    except UsageError as error:
        sys.exit(f"mpx serve --stdio: {error}")


def _lane(request: LaneRequest) -> None:
    """Pass our input and output on to the server, and wait until it has no more use for them."""
    sock, ended = joined(0, 1)
    sock.sendall(encode_ready(None))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        try:
            server.connect(request.path)
            socket.send_fds(server, [request.use.encode("ascii")], [sock.fileno()])
        except OSError as error:
            raise UsageError(f"the server of this copy is not here any more: {error.strerror}") from None
    sock.close()
    ended.wait()


def joined(reads: int, writes: int) -> tuple[socket.socket, threading.Event]:
    """Return a socket for both descriptors, and what is set once the client has closed its end."""
    ours, theirs = socket.socketpair()
    ended = threading.Event()
    incoming = threading.Thread(
        target=_copy_in, args=(reads, theirs, ended), name="mpx-serve-in", daemon=True
    )
    outgoing = threading.Thread(target=_copy_out, args=(theirs, writes), name="mpx-serve-out", daemon=True)
    incoming.start()
    outgoing.start()
    return ours, ended


def _copy_in(source: int, target: socket.socket, ended: threading.Event) -> None:
    with suppress(OSError):
        while data := os.read(source, _PIECE_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    while True:  # who uses the other end may have left before the client
        try:
            if not os.read(source, _PIECE_BYTES):
                break
        except OSError:
            break
    ended.set()


def _copy_out(source: socket.socket, target: int) -> None:
    with suppress(OSError):
        while data := source.recv(_PIECE_BYTES):
            view = memoryview(data)
            while view:
                view = view[os.write(target, view) :]
    with suppress(OSError), Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), target)  # closed, but its number is not for another file


def _exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            raise ValueError("its input has ended")
        data += piece
    return data
