"""XML of servers, read as it arrives, within bounds. Pure.

All that a server may make large or deep has a bound, and a document type declaration, which entities need,
is refused when it begins. All is taken for UTF-8. Of what XML cannot hold (XRootD writes all bytes of a name
but `<`, `>` and `&` as they are) Expat is given stand-ins, so that one such file does not keep a folder from
being listed.
"""

import codecs
import re
from xml.parsers import expat

MOST_RECORD_BYTES = 1 << 20  # of XML, for one record of an answer; it has about a thousand
MOST_ELEMENTS = 4096  # of one record
MOST_DEPTH = 64
MOST_ATTRIBUTES = 64  # of one element
MOST_TAG_BYTES = 1 << 14  # of a tag or comment: Expat reads what has come of one again with each piece
MOST_NAMES = 4096  # different ones, of elements, attributes and name spaces: Expat keeps them to the end
_PIECE_BYTES = 1 << 14  # that are parsed before the bounds are looked at
# What XML cannot hold: control characters, bytes that are no UTF-8, and U+FFFE and U+FFFF. Each byte of these
# stands at the end of Unicode while Expat has it, and so does what was there before.
_STAND_INS = 0x10FF00
_BLANKS = b" \t\r\n"
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\udc80-\udcff\ufffe\uffff\U0010ff00-\U0010ffff]+")
_STAND_IN = re.compile("[\U0010ff00-\U0010ffff]+")


class XmlError(ValueError):
    """What a server sends is not the answer it should be, or has parts larger than any need be."""


class BoundedXml:
    """Reads one answer of many records. A subclass says what elements mean: `start`, `end`.

    Name spaces stand before names, with a blank between. Methods raise `error`; after that there is no more
    to be had.
    """

    error: type[XmlError] = XmlError
    protocol = ""  # as messages name it
    record = ""  # what the answer has many of

    def __init__(self) -> None:
        self._failure: XmlError | None = None
        self._fed_bytes = 0
        self._depth = 0  # elements that are open
        self._text: list[str] = []  # since the last tag, unless a subclass keeps it
        self._elements = 0  # since the last record
        self._record_at = 0  # the byte where the last record began
        self._names: dict[str, str] = {}
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._parser = parser = expat.ParserCreate("utf-8", " ", intern=self._names)
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartNamespaceDeclHandler = self._name_space
        parser.StartElementHandler = self._begin_element
        parser.EndElementHandler = self._end_element
        parser.CharacterDataHandler = self._text.append

    # --- of each kind of answer ------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """An element begins."""
        raise NotImplementedError

    def end(self) -> None:
        """The last element that is open ends; its text is `text_here`, as far as it was kept."""
        raise NotImplementedError

    # --- for those ---------------------------------------------------------------------------------------

    def parse(self, data: bytes, *, is_end: bool = False) -> None:
        """Take the next bytes, or the end of the answer; raises where it was cut off."""
        for at in range(0, len(data), _PIECE_BYTES):
            self._parse(data[at : at + _PIECE_BYTES])
        if is_end:
            self._parse(b"", is_end=True)

    def begin_record(self) -> None:
        """Note that a record begins with this element."""
        self._record_at = self._parser.CurrentByteIndex

    def end_record(self) -> None:
        """Note that a record has ended."""
        self._elements = 0

    @property
    def text_here(self) -> str:
        """The text since the last tag."""
        text = "".join(self._text)
        return text if text.isascii() else _STAND_IN.sub(_as_sent, text)

    # --- inside ------------------------------------------------------------------------------------------

    def _parse(self, piece: bytes, *, is_end: bool = False) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._fed_bytes:
            piece = piece.lstrip(_BLANKS)  # which programs in PHP may have sent before all else
        try:
            fit = _UNFIT.sub(_stand_ins, self._decoder.decode(piece, is_end)).encode()
            self._parser.Parse(fit, is_end)
            self._fed_bytes += len(fit)
            if not is_end:
                self._check_bounds()
        except XmlError as error:
            self._failure = error
        except expat.ExpatError as error:
            self._failure = self.error(f"not XML that can be read: {error}")
        if self._failure is not None:
            raise self._failure

    def _check_bounds(self) -> None:
        at = self._parser.CurrentByteIndex
        if self._fed_bytes - at > MOST_TAG_BYTES:
            raise self.error(f"a tag or a comment of more than {MOST_TAG_BYTES} bytes")
        if len(self._names) > MOST_NAMES:
            raise self.error(f"more than {MOST_NAMES} different names of elements and attributes")
        if self._depth <= 1:  # between records
            self._text.clear()
        elif at - self._record_at > MOST_RECORD_BYTES:
            raise self.error(f"a {self.record} of more than {MOST_RECORD_BYTES} bytes")

    # --- called by Expat ---------------------------------------------------------------------------------

    def _doctype(self, *_: object) -> None:
        raise self.error(f"a document type declaration, which no answer of {self.protocol} has")

    def _name_space(self, *_: object) -> None:
        """Have prefixes counted among the names: Expat takes those that it hands over for that."""

    def _begin_element(self, name: str, attributes: list[str]) -> None:
        self._elements += 1
        if self._elements > MOST_ELEMENTS:
            raise self.error(f"a {self.record} of more than {MOST_ELEMENTS} elements")
        if self._depth >= MOST_DEPTH:
            raise self.error(f"elements in more than {MOST_DEPTH} others")
        if len(attributes) > 2 * MOST_ATTRIBUTES:
            raise self.error(f"an element with more than {MOST_ATTRIBUTES} attributes")
        self._depth += 1
        self.start(name)

    def _end_element(self, _: str) -> None:
        self._depth -= 1
        self.end()


def _stand_ins(found: re.Match[str]) -> str:
    return "".join(chr(_STAND_INS + byte) for byte in found.group().encode("utf-8", "surrogateescape"))


def _as_sent(found: re.Match[str]) -> str:
    return bytes(ord(each) - _STAND_INS for each in found.group()).decode("utf-8", "surrogateescape")
