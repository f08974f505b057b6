"""Answers of WebDAV for many names, `207 Multi-Status` (RFC 4918), read as they arrive. Pure.

A listing of a million names is never in memory. All that a server may make large or deep has a bound, and a
document type declaration, which entities need, is refused when it begins. All is taken for UTF-8. Of what XML
cannot hold (XRootD writes all bytes of a name but `<`, `>` and `&` as they are) Expat is given stand-ins, so
that one such file does not keep a folder from being listed.
"""

import codecs
import re
from dataclasses import dataclass
from xml.parsers import expat

from mpx.endpoints.web.dates import http_date, iso_date
from mpx.engine.whole_number import read_size
from mpx.text import quoted

MOST_RESPONSE_BYTES = 1 << 20  # of XML, for one response; it has about a thousand
MOST_ELEMENTS = 4096  # of one response
MOST_DEPTH = 64
MOST_ATTRIBUTES = 64  # of one element
MOST_TAG_BYTES = 1 << 14  # of a tag or comment: Expat reads what has come of one again with each piece
MOST_NAMES = 4096  # different ones, of elements, attributes and name spaces: Expat keeps them to the end
_PIECE_BYTES = 1 << 14  # that are parsed before the bounds are looked at
_LONGEST_DESCRIPTION = 1000  # characters that a person is told
_BLANKS = " \t\r\n"
# What XML cannot hold: control characters, bytes that are no UTF-8, and U+FFFE and U+FFFF. Each byte of these
# stands at the end of Unicode while Expat has it, and so does what was there before.
_STAND_INS = 0x10FF00
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\udc80-\udcff\ufffe\uffff\U0010ff00-\U0010ffff]+")
_STAND_IN = re.compile("[\U0010ff00-\U0010ffff]+")

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


class MultiStatusError(ValueError):
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


class MultiStatus:
    """Reads one answer: `feed` takes it piece by piece, and `close` its end. Both return what is complete.

    They raise MultiStatusError; after that there is no more to be had.
    """

    def __init__(self) -> None:
        self._failure: MultiStatusError | None = None
        self._complete: list[DavEntry] = []
        self._fed_bytes = 0
        self._roles = ["document"]  # of the elements that are open
        self._text: list[str] = []  # since the last tag
        self._elements = 0  # since the last response
        self._response_at = 0  # the byte where the last response began
        self._hrefs: list[str] = []  # from here on: what the response has told
        self._status: int | None = None
        self._description = ""
        self._found: dict[str, str] = {}
        self._propstat: dict[str, str] = {}
        self._propstat_status: int | None = None
        self._names: dict[str, str] = {}
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._parser = parser = expat.ParserCreate("utf-8", " ", intern=self._names)
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartNamespaceDeclHandler = self._name_space
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append

    def feed(self, data: bytes) -> list[DavEntry]:
        """Take the next bytes; return the entries that they complete."""
        for at in range(0, len(data), _PIECE_BYTES):
            self._parse(data[at : at + _PIECE_BYTES])
        return self._taken()

    def close(self) -> list[DavEntry]:
        """Take the end of the answer; raises where it was cut off. Expat may hold entries back until then."""
        self._parse(b"", is_end=True)
        return self._taken()

    def _taken(self) -> list[DavEntry]:
        taken, self._complete = self._complete, []
        return taken

    def _parse(self, piece: bytes, *, is_end: bool = False) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            fit = _UNFIT.sub(_stand_ins, self._decoder.decode(piece, is_end)).encode()
            self._parser.Parse(fit, is_end)
            self._fed_bytes += len(fit)
            if not is_end:
                self._check_bounds()
        except MultiStatusError as error:
            self._failure = error
        except expat.ExpatError as error:
            self._failure = MultiStatusError(f"not XML that can be read: {error}")
        if self._failure is not None:
            raise self._failure

    def _check_bounds(self) -> None:
        at = self._parser.CurrentByteIndex
        if self._fed_bytes - at > MOST_TAG_BYTES:
            raise MultiStatusError(f"a tag or a comment of more than {MOST_TAG_BYTES} bytes")
        if len(self._names) > MOST_NAMES:
            raise MultiStatusError(f"more than {MOST_NAMES} different names of elements and attributes")
        if len(self._roles) <= 2:  # between responses
            self._text.clear()
        elif at - self._response_at > MOST_RESPONSE_BYTES:
            raise MultiStatusError(f"a response of more than {MOST_RESPONSE_BYTES} bytes")

    # --- called by Expat ---------------------------------------------------------------------------

    def _doctype(self, *_: object) -> None:
        raise MultiStatusError("a document type declaration, which no answer of WebDAV has")

    def _name_space(self, *_: object) -> None:
        """Have prefixes counted among the names: Expat takes those that it hands over for that."""

    def _start(self, name: str, attributes: list[str]) -> None:
        roles = self._roles
        within = roles[-1]
        role = _ROLES.get((within, name), "")
        self._elements += 1
        if self._elements > MOST_ELEMENTS:
            raise MultiStatusError(f"a response of more than {MOST_ELEMENTS} elements")
        if len(roles) > MOST_DEPTH:
            raise MultiStatusError(f"elements in more than {MOST_DEPTH} others")
        if len(attributes) > 2 * MOST_ATTRIBUTES:
            raise MultiStatusError(f"an element with more than {MOST_ATTRIBUTES} attributes")
        if within == "checksums":
            self._text.append(" ")
            roles.append(within)
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
        roles.append(role)

    def _end(self, _: str) -> None:
        role = self._roles.pop()
        if role in _PROPERTIES:
            self._propstat[role] = self._text_here().strip(_BLANKS)
        elif role == "href":
            self._hrefs.append(_unpadded(self._text_here()))
        elif role == "status":
            self._status = _status(self._text_here().strip(_BLANKS))
        elif role == "status of properties":
            self._propstat_status = _status(self._text_here().strip(_BLANKS))
        elif role == "description":
            self._description = self._text_here().strip(_BLANKS)[:_LONGEST_DESCRIPTION]
        elif role == "propstat":
            if self._propstat_status == _OK:
                self._found |= self._propstat
        elif role == "response":
            self._end_response()
        if role != "checksums":
            self._text.clear()

    def _text_here(self) -> str:
        text = "".join(self._text)
        return text if text.isascii() else _STAND_IN.sub(_as_sent, text)

    def _begin_response(self) -> None:
        self._hrefs, self._found = [], {}
        self._status, self._description = None, ""
        self._response_at = self._parser.CurrentByteIndex

    def _end_response(self) -> None:
        self._elements = 0
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


def _stand_ins(found: re.Match[str]) -> str:
    return "".join(chr(_STAND_INS + byte) for byte in found.group().encode("utf-8", "surrogateescape"))


def _as_sent(found: re.Match[str]) -> str:
    return bytes(ord(each) - _STAND_INS for each in found.group()).decode("utf-8", "surrogateescape")


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
