"""A small web server that lies about digests, or stores other bytes than it is sent; it has no WebDAV.

Told to copy from another one (HTTP-TPC) it answers what the test says.
"""

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from web.servers.host_certificate import host_certificate

Headers = dict[str, str]
CopyAnswer = tuple[int, Headers, Iterable[bytes]]
POLL_S = 0.01  # whether to end


class ScriptedSite:
    """`digest(name, wanted)` returns the headers that tell a digest, when one is wanted."""

    def __init__(self, digest: Callable[[str, str], Headers], name: str = "dCache/9.2") -> None:
        self.digest, self.name = digest, name
        self.files: dict[str, bytes] = {}
        self.stored = 0  # files that were sent
        self.asked: list[tuple[str, str]] = []  # method and name, of each question
        self.damage: Callable[[bytes], bytes] = lambda content: content  # of what is stored
        # What COPY is answered, by name and headers: status, headers, and the pieces of a body; an OSError
        # that comes in the place of one cuts the connection. None: it does not know COPY.
        self.copies: Callable[[str, Headers], CopyAnswer] | None = None
        self.macaroon: str | None = None  # that it makes for whoever asks
        self.url = ""


@contextlib.contextmanager
def scripted_site(
    digest: Callable[[str, str], Headers] = lambda *_: {}, name: str = "dCache/9.2", *, tls: bool = False
) -> Iterator[ScriptedSite]:
    """It runs while in the `with` block."""
    site = ScriptedSite(digest, name)

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def version_string(self) -> str:
            return site.name

        def handle_one_request(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle_one_request()

        @property
        def _name(self) -> str:
            return unquote(urlsplit(self.path).path)

        def _answer(self, status: int, headers: Headers | None = None, body: bytes = b"") -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_OPTIONS(self) -> None:
            self._answer(200, {"Allow": "OPTIONS, GET, HEAD, PUT, MOVE, DELETE"})

        def do_HEAD(self) -> None:
            site.asked.append(("HEAD", self._name))
            content = b"" if self._name == "/" else site.files.get(self._name)
            if content is None:
                self._answer(404)
                return
            wanted = self.headers.get("Want-Digest", "")
            told = site.digest(self._name, wanted) if wanted else {}
            self._answer(200, {"Content-Length": str(len(content)), "Accept-Ranges": "bytes", **told})

        def do_GET(self) -> None:
            site.asked.append(("GET", self._name))
            content = site.files.get(self._name)
            if content is None:
                self._answer(404)
                return
            span = self.headers.get("Range")
            if not span:
                self._answer(200, {}, content)
                return
            first, last = (int(each or len(content)) for each in span.removeprefix("bytes=").split("-"))
            last = min(last, len(content) - 1)
            told = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
            self._answer(206, told, content[first : last + 1])

        def do_PUT(self) -> None:
            if self.headers.get("Expect"):
                self.send_response_only(100)
                self.end_headers()
            content = self.rfile.read(int(self.headers["Content-Length"]))
            site.stored += 1
            site.files[self._name] = site.damage(content)
            self._answer(201)

        def do_MOVE(self) -> None:
            to = unquote(urlsplit(self.headers["Destination"]).path)
            site.files[to] = site.files.pop(self._name)
            self._answer(201)

        def do_DELETE(self) -> None:
            site.asked.append(("DELETE", self._name))
            self._answer(204 if site.files.pop(self._name, None) is not None else 404)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            site.asked.append(("POST", self._name))
            if site.macaroon is None:
                self._answer(405)
            else:
                self._answer(200, {}, json.dumps({"macaroon": site.macaroon}).encode())

        def do_COPY(self) -> None:
            site.asked.append(("COPY", self._name))
            if site.copies is None:
                self._answer(405)
                return
            status, headers, pieces = site.copies(self._name, dict(self.headers.items()))
            self.send_response(status)
            for key, value in {"Transfer-Encoding": "chunked", **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True

        def handle_expect_100(self) -> bool:
            return True  # do_PUT answers

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        site.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/"
        if tls:
            shown, context = host_certificate(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(shown.certificate, shown.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), name="scripted web server")
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
