"""Answers of an HTTP server: status, headers, and a body whose end is known (RFC 9112, section 6)."""

import re

from mpx.endpoints.web import headers
from mpx.endpoints.web.incoming import HttpIncoming
from mpx.endpoints.web.sent_secrets import SentSecrets
from mpx.errors import ConnectionLost
from mpx.text import quoted, shown
from mpx.units import counted

_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([1-5][0-9]{2})(?: ([^\r\n]*))?\r?\n")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_MOST_INTERIM = 100  # 102 Processing and the like, which may come as often as a server likes
_MOST_TRAILERS = 100
_MOST_SHOWN = 80  # characters of what a server sends, in a message
_MOST_HEADERS = 200
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BLANKS = " \t"  # that may stand around a value
_DRAINED_AT_ONCE = 64 * 1024
EXPECT_CONTINUE = 100
SWITCHING_PROTOCOLS = 101


class HttpReply:
    """One answer. Its body is to be read to its end before the connection is used again."""

    def __init__(
        self,
        incoming: HttpIncoming,
        peer: str,
        method: str,
        *,
        wants_continue: bool = False,
        secrets: SentSecrets | None = None,
    ) -> None:
        """Read the head; with `wants_continue` a 100 is an answer. Raises as HttpIncoming does.

        `secrets`: that were sent, which neither its reason shows nor what is said of it.
        """
        self._incoming, self._peer = incoming, peer
        self.method = method
        self.secrets = secrets or SentSecrets()
        version = self._read_head(wants_continue=wants_continue)
        self._chunk_bytes = 0  # left of the chunk that is read
        self._is_chunked = False
        self._left: int | None = 0  # bytes of the body; None: not known
        if not self._has_no_body(method):
            self._find_body()
        self.size_bytes = self._left  # of the whole body; None: not known
        self.is_ended = self._left == 0
        wishes = self.header("Connection").lower()
        keeps = "close" not in wishes and (version > 0 or "keep-alive" in wishes)
        self._keeps = keeps and (self._left is not None or self._is_chunked)

    def _read_head(self, *, wants_continue: bool) -> int:
        for _ in range(_MOST_INTERIM):
            line = self._incoming.readline()
            found = _STATUS.fullmatch(line)
            if not found:
                raise self._lost("it closed the connection" if not line else "it does not speak HTTP/1.1")
            self.status = int(found[2])
            self._reason = (found[3] or b"").decode("latin-1").strip()
            self.headers = self._read_headers()
            if self.status >= 200 or self.status == SWITCHING_PROTOCOLS:
                return int(found[1])
            if wants_continue and self.status == EXPECT_CONTINUE:
                return int(found[1])
        raise self._lost("it sends interim answers without end")

    def _read_headers(self) -> dict[str, list[str]]:
        """Return the values of each header, by its name in lower case."""
        found: dict[str, list[str]] = {}
        last: list[str] = []  # to which a line belongs that begins with a blank (RFC 9112, 5.2)
        for _ in range(_MOST_HEADERS):
            line = self._incoming.readline()
            if not line.endswith(b"\n"):
                raise self._lost("its answer has a header without end")
            text = line.decode("latin-1").rstrip("\r\n")
            if not text:
                return found
            if text[0] in _BLANKS and last:
                last[-1] = f"{last[-1]} {text.strip(_BLANKS)}"
                continue
            name, colon, value = text.partition(":")
            if not colon or not _NAME.fullmatch(name):
                line_shown = quoted(self.secrets.hidden_in(text)[:_MOST_SHOWN])
                raise self._lost(f"its answer has a line that is no header: {line_shown}")
            last = found.setdefault(name.lower(), [])
            last.append(value.strip(_BLANKS))
        raise self._lost("its answer has headers without end")

    def _has_no_body(self, method: str) -> bool:
        is_tunnel = method == "CONNECT" and 200 <= self.status < 300
        return method == "HEAD" or self.status < 200 or self.status in (204, 304) or is_tunnel

    def _find_body(self) -> None:
        if encoding := ", ".join(self.all("Transfer-Encoding")):
            if encoding.lower() != "chunked":
                encoding_shown = shown(self.secrets.hidden_in(encoding)[:_MOST_SHOWN])
                raise self._lost(f"it encodes what it sends ({encoding_shown}), which nobody asked for")
            self._is_chunked, self._left = True, None
            return
        try:
            self._left = headers.content_length(self.all("Content-Length"))
        except headers.HeaderError:
            raise self._lost(self._wrong_length()) from None

    def _wrong_length(self) -> str:
        """Say what is wrong with the length that is told."""
        told = [self.secrets.hidden_in(each) for each in self.all("Content-Length")]
        try:
            headers.content_length(told)
        except headers.HeaderError as error:
            return str(error)
        return "different lengths"  # but for what is hidden

    @property
    def reason(self) -> str:
        """What the server says beside the status, for people."""
        return self.secrets.hidden_in(self._reason)

    def all(self, name: str) -> list[str]:
        """Return the values of a header, of which there may be several."""
        return self.headers.get(name.lower(), [])

    def header(self, name: str) -> str:
        """Return a header, the first of several; empty where there is none."""
        return (self.all(name) or [""])[0]

    @property
    def told_bytes(self) -> int | None:
        """The size that its headers tell, also where no body follows (HEAD); None: none, or nonsense."""
        try:
            return headers.content_length(self.all("Content-Length"))
        except headers.HeaderError:
            return None

    @property
    def ends_with_connection(self) -> bool:
        """Whether nothing else says where its body ends: one that was cut off looks like a whole one."""
        return self.size_bytes is None and not self._is_chunked

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow on the connection."""
        return self._keeps and self.is_ended

    def leave_connection(self) -> None:
        """Have no other request follow: over another connection another server may answer."""
        self._keeps = False

    @property
    def may_have_followers(self) -> bool:
        """Whether the connection lasts beyond this answer, as far as it says."""
        return self._keeps

    def read_into(self, view: memoryview) -> int:
        """Receive some of the body, as much as comes soon; 0 at its end.

        Raises ConnectionLost where the connection ends before the body does.
        """
        if self.is_ended:
            return 0
        if self._is_chunked and not self._chunk_bytes:
            self._begin_chunk()
            if self.is_ended:
                return 0
        limit = self._chunk_bytes if self._is_chunked else self._left
        size = self._incoming.read_into(view if limit is None else view[:limit])
        if self._left is not None:
            self._left -= size
        if self._is_chunked:
            self._chunk_bytes -= size
            if size and not self._chunk_bytes and self._incoming.readline() not in (b"\r\n", b"\n"):
                raise self._lost("a chunk of its body has another length than it says")
        if not size:
            if limit is not None:
                raise self._lost(f"it ended in the middle of a body, {counted(limit, 'byte')} before its end")
            self.is_ended = True
        elif self._left == 0:
            self.is_ended = True
        return size

    def _begin_chunk(self) -> None:
        found = _CHUNK.fullmatch(self._incoming.readline())
        if not found:
            raise self._lost("its body is cut into chunks that cannot be read")
        self._chunk_bytes = int(found[1], 16)
        if self._chunk_bytes:
            return
        for _ in range(_MOST_TRAILERS):
            if self._incoming.readline() in (b"\r\n", b"\n"):
                self.is_ended = True
                return
        raise self._lost("its body does not end")

    def read(self, most_bytes: int) -> bytes:
        """Return the body, of which `most_bytes` are read at most; with more the connection is lost."""
        body, view = bytearray(), memoryview(bytearray(_DRAINED_AT_ONCE))
        while len(body) < most_bytes and (size := self.read_into(view[: most_bytes - len(body)])):
            body += view[:size]
        return bytes(body)

    def _lost(self, why: str) -> ConnectionLost:
        return ConnectionLost(f"{self._peer}: {why}")
