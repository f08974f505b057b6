"""A server of HTTP and WebDAV on loopback whose every answer a test may replace, for peers that lie.

It keeps files in memory. Where a script has an entry for a method, that is called in place of what the server
would do (`Exchange.usual`): it returns the answer, or None when it has sent all itself.
"""

import contextlib
import posixpath
import re
import select
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import quote, unquote, urlsplit

from web.servers.host_certificate import host_certificate

SOON_S = 0.2  # within which what was sent at once has come
PATIENCE_S = 60.0  # of the server, longer than any client's here
_MODIFIED = "Sun, 06 Nov 1994 08:49:37 GMT"
_RANGE = re.compile(r"bytes=([0-9]+)-([0-9]+)")
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: what was not sent is thrown away


@dataclass(frozen=True)
class Answer:
    """What the server says; it adds the length of the body unless there are `headers` for that."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    ends: bool = False  # the connection is closed behind it, which nobody is told

    def packed(self, *, is_head: bool = False) -> bytes:
        """Return it as it is sent."""
        names = {name.lower() for name in self.headers}
        length = {} if names & {"content-length", "transfer-encoding"} else {"Content-Length": len(self.body)}
        lines = [f"{name}: {value}" for name, value in {**length, **self.headers}.items()]
        head = "\r\n".join([f"HTTP/1.1 {self.status} said", *lines, "", ""]).encode("latin-1")
        return head if is_head else head + self.body

    def having(self, **headers: str) -> "Answer":
        """Return it with other headers; `_` in a name stands for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {name: value for name, value in self.headers.items() if name not in named}
        return replace(self, headers={**kept, **named})


@dataclass(frozen=True)
class Asked:
    """A request, without its body."""

    method: str
    target: str
    headers: Mapping[str, str]  # names in lower case
    connection: int  # from 0

    @property
    def path(self) -> str:
        """Decoded, without the query."""
        return unquote(self.target.partition("?")[0])

    @property
    def range(self) -> tuple[int, int] | None:
        """The bytes that are asked for, where they end exclusive."""
        found = _RANGE.fullmatch(self.headers.get("range", ""))
        return (int(found[1]), int(found[2]) + 1) if found else None


Scripted = Callable[["Exchange"], Answer | None]
Script = Mapping[str, Scripted]


