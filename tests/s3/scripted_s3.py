"""An S3 that a test can have answer otherwise: servers that refuse, lie, are elsewhere, or fall silent.

Behind it is a small one in memory, or a real server that it passes requests on to, as they came.
"""

import contextlib
import hashlib
import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from web.servers.s3_site import S3Site

NAME_SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: what was not sent is thrown away
_OF_THE_HOP = ("connection", "transfer-encoding", "content-length", "date", "server")  # headers


class FallSilent(Exception):
    """Raised by a script: there is no answer, but the connection stays open until the client leaves it."""


class ResetInstead(Exception):
    """Raised by a script: the connection is reset in place of an answer."""


@dataclass(frozen=True)
class Asked:
    """One request; header names in lower case."""

    method: str
    target: str  # as it was sent
    key: str  # without the bucket; empty for a question about that
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    port: int  # of the client

    @property
    def is_part(self) -> bool:
        return "partNumber" in self.query

    @property
    def is_completion(self) -> bool:
        return self.method == "POST" and "uploadId" in self.query

    @property
    def what(self) -> str:
        """Which kind of request it is."""
        if self.method == "POST":
            return "complete" if self.is_completion else "begin"
        if "uploadId" in self.query:
            return {"PUT": "part", "GET": "parts", "DELETE": "abort"}[self.method]
        return self.method if self.key else "list"


Answer = tuple[int, Mapping[str, str], bytes]


