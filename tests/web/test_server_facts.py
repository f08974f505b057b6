"""What each web server of the tests answers: the rows that are marked in tests/web/servers/README.md."""

import base64
import contextlib
import hashlib
import http.client
import shutil
import socket
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from random_bytes import random_bytes
from web.servers.apache import apache_site
from web.servers.nginx import nginx_site
from web.servers.private_network import within
from web.servers.site import WebSite
from web.servers.wsgi_dav import wsgidav_site
from web.servers.xrootd import xrootd_site

T = TypeVar("T")
NAMES = ("nginx", "apache", "wsgidav", "xrootd")
ANONYMOUS: dict[str, Callable[[Path], contextlib.AbstractContextManager[WebSite]]] = {
    "nginx": nginx_site,
    "apache": apache_site,
    "wsgidav": wsgidav_site,
}
DATA = b"0123456789"
LONG_AGO_S, LONG_AGO = 1_000_000_000, "Sun, 09 Sep 2001 01:46:40 GMT"


@dataclass
class Known:
    """A server of which we know the name."""

    name: str
    site: WebSite

    def of(self, *facts: T) -> T:
        """That of these which is true of it; they are in the order of NAMES."""
        return facts[NAMES.index(self.name)]

    def write(self, name: str, data: bytes = DATA) -> Path:
        """A file that the server may change."""
        path = self.site.folder / name
        path.write_bytes(data)
        if self.site.owner:
            shutil.chown(path, self.site.owner)
        return path

    def url(self, path: str) -> str:
        """An absolute one, as `Destination` has it."""
        return f"{'https' if self.site.ca else 'http'}://localhost:{self.site.port}{path}"

    def status(self, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
        """Of the answer; in names of headers `_` stands for `-`."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.site.ask(method, path, body, fields).status

    def range(self, wanted: str, **headers: str) -> tuple[int, str, bytes]:
        """Status, Content-Range and body of a GET of `/file`."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.site.ask("GET", "/file", None, {"Range": wanted, **fields})
        return answer.status, answer.headers.get("content-range", ""), answer.body


@pytest.fixture(params=NAMES)
def known(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Known]:
    folder = tmp_path / "served"
    folder.mkdir()
    if request.param == "xrootd":
        with xrootd_site(folder) as xrootd, within(xrootd.namespace):
            xrootd.headers = {"Authorization": f"Bearer {xrootd.issuer.token()}"}
            yield Known(request.param, xrootd)
        return
    with ANONYMOUS[request.param](folder) as site:
        yield Known(request.param, site)


def test_ranges(known: Known) -> None:
    known.write("file")
    assert known.range("bytes=2-4") == (206, "bytes 2-4/10", b"234")
    told, body = known.of(*[("bytes 5-9/10", b"56789")] * 3, ("bytes 5--1/10", b""))
    assert known.range("bytes=5-") == (206, told, body)
    if known.name == "xrootd":
        with pytest.raises(http.client.IncompleteRead):
            known.range("bytes=5-99")
    else:
        assert known.range("bytes=5-99") == (206, "bytes 5-9/10", b"56789")
    assert known.range("bytes=2-4", If_Match='"wrong"')[0] == known.of(412, 412, 412, 206)
    assert known.range("bytes=2-4", If_Range='"wrong"')[0] == known.of(200, 200, 200, 206)


def test_digests(known: Known) -> None:
    known.write("file")
    md5 = base64.b64encode(hashlib.md5(DATA).digest()).decode()
    for told in (f"adler32={zlib.adler32(DATA):08x}", f"md5={md5}"):
        answer = known.site.ask("HEAD", "/file", headers={"Want-Digest": told.partition("=")[0]})
        assert answer.headers.get("digest") == known.of(None, None, None, told)


def test_uploads(known: Known) -> None:
    assert known.status("PUT", "/new", b"1") == known.of(201, 201, 201, 200)
    assert known.status("PUT", "/new", b"22") == known.of(204, 204, 204, 200)
    assert known.status("PUT", "/missing/new", b"1") == known.of(500, 409, 409, 200)
    assert (known.site.folder / "missing").exists() == known.of(False, False, False, True)
    unless = known.of(204, 412, 412, 200)
    assert known.status("PUT", "/new", b"3", If_None_Match="*") == unless
    assert known.status("PUT", "/new", b"3", If_Match='"wrong"') == unless
    assert (known.site.folder / "new").read_bytes() == (b"22" if unless == 412 else b"3")


def test_parts_of_an_upload(known: Known) -> None:
    file = known.write("file")
    part = "bytes 2-4/10"
    assert known.status("PUT", "/file", b"XYZ", Content_Range=part) == known.of(501, 204, 400, 200)
    assert file.read_bytes() == known.of(DATA, b"01XYZ56789", DATA, b"XYZ")
    assert known.status("PUT", "/new", b"XYZ", Content_Range=part) == known.of(501, 201, 400, 200)
    new = known.site.folder / "new"
    assert (new.read_bytes() if new.exists() else None) == known.of(None, b"\0\0XYZ", None, b"XYZ")


def test_an_upload_that_is_cut_short(known: Known, eventually: Callable[..., None]) -> None:
    file = known.write("file")
    connection = known.site.connect()
    connection.putrequest("PUT", "/file")
    for name, value in {**known.site.headers, "Content-Length": "3000000"}.items():
        connection.putheader(name, value)
    connection.endheaders(b"q" * 2_000_000)
    assert connection.sock is not None
    connection.sock.shutdown(socket.SHUT_WR)
    with contextlib.suppress(OSError):
        while connection.sock.recv(65536):  # until the server has done with it
            pass
    connection.close()
    if known.of(True, True, False, False):
        assert file.read_bytes() == DATA
    else:
        eventually(lambda: file.read_bytes().startswith(b"qqq"))


def test_times_of_an_upload(known: Known) -> None:
    known.status("PUT", "/file", b"1", Date=LONG_AGO)
    set_by_date = (known.site.folder / "file").stat().st_mtime == LONG_AGO_S
    assert set_by_date == known.of(True, False, False, False)


def test_wsgidav_sets_a_time_when_told_to(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    file = tmp_path / "served/file"
    file.write_bytes(DATA)
    body = (
        '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop>'
        f"<D:getlastmodified>{LONG_AGO}</D:getlastmodified></D:prop></D:set></D:propertyupdate>"
    ).encode()
    with wsgidav_site(
        tmp_path / "served", settings={"mutable_live_props": ["{DAV:}getlastmodified"]}
    ) as site:
        assert site.ask("PROPPATCH", "/file", body, {"Content-Type": "application/xml"}).status == 207
    assert file.stat().st_mtime == LONG_AGO_S


def test_names(known: Known) -> None:
    known.write("one")
    there = known.write("two", b"old")
    kept = known.of(True, True, True, False)
    assert known.status("MOVE", "/one", Destination=known.url("/two"), Overwrite="F") == (
        412 if kept else 201
    )
    assert there.read_bytes() == (b"old" if kept else DATA)
    known.write("one")
    assert known.status("MOVE", "/one", Destination="/three") == known.of(204, 400, 201, 501)
    known.write("one")
    known.status("MOVE", "/one", Destination=known.url("/a%20b"))
    escaped = known.of("a b", "a b", "a b", "a%20b")
    assert (known.site.folder / escaped).read_bytes() == DATA
    assert known.status("MKCOL", "/folder/") == 201
    assert known.status("MKCOL", "/folder/") == known.of(405, 405, 405, 201)
    assert known.status("MKCOL", "/no/folder/") == known.of(409, 409, 409, 201)
    assert known.status("DELETE", "/nothing") == 404


def test_listings(known: Known) -> None:
    for name in ("a?b", ".dot"):
        known.write(name)
    listed = known.site.ask("PROPFIND", "/", headers={"Depth": "1"}).body
    assert known.of(b"/a%3Fb<", b"/a%3fb<", b"/a%3Fb<", b"/a?b<") in listed
    assert (b"/.dot<" in listed) == known.of(False, True, True, True)


@pytest.mark.parametrize("known", NAMES[:3], indirect=True)  # XRootD answers the second never, or sometimes
def test_pipelined_requests(known: Known) -> None:
    data = random_bytes(3_000_000)
    known.write("file", data)
    parts = [(0, 99), (1_000_000, 2_999_999), (5, 5)]
    asked = [f"GET /file HTTP/1.1\r\nHost: x\r\nRange: bytes={first}-{last}\r\n\r\n" for first, last in parts]
    head = "HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
    missing = "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", known.site.port), timeout=60) as connection:
        connection.sendall("".join([missing, head, *asked]).encode())
        for method, status in (("GET", 404), ("HEAD", 404)):
            assert _answer(connection, method)[0] == status
        for first, last in parts:
            assert _answer(connection) == (206, data[first : last + 1])


def _answer(connection: socket.socket, method: str = "GET") -> tuple[int, bytes]:
    """The next one of a connection, and no byte behind it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        assert byte, head
        head += byte
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    length = int(fields[b"content-length"]) if method != "HEAD" else 0
    body = bytearray()
    while len(body) < length:
        more = connection.recv(length - len(body))
        assert more
        body += more
    return int(head.split()[1]), bytes(body)