class Exchange:
    """A request that is being answered."""

    def __init__(self, server: "ScriptedHttp", connection: socket.socket, asked: Asked) -> None:
        self.server, self.connection, self.asked = server, connection, asked
        self.is_over = False  # of the connection
        self._body: bytes | None = None  # where it was read

    # --- for scripts ---------------------------------------------------------------------------------

    def say(self, data: bytes) -> None:
        """Send some bytes as they are."""
        self.connection.sendall(data)

    def bye(self, data: bytes = b"") -> None:
        """Close the connection as is right, after some bytes."""
        self.say(data)
        if isinstance(self.connection, ssl.SSLSocket):
            with contextlib.suppress(OSError):
                self.connection.unwrap()
        self.is_over = True

    def reset(self, data: bytes = b"") -> None:
        """Reset the connection, after some bytes."""
        self.say(data)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.is_over = True

    def hold(self) -> None:
        """Say nothing until the client goes, or the test ends."""
        with contextlib.suppress(OSError):
            while self.connection.recv(65536):
                pass
        self.is_over = True

    def wait_for_end(self) -> None:
        """Say nothing, and take nothing, until the test ends."""
        self.server.over.wait(PATIENCE_S)
        self.is_over = True

    def read(self, most_bytes: int) -> bytes:
        """Return so many bytes of the body, fewer at the end."""
        came = bytearray()
        while len(came) < most_bytes and (some := self.connection.recv(most_bytes - len(came))):
            came += some
        return bytes(came)

    @property
    def length(self) -> int:
        """Of the body, as it is told."""
        return int(self.asked.headers.get("content-length", 0))

    def body(self) -> bytes:
        """Return all of it, after 100 Continue where that is waited for."""
        if self._body is None:
            if self.asked.headers.get("expect"):
                self.say(b"HTTP/1.1 100 Continue\r\n\r\n")
            is_chunked = self.asked.headers.get("transfer-encoding") == "chunked"
            self._body = self._chunks() if is_chunked else self.read(self.length)
        return self._body

    def _chunks(self) -> bytes:
        came = bytearray()
        while size := int(read_line(self.connection), 16):
            came += self.read(size + 2)[:-2]
        read_line(self.connection)
        return bytes(came)

    def next_request(self) -> "Exchange | None":
        """Read the next request, which has no body, if several were sent at once."""
        if not select.select([self.connection], [], [], SOON_S)[0]:
            return None
        asked = _read_head(self.connection, self.asked.connection)
        if asked is None:
            return None
        self.server.heard.append(asked)
        return Exchange(self.server, self.connection, asked)

    # --- what it does otherwise ----------------------------------------------------------------------

    def usual(self) -> Answer:
        """Do what is asked for."""
        known = getattr(self, f"_{self.asked.method.lower()}", None)
        return known() if known else Answer(501)

    def _options(self) -> Answer:
        allow = "OPTIONS, GET, HEAD, PUT, DELETE, MKCOL, MOVE, PROPFIND"
        return Answer(headers={"DAV": "1", "Allow": allow} if self.server.is_dav else {"Allow": "GET, HEAD"})

    def _get(self) -> Answer:
        content = self.server.files.get(self.asked.path)
        if content is None:
            return Answer(404)
        about = {"ETag": tag_of(content), "Last-Modified": _MODIFIED, "Accept-Ranges": "bytes"}
        if (part := self.asked.range) is None:
            return Answer(200, about, content)
        start, end = part[0], min(part[1], len(content))
        if start >= end:
            return Answer(416, {"Content-Range": f"bytes */{len(content)}"})
        where = {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"}
        return Answer(206, {**about, **where}, content[start:end])

    _head = _get

    def _put(self) -> Answer:
        self.server.files[self.asked.path] = self.body()
        return Answer(201)

    def _delete(self) -> Answer:
        return Answer(404 if self.server.files.pop(self.asked.path, None) is None else 204)

    def _move(self) -> Answer:
        content = self.server.files.pop(self.asked.path, None)
        if content is None:
            return Answer(404)
        self.server.files[unquote(urlsplit(self.asked.headers["destination"]).path)] = content
        return Answer(201)

    def _mkcol(self) -> Answer:
        folder = self.asked.path.rstrip("/")
        if folder in self.server.folders:
            return Answer(405)
        if posixpath.dirname(folder).rstrip("/") not in self.server.folders:
            return Answer(409)
        self.server.folders.add(folder)
        return Answer(201)

    def _propfind(self) -> Answer:
        self.body()
        if not self.server.is_dav:
            return Answer(405)
        at, depth = self.asked.path.rstrip("/"), self.asked.headers.get("depth")
        found = [at] if at in self.server.files or at in self.server.folders else []
        if not found:
            return Answer(404)
        if depth == "1":
            known = [*self.server.files, *filter(None, self.server.folders)]
            found += [each for each in known if posixpath.dirname(each).rstrip("/") == at]
        return listing(*(self._described(each) for each in found))

    def _described(self, name: str) -> str:
        content = self.server.files.get(name)
        if content is None:
            return response(f"{name}/", "<D:resourcetype><D:collection/></D:resourcetype>")
        return response(
            name,
            f"<D:resourcetype/><D:getcontentlength>{len(content)}</D:getcontentlength>"
            f"<D:getetag>{tag_of(content)}</D:getetag><D:getlastmodified>{_MODIFIED}</D:getlastmodified>",
        )


class ScriptedHttp:
    """Runs while in the `with` block. `heard` holds all requests, in their order."""

    def __init__(
        self,
        script: Script | None = None,
        files: Mapping[str, bytes] | None = None,
        *,
        tls: bool = False,
        is_dav: bool = True,
    ) -> None:
        """`files`: contents by path; `tls`: with the certificate of tests/web/servers/host_certificate.py."""
        self.script: Script = script or {}
        self.files = dict(files or {})
        self.folders = {"", *filter(None, (posixpath.dirname(path).rstrip("/") for path in self.files))}
        self.is_dav = is_dav
        self.heard: list[Asked] = []
        self.ended: set[int] = set()  # connections
        self.over = threading.Event()
        self._context = _server_context() if tls else None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.origin = f"http{'s' if tls else ''}://localhost:{self.port}"
        self.dav = self.origin.replace("http", "dav", 1)
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def asked(self, method: str, path: str = "") -> list[Asked]:
        """Return the requests of a method, of a path if there is one."""
        return [each for each in list(self.heard) if each.method == method and path in ("", each.path)]

    def admit_no_more(self) -> None:
        """Refuse further connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.admit_no_more()  # to close it alone would not end who accepts
        self._threads[0].join()
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join(PATIENCE_S)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.append(connection)
                serving = threading.Thread(
                    target=self._serve, args=(connection, len(self._open) - 1), daemon=True
                )
                self._threads.append(serving)
                serving.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            connection.settimeout(PATIENCE_S)
            if self._context:
                connection = self._context.wrap_socket(
                    connection, server_side=True, suppress_ragged_eofs=False
                )
                self._open[number] = connection
            with connection:
                while (asked := _read_head(connection, number)) is not None:
                    self.heard.append(asked)
                    if self._answer(Exchange(self, connection, asked)):
                        break
        self.ended.add(number)

    def _answer(self, exchange: Exchange) -> bool:
        """Answer a request; tell whether the connection is over."""
        method = exchange.asked.method
        scripted = self.script.get(method)
        answer = scripted(exchange) if scripted else exchange.usual()
        if answer is not None:
            exchange.say(answer.packed(is_head=method == "HEAD"))
            return answer.ends
        return exchange.is_over


def tag_of(content: bytes) -> str:
    """Return the ETag that a content has."""
    return f'"{zlib.crc32(content):08x}"'


def response(href: str, properties: str) -> str:
    """Return one of the entries of a listing."""
    return (
        f"<D:response><D:href>{quote(href)}</D:href><D:propstat><D:prop>{properties}</D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )


def listing(*responses: str) -> Answer:
    """Return an answer for many names."""
    body = f'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">{"".join(responses)}</D:multistatus>'
    return Answer(207, {"Content-Type": "application/xml"}, body.encode("utf-8", "surrogateescape"))


def read_line(connection: socket.socket) -> bytes:
    """Return a line without its end; byte by byte, as what follows is for others."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if not (byte := connection.recv(1)):
            raise ConnectionError("the client has gone")
        line += byte
    return bytes(line).rstrip(b"\r\n")


def _read_head(connection: socket.socket, number: int) -> Asked | None:
    try:
        words = read_line(connection).decode("latin-1").split(" ")
    except ConnectionError:
        return None
    headers = {}
    while line := read_line(connection).decode("latin-1"):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Asked(words[0], words[1], headers, number)


def _server_context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown = host_certificate()
    made.load_cert_chain(shown.certificate, shown.key)
    return made