def error(status: int, code: str, message: str = "said so", **headers: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    return status, {key.replace("_", "-"): value for key, value in headers.items()}, body


@dataclass
class ScriptedS3:
    """`instead` answers in place of the server, unless it returns None; `after` changes what that answers."""

    url: str = ""
    behind: S3Site | None = None
    instead: Callable[[Asked], Answer | None] = lambda _: None
    after: Callable[[Asked, Answer], Answer] = lambda _, answer: answer
    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0  # that were opened
    open: dict[int, socket.socket] = field(default_factory=dict)  # by the client's port
    _parts: dict[str, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            found = self.instead(asked)
            if found is None and not self.behind:
                found = self.after(asked, self._answer(asked))
        return found or self.after(asked, self._passed_on(asked))

    def count(self, what: str) -> int:
        """How many requests of a kind came."""
        return sum(asked.what == what for asked in list(self.asked))

    def end_all_but(self, asked: Asked) -> None:
        """End all connections but that of a request, as servers do that have had none for a while."""
        for port, connection in list(self.open.items()):
            if port != asked.port:
                with contextlib.suppress(OSError):  # the client has left it
                    connection.shutdown(socket.SHUT_RDWR)

    def _passed_on(self, asked: Asked) -> Answer:
        assert self.behind
        with contextlib.closing(http.client.HTTPConnection("localhost", self.behind.port)) as connection:
            connection.request(asked.method, asked.target, asked.body, dict(asked.headers))
            reply = connection.getresponse()
            body = reply.read()
        kept = {name: value for name, value in reply.getheaders() if name.lower() not in _OF_THE_HOP}
        if asked.method == "HEAD":
            kept["Content-Length"] = reply.getheader("Content-Length", "0")
        return reply.status, kept, body

    def _answer(self, asked: Asked) -> Answer:
        if asked.method == "PUT" and "x-amz-copy-source" in asked.headers:
            return self._copied(asked)
        if asked.method == "PUT":
            stored = self._parts if asked.is_part else self.objects
            stored[asked.query.get("partNumber", asked.key)] = asked.body
            return 200, {"ETag": _etag(asked.body)}, b""
        if asked.method == "POST" and not asked.is_completion:
            return 200, {}, f"<R {NAME_SPACE}><UploadId>one</UploadId></R>".encode()
        if asked.is_completion:
            parts = [self._parts[number] for number in sorted(self._parts, key=int)]
            self.objects[asked.key] = b"".join(parts)
            digest = hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()
            return 200, {}, f'<R {NAME_SPACE}><ETag>"{digest}-{len(parts)}"</ETag></R>'.encode()
        if asked.what == "parts":
            return self._listed_parts()
        if asked.what == "abort":
            self._parts.clear()
            return 204, {}, b""
        if not asked.key:
            return (
                200,
                {},
                f"<ListBucketResult {NAME_SPACE}><KeyCount>0</KeyCount></ListBucketResult>".encode(),
            )
        found = self.objects.get(asked.key)
        if found is None:
            return error(404, "NoSuchKey")
        return _part_of(found, asked.headers.get("range", "")) or (200, {"ETag": _etag(found)}, found)

    def _listed_parts(self) -> Answer:
        parts = (
            f"<Part><PartNumber>{number}</PartNumber><ETag>{_etag(data)}</ETag><Size>{len(data)}</Size></Part>"
            for number, data in self._parts.items()
        )
        return 200, {}, f"<ListPartsResult {NAME_SPACE}>{''.join(parts)}</ListPartsResult>".encode()

    def _copied(self, asked: Asked) -> Answer:
        data = self.objects.get(_without_bucket(asked.headers["x-amz-copy-source"]))
        if data is None:
            return error(404, "NoSuchKey")
        if asked.headers.get("x-amz-copy-source-if-match", _etag(data)) != _etag(data):
            return error(412, "PreconditionFailed")
        if part := _part_of(data, asked.headers.get("x-amz-copy-source-range", "")):
            data = part[2]
        stored = self._parts if asked.is_part else self.objects
        stored[asked.query.get("partNumber", asked.key)] = data
        return 200, {}, f"<CopyResult {NAME_SPACE}><ETag>{_etag(data)}</ETag></CopyResult>".encode()


def _without_bucket(path: str) -> str:
    return unquote(path).lstrip("/").partition("/")[2]


def _part_of(found: bytes, asked: str) -> Answer | None:
    """Return what a header asks for, as far as it is there; None where it asks for all."""
    if not asked:
        return None
    start, end = (int(word) for word in asked.removeprefix("bytes=").split("-"))
    part = found[start : end + 1]
    if not part:
        return error(416, "InvalidRange")
    where = f"bytes {start}-{start + len(part) - 1}/{len(found)}"
    return 206, {"ETag": _etag(found), "Content-Range": where}, part


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


@contextlib.contextmanager
def scripted_s3(behind: S3Site | None = None) -> Iterator[ScriptedS3]:
    """Run one; `behind`: the real server that requests are passed on to."""
    made, is_over = ScriptedS3(behind=behind), threading.Event()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            made.connections += 1
            super().setup()

        def _do(self) -> None:
            parts = urlsplit(self.path)
            asked = Asked(
                self.command,
                self.path,
                _without_bucket(parts.path),
                {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()},
                {key.lower(): value for key, value in self.headers.items()},
                self.rfile.read(int(self.headers.get("Content-Length", "0"))),
                self.client_address[1],
            )
            try:
                status, headers, body = made.answer(asked)
            except (FallSilent, ResetInstead) as fault:
                self._fail(fault)
                return
            (self.send_response_only if "Date" in headers else self.send_response)(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client may not want it any more
                self.wfile.write(b"" if self.command == "HEAD" else body)

        def _fail(self, fault: Exception) -> None:
            self.close_connection = True
            if isinstance(fault, ResetInstead):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                return
            self.connection.settimeout(0.05)
            while not is_over.is_set():
                with contextlib.suppress(TimeoutError):
                    if not self.connection.recv(1):
                        return

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # clients leave as they like
                super().handle()

        def __getattr__(self, name: str) -> Callable[[], None]:  # do_GET and the like
            if not name.startswith("do_"):
                raise AttributeError(name)
            return self._do

        def log_message(self, *_: object) -> None:
            pass

    class Listening(ThreadingHTTPServer):
        def process_request(self, request: Any, client_address: Any) -> None:
            """Known before any request over a later connection is answered."""
            made.open[client_address[1]] = request
            super().process_request(request, client_address)

    with Listening(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield made
        finally:
            is_over.set()
            server.shutdown()
            thread.join()
