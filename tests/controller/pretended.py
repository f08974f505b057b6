"""A controller without switches: it keeps path sets, or does what a bad one does, over real HTTP."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATHS = 4
LEASE_S = 60.0


class Book:
    """What a controller keeps: of each path set the streams and their paths."""

    def __init__(self) -> None:
        self.sets: dict[int, dict[int, int]] = {}
        self.pairs: dict[int, tuple[str, str]] = {}
        self.last = 0
        self.taken: set[int] = set()  # ports that others steer
        self.unknown: set[str] = set()  # hosts that it has not seen
        self.most: int | None = None  # streams of one set
        self.tells_most = True
        self.renewed = 0
        self.feedback = 0
        self.tokens: set[str | None] = set()
        self.away = False
        self.busy = 0  # so often streams are not placed
        self.requests = 0
        self.refused = 0  # for too many streams
        self.answers = threading.Event()  # until then nobody gets an answer
        self.answers.set()

    def asked(self, method: str, what: str, body: Any) -> tuple[int, Any]:
        """Return the status and the answer to a request."""
        self.requests += 1
        self.answers.wait()
        if self.away:
            return 503, {"detail": "later"}
        words = what.strip("/").split("/")
        if what == "/path-sets":
            if self.unknown.intersection((body["source"], body["sink"])):
                return 404, {"detail": "no host has that address"}
            self.last += 1
            self.sets[self.last], self.pairs[self.last] = {}, (body["source"], body["sink"])
            return 201, self.described(self.last)
        number = int(words[1])
        if number not in self.sets:
            return 404, {"detail": f"there is no path set {number}"}
        if method == "DELETE":
            del self.sets[number]
            return 204, None
        if words[2:] == ["renew"]:
            self.renewed += 1
            return 200, self.described(number)
        if words[2:] == ["feedback"]:
            self.feedback += 1
            return 204, None
        ports = self.sets[number]
        if words[2:] == ["streams", "remove"]:
            for port in body["ports"]:
                ports.pop(port, None)
            return 204, None
        if self.busy:
            self.busy -= 1
            return 429, {"detail": "too many"}
        if self.taken.intersection(body["ports"]):
            return 409, {"detail": "another path set steers that"}
        if self.most is not None and len(ports.keys() | set(body["ports"])) > self.most:
            self.refused += 1
            return 429, {"detail": f"it may have {self.most} streams"}
        for port in body["ports"]:
            ports[port] = body["path"] if body["path"] is not None else len(ports) % PATHS
        return 200, {"paths": [ports[port] for port in body["ports"]]}

    def described(self, number: int) -> dict[str, Any]:
        """Return a path set as a controller tells of it."""
        path = {"streams": 1, "rate_bps": 1e8, "rtt_s": 0.01, "up": True}
        told = {"id": number, "streams": PATHS, "lease_s": LEASE_S, "most_streams": self.most}
        if not self.tells_most:
            del told["most_streams"]
        return {**told, "paths": [{**path, "group": place} for place in range(PATHS)]}


@contextmanager
def kept(book: Book, certificate: Path | None = None) -> Iterator[str]:
    """Yield the URL at which a book is kept; with TLS if there is a file of a certificate and its key."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            book.tokens.add(self.headers.get("authorization"))
            text = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, told = book.asked(self.command, self.path, json.loads(text or "null"))
            answer = b"" if told is None else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def saying(answer: bytes | None, *, for_ever: bool = False) -> Iterator[str]:
    """Yield the URL of one that answers everybody so (None: nothing, and keeps the connection)."""
    ended = threading.Event()

    def speak(caller: socket.socket) -> None:
        with caller, suppress(OSError):
            caller.recv(65536)
            if answer is not None:
                caller.sendall(answer)
            while (answer is None or for_ever) and not ended.wait(0.05):
                caller.sendall(b"x" if for_ever else b"")

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=speak, args=(listening.accept()[0],), daemon=True).start()

    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
