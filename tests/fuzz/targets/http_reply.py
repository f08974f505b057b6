"""What an HTTP server sends in answer to some requests, over a connection that carries it in two parts.

The first byte says where it is cut, and what was asked.
"""

import contextlib
import socket
import threading

from mpx.endpoints.web.connection import HttpConnection
from mpx.endpoints.web.url import Origin
from mpx.errors import ConnectionLost

SEEDS = [
    b"\x10HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 206 Partial Content\r\n"
    b"Content-Range: bytes 0-1/5\r\nContent-Length: 2\r\n\r\nhe",
    b"\x41HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"\x82HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\n",
    b'\xc3HTTP/1.0 200\r\nConnection: close\r\nETag: "x"\r\n folded\r\n\r\nto the end',
    b"\x07HTTP/1.1 204 No Content\nLast-Modified: now\n\nHTTP/1.1 304 Not Modified\r\n\r\n",
]
ALLOWED = (ConnectionLost,)
WEIGHT = 4
_METHODS = ("GET", "HEAD", "PUT", "CONNECT")
_MOST_ANSWERS = 50


def parse(data: bytes) -> None:
    """Read answers until the connection ends, each to the end of its body."""
    choice, sent = (data[0], data[1:]) if data else (0, b"")
    method, cut = _METHODS[choice % 4], len(sent) * (choice >> 2) // 64
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sending = threading.Thread(target=_send, args=(theirs, sent, cut), daemon=True)
        sending.start()
        try:
            _read(HttpConnection(ours, Origin(False, "localhost", 80), 30.0, lambda: False), method)
        finally:
            ours.close()
            sending.join()


def _read(http: HttpConnection, method: str) -> None:
    for number in range(_MOST_ANSWERS):
        reply = http.reply(method, wants_continue=number == 0)
        assert 100 <= reply.status < 600
        assert reply.told_bytes is None or reply.told_bytes >= 0
        view, came = memoryview(bytearray(4096)), 0
        while size := reply.read_into(view):
            came += size
        assert reply.is_ended
        assert reply.size_bytes is None or came == reply.size_bytes
        if not reply.is_reusable:
            return


def _send(connection: socket.socket, data: bytes, cut: int) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(data[:cut])
        connection.sendall(data[cut:])
        connection.shutdown(socket.SHUT_WR)
