"""A small S3 in memory that a test can have answer otherwise: servers that refuse, lie, or are elsewhere."""

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

NAME_SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@dataclass(frozen=True)
class Asked:
    """One request; header names in lower case."""

    method: str
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


Answer = tuple[int, Mapping[str, str], bytes]


def error(status: int, code: str, message: str = "said so", **headers: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    return status, {key.replace("_", "-"): value for key, value in headers.items()}, body


@dataclass
class ScriptedS3:
    """`instead` answers in place of the server, unless it returns None; `after` changes what that answers."""

    url: str = ""
    instead: Callable[[Asked], Answer | None] = lambda _: None
    after: Callable[[Asked, Answer], Answer] = lambda _, answer: answer
    objects: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0  # that were opened
    _parts: dict[str, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            return self.instead(asked) or self.after(asked, self._answer(asked))

    def _answer(self, asked: Asked) -> Answer:
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
        if not asked.key:
            return (
                200,
                {},
                f"<ListBucketResult {NAME_SPACE}><KeyCount>0</KeyCount></ListBucketResult>".encode(),
            )
        found = self.objects.get(asked.key)
        return error(404, "NoSuchKey") if found is None else (200, {"ETag": _etag(found)}, found)


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


@contextlib.contextmanager
def scripted_s3() -> Iterator[ScriptedS3]:
    made = ScriptedS3()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            made.connections += 1
            super().setup()

        def _do(self) -> None:
            parts = urlsplit(self.path)
            asked = Asked(
                self.command,
                unquote(parts.path).lstrip("/").partition("/")[2],
                {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()},
                {key.lower(): value for key, value in self.headers.items()},
                self.rfile.read(int(self.headers.get("Content-Length", "0"))),
                self.client_address[1],
            )
            status, headers, body = made.answer(asked)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        def __getattr__(self, name: str) -> Callable[[], None]:  # do_GET and the like
            if not name.startswith("do_"):
                raise AttributeError(name)
            return self._do

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
