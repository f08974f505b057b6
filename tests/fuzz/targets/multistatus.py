"""Answers of WebDAV for many names, whole and in pieces, and what each entry's properties are read as."""

import os
from contextlib import suppress
from xml.sax.saxutils import escape

from mpx.endpoints.web import headers
from mpx.endpoints.web.multistatus import DavEntry, MultiStatus, MultiStatusError
from mpx.endpoints.web.names import HrefError, child_name

_HEAD = b'<?xml version="1.0"?>\n<D:multistatus xmlns:D="DAV:" xmlns:o="http://owncloud.org/ns">'
SEEDS = [
    _HEAD
    + b"""<D:response><D:href>/f/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype>
</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
<D:response><D:href>/f/a%20b</D:href>
<D:propstat><D:prop><D:getcontentlength>7</D:getcontentlength><D:getetag>W/&quot;5f&quot;</D:getetag>
<D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>
<o:checksums><o:checksum>ADLER32:1 MD5:x</o:checksum></o:checksums></D:prop>
<D:status>HTTP/1.1 200 OK</D:status></D:propstat>
<D:propstat><D:prop><D:quota-available-bytes/></D:prop>
<D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>
</D:response></D:multistatus>""",
    b"""<multistatus xmlns="DAV:"><response><href>http://h/f/x</href><href>/f/y</href>
<status>HTTP/1.1 423 Locked</status><responsedescription>locked</responsedescription></response>
</multistatus>""",
    b'<!DOCTYPE x [<!ENTITY a "aa">]><x>&a;</x>',
    f"{_HEAD.decode()}</D:multistatus>".encode("utf-16"),
    b"/f/\xff<\x01\xc3\xa9&\xc3\nHTTP/1.1 200 OK\n7\nSun, 06 Nov 1994 08:49:37 GMT\nadler32=1",
]
ALLOWED = (MultiStatusError,)
_PIECE_BYTES = 97
_MOST_LINES = 20
_PROPERTIES = (b"getcontentlength", b"getlastmodified", b"getetag", b"quota-available-bytes", b"checksums")
_BLANKS = b" \t\r\n"
_LARGEST = 1 << 63


def parse(data: bytes) -> None:
    """Read an answer with its first lines as texts; then itself, whole and in pieces: to the same end."""
    lines = data.split(b"\n", _MOST_LINES)[:_MOST_LINES]
    for entry, line in zip(_read(_with_texts(lines), _PIECE_BYTES), lines, strict=True):
        _check(entry)
        assert os.fsencode(entry.href).strip(_BLANKS) == line.strip(_BLANKS).replace(b"\r", b"\n")
    entries = _read(data, len(data) + 1)
    for entry in entries:
        _check(entry)
    assert _read(data, _PIECE_BYTES) == entries


def _read(data: bytes, piece_bytes: int) -> list[DavEntry]:
    parser = MultiStatus()
    entries: list[DavEntry] = []
    for at in range(0, len(data), piece_bytes):
        entries += parser.feed(data[at : at + piece_bytes])
    return entries + parser.close()


def _with_texts(lines: list[bytes]) -> bytes:
    """Return an answer in which each line is all texts of one name."""
    told = _HEAD
    for line in lines:
        text = escape(line.decode("latin-1")).encode("latin-1")
        values = b"".join(b"<D:%s>%s</D:%s>" % (name, text, name) for name in _PROPERTIES)
        told += b"<D:response><D:href>%s</D:href><D:status>%s</D:status><D:propstat><D:prop>" % (text, text)
        told += values + b"</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    return told + b"</D:multistatus>"


def _check(entry: DavEntry) -> None:
    for size_bytes in (entry.size_bytes, entry.quota_available_bytes):
        assert size_bytes is None or 0 <= size_bytes < _LARGEST
    headers.etag(entry.etag)
    headers.digests(entry.checksums)
    with suppress(HrefError):
        child_name(entry.href, "/f/")
