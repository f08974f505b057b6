"""Answers of WebDAV for many names, `207 Multi-Status` (RFC 4918), read as they arrive. Pure.

A listing of a million names is never in memory; bounds and what XML cannot hold: see bounded_xml.py.
"""

import re
from dataclasses import dataclass

from mpx.endpoints.web.bounded_xml import BoundedXml, XmlError
from mpx.endpoints.web.dates import http_date, iso_date
from mpx.engine.whole_number import read_size
from mpx.text import quoted

_LONGEST_DESCRIPTION = 1000  # characters that a person is told
_BLANKS = " \t\r\n"

_STATUS = re.compile(r"(?:HTTP/[0-9.]{1,5} )?(?P<code>[0-9]{3})(?: .*)?", re.DOTALL)
_OK = 200
# (what an element is in, its name) -> what it is here; all others are ignored, with what is in them.
_ROLES = {
    ("document", "DAV: multistatus"): "multistatus",
    ("multistatus", "DAV: response"): "response",
    ("response", "DAV: href"): "href",
    ("response", "DAV: status"): "status",
    ("response", "DAV: responsedescription"): "description",
    ("response", "DAV: propstat"): "propstat",
    ("propstat", "DAV: status"): "status of properties",
    ("propstat", "DAV: prop"): "properties",
    ("properties", "DAV: resourcetype"): "type",
    ("type", "DAV: collection"): "collection",
    ("properties", "DAV: getcontentlength"): "size",
    ("properties", "DAV: getlastmodified"): "modified",
    ("properties", "DAV: getetag"): "etag",
    ("properties", "DAV: quota-available-bytes"): "quota",
}
_CHECKSUMS = ("checksums", "checksum")  # in the name space of dCache, ownCloud, ...
_PROPERTIES = frozenset(("collection", "size", "modified", "etag", "quota", "checksums"))


class MultiStatusError(XmlError):
    """What a server sends is no answer for many names, or has parts that are larger than any need be."""


@dataclass(frozen=True, slots=True)
class DavEntry:
    """What a server tells of one name. Properties are those that it says it has (status 200)."""

    href: str  # as it was sent, see names.child_name; empty where there is none
    is_folder: bool = False
    size_bytes: int | None = None
    modified_s: float | None = None  # seconds since 1970
    etag: str = ""  # as it was sent, see headers.etag
    checksums: str = ""  # as they were sent, see headers.digests
    quota_available_bytes: int | None = None
    status: int | None = None  # of the name itself, where something failed for it alone
    description: str = ""  # why it failed, in the words of the server


class MultiStatus(BoundedXml):
    """Reads one answer: `feed` takes it piece by piece, and `close` its end. Both return what is complete.

    They raise MultiStatusError; after that there is no more to be had.
    """

    error, protocol, record = MultiStatusError, "WebDAV", "response"

    def __init__(self) -> None:
        super().__init__()
        self._complete: list[DavEntry] = []
        self._roles = ["document"]  # of the elements that are open
        self._hrefs: list[str] = []  # from here on: what the response has told
        self._status: int | None = None
        self._description = ""
        self._found: dict[str, str] = {}
        self._propstat: dict[str, str] = {}
        self._propstat_status: int | None = None

    def feed(self, data: bytes) -> list[DavEntry]:
        """Take the next bytes; return the entries that they complete."""
        self.parse(data)
        return self._taken()

    def close(self) -> list[DavEntry]:
        """Take the end of the answer; raises where it was cut off. Expat may hold entries back until then."""
        self.parse(b"", is_end=True)
        return self._taken()

    def _taken(self) -> list[DavEntry]:
        taken, self._complete = self._complete, []
        return taken

    def start(self, name: str) -> None:
        """See BoundedXml."""
        within = self._roles[-1]
        role = _ROLES.get((within, name), "")
        if within == "checksums":
            self._text.append(" ")
            self._roles.append(within)
            return
        self._text.clear()
        if role == "response":
            self._begin_response()
        elif role == "propstat":
            self._propstat, self._propstat_status = {}, None
        elif within == "properties" and name.rpartition(" ")[2].lower() in _CHECKSUMS:
            role = "checksums"
        elif within == "document" and not role:
            raise MultiStatusError(f"no answer for many names, but {quoted(name.rpartition(' ')[2][:80])}")
        self._roles.append(role)

    def end(self) -> None:
        """See BoundedXml."""
        role = self._roles.pop()
        if role in _PROPERTIES:
            self._propstat[role] = self.text_here.strip(_BLANKS)
        elif role == "href":
            self._hrefs.append(_unpadded(self.text_here))
        elif role == "status":
            self._status = _status(self.text_here.strip(_BLANKS))
        elif role == "status of properties":
            self._propstat_status = _status(self.text_here.strip(_BLANKS))
        elif role == "description":
            self._description = self.text_here.strip(_BLANKS)[:_LONGEST_DESCRIPTION]
        elif role == "propstat":
            if self._propstat_status == _OK:
                self._found |= self._propstat
        elif role == "response":
            self._end_response()
        if role != "checksums":
            self._text.clear()

    def _begin_response(self) -> None:
        self._hrefs, self._found = [], {}
        self._status, self._description = None, ""
        self.begin_record()

    def _end_response(self) -> None:
        self.end_record()
        found = self._found
        for href in self._hrefs or [""]:  # several may share a status
            entry = DavEntry(
                href,
                "collection" in found,
                read_size(found.get("size", "")),
                _modified_s(found.get("modified", "")),
                found.get("etag", ""),
                found.get("checksums", ""),
                read_size(found.get("quota", "")),
                self._status,
                self._description,
            )
            self._complete.append(entry)


def _unpadded(text: str) -> str:
    """Return an href without the white space that lays XML out; blanks at its end may be part of a name."""
    text = text.lstrip(_BLANKS)
    end = len(text.rstrip(_BLANKS))
    return text if {"\n", "\r"}.isdisjoint(text[end:]) else text[:end]


def _status(text: str) -> int | None:
    found = _STATUS.fullmatch(text)
    return int(found["code"]) if found else None


def _modified_s(text: str) -> float | None:
    seconds = http_date(text)
    return iso_date(text) if seconds is None else seconds
