"""GridFTP as bytes, without any I/O: commands, replies, addresses, facts and ranges; MODE E is in framing.py.

Written after RFC 959, RFC 2428 (EPSV, EPRT), RFC 3659 (MLST, REST), GFD.20 (GridFTP: MODE E, SPAS,
ERET, ESTO, markers) and what the Grid Community Toolkit 6.2 really says. Client and server share it.
"""

import contextlib
import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType

from mpx.endpoints.ftp.names import check_name
from mpx.engine.ranges import Range
from mpx.engine.whole_number import parse_whole

Address = tuple[str, int]
_LONGEST_ADDRESS = 512  # characters of a reply or command in which an address is looked for
_LONGEST_REASON = 1000  # characters that a person is told


# --- commands and replies ------------------------------------------------------------------------


def command(verb: str, *words: object) -> bytes:
    """Encode one command line; raises UsageError if a word holds CR, LF or NUL."""
    line = " ".join((verb, *map(str, words)))
    check_name(line)
    return line.encode("utf-8", "surrogateescape") + b"\r\n"


_WORDS = "GridFTP-Error-String:"
_OF_CLASS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: its code and its lines without code and separator on the first and last."""

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines joined by blanks, as a person would read them."""
        return " ".join(line.strip() for line in self.lines if line.strip())

    @property
    def reason(self) -> str:
        """What a person is told of a refusal: of a GlobusError block what it says in words, or its class.

        Without the full stop of a sentence, as a message may go on after it.
        """
        if not self.error_class:
            return _cut(_phrase(self.text)) or str(self.code)
        lines = [line.strip() for line in self.lines]
        words = [line.removeprefix(_WORDS).strip() for line in lines if line.startswith(_WORDS)]
        return _cut(_phrase(" ".join(word for word in words if word)) or self.error_class)

    @property
    def is_preliminary(self) -> bool:
        """Whether more replies to the same command follow (1xx)."""
        return 100 <= self.code < 200

    @property
    def ends_a_command(self) -> bool:
        """Whether no more replies to the command follow, and others may be sent (not 421)."""
        return self.code >= 200 and self.code != 421

    @property
    def is_ok(self) -> bool:
        """Whether the command succeeded (2xx)."""
        return 200 <= self.code < 300

    @property
    def is_accepted(self) -> bool:
        """Whether the command succeeded, or wants its next half (3xx), as USER, REST and RNFR do."""
        return 200 <= self.code < 400

    @property
    def is_marker(self) -> bool:
        """Whether this is a 111, 112 or 113 marker, which answers no command."""
        return 111 <= self.code <= 113

    @property
    def error_class(self) -> str:
        """The `c=` word of a GlobusError block, such as PATH_NOT_FOUND, or an empty string."""
        for line in self.lines:
            for word in line.split():
                if word.startswith("c="):
                    return "".join(takewhile(_OF_CLASS.__contains__, word[2:]))
        return ""


def _phrase(sentence: str) -> str:
    """Return a sentence without its full stop; three dots stay."""
    return sentence[:-1] if sentence.endswith(".") and not sentence.endswith("..") else sentence


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]} ..."


_IAC = b"\xff"
# What Telnet (RFC 854) may send before a line: two bytes, three for an option, more for its negotiation.
_TELNET = re.compile(
    rb"(?:\xff(?:[\xf1-\xf9]|[\xfb-\xfe].?|\xfa(?:[^\xff]|\xff\xff)*+\xff\xf0))++", re.DOTALL
)


def without_telnet(line: bytes) -> bytes:
    """Return a line without the Telnet commands that it begins with. Linear."""
    found = _TELNET.match(line)
    return line[found.end() :] if found else line


_CODES = MappingProxyType({str(code): code for code in range(100, 700)})


class ReplyReader:
    """Turns the bytes of a control channel into replies; keeps what is not complete.

    However the bytes are cut, each is looked at a bounded number of times.
    """

    LONGEST_REPLY_BYTES = 256 * 1024  # with its line ends; FEAT, the longest that we ask for, has 1 or 2 KiB
    LINE_COSTS_BYTES = 64  # beside its text, as short lines take more memory than a long one

    def __init__(self) -> None:
        self._rest = bytearray()  # of a line that is not complete
        self._lines: list[str] = []
        self._bytes = 0  # of the reply that is not complete, with what its lines cost
        self.taken_bytes = 0  # likewise, of all replies that were complete

    def feed(self, data: bytes) -> list[Reply]:
        """Take received bytes, return the replies that are now complete.

        Raises ValueError if the other side does not speak FTP or never ends a reply.
        """
        replies = []
        *ends, rest = data.split(b"\n")
        if self._rest and ends:
            ends[0] = bytes(self._rest + ends[0])
            self._bytes -= len(self._rest)  # that is counted again
            self._rest.clear()
        for raw in ends:
            self._count(len(raw) + 1 + self.LINE_COSTS_BYTES)
            text = raw.rstrip(b"\r")
            if text.startswith(_IAC):
                text = without_telnet(text)
            if reply := self._line(text.decode("utf-8", "surrogateescape")):
                replies.append(reply)
                self.taken_bytes += self._bytes
                self._bytes = 0
        self._count(len(rest))
        self._rest += rest
        return replies

    def _count(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        if self._bytes > self.LONGEST_REPLY_BYTES:
            raise ValueError(f"a reply longer than {self.LONGEST_REPLY_BYTES} bytes")

    def _line(self, line: str) -> Reply | None:
        code, mark = line[:3], line[3:4]
        if not self._lines:
            if not line:
                return None  # some servers end a reply with one line end too many
            if code not in _CODES or mark not in ("", " ", "-"):
                raise ValueError(f"not an FTP reply: {line[:80]!r}")
            if mark != "-":
                return Reply(_CODES[code], (line[4:],))
            self._lines.append(line)
            return None
        self._lines.append(line)
        if code != self._lines[0][:3] or mark not in ("", " "):
            return None  # also a line that begins with a larger number
        first, *inner, last = self._lines
        self._lines = []
        strip = [text[4:] if text.startswith(code + "-") else text for text in inner]
        return Reply(int(code), (first[4:], *strip, last[4:]))


def reply_line(code: int, *lines: str) -> bytes:
    """Encode a reply for the server side: one line, or the multi-line form with inner lines indented."""
    if len(lines) == 1:
        text = f"{code} {lines[0]}\r\n"
    else:
        inner = "".join(f" {line}\r\n" for line in lines[1:-1])
        text = f"{code}-{lines[0]}\r\n{inner}{code} {lines[-1]}\r\n"
    return text.encode("utf-8", "surrogateescape")


# --- addresses -----------------------------------------------------------------------------------


def parse_host_port(text: str) -> Address:
    """Find `h1,h2,h3,h4,p1,p2` (PORT, PASV, SPAS), with or without blanks; raises ValueError."""
    kept = "".join(char if char in _OF_HOST_PORT else "\n" for char in text[:_LONGEST_ADDRESS])
    for run in kept.split("\n"):
        words = [word.split() for word in run.split(",") if word.strip()]
        if len(words) == 6:
            words[0], words[5] = words[0][-1:], words[5][:1]  # other numbers may stand before and behind
            numbers = [int(word[0]) for word in words if len(word) == 1 and len(word[0]) <= 3]
            if len(numbers) == 6 and max(numbers) <= 255:
                return ".".join(map(str, numbers[:4])), numbers[4] * 256 + numbers[5]
    raise ValueError(f"not an address: {text[:80]!r}")


_OF_HOST_PORT = frozenset("0123456789, \t")


def parse_extended_address(text: str) -> Address:
    """Find `|family|host|port|` (EPRT) or `|||port|` (EPSV); the host may be empty. Raises ValueError."""
    text = text[:_LONGEST_ADDRESS]
    bracketed = ["".join(part.split()) for part in text.replace(")", "(").split("(")[1:]]
    for word in [*bracketed, *(word.strip("[]<>.") for word in text.split())]:
        family, host, port = (*word[1:].split(word[:1] or "|"), "", "", "")[:3]
        is_host = frozenset(host) <= _OF_ADDRESS
        if word[:1].isalnum() or family not in ("", "1", "2") or not is_host or len(port) > 5:
            continue
        with contextlib.suppress(ValueError):
            if 0 < parse_whole(port) < 65536:
                return host, int(port)
    raise ValueError(f"not an address: {text[:80]!r}")


_OF_ADDRESS = frozenset("0123456789ABCDEFabcdef.:")


def format_host_port(address: Address) -> str:
    """Write an IPv4 address as `h1,h2,h3,h4,p1,p2`."""
    host, port = address
    return f"{host.replace('.', ',')},{port // 256},{port % 256}"


def port_command(address: Address) -> bytes:
    """Return PORT for an IPv4 address, EPRT for an IPv6 one."""
    host, port = address
    if ipaddress.ip_address(host).version == 4:
        return command("PORT", format_host_port(address))
    return command("EPRT", f"|2|{host}|{port}|")


def in_writes(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut commands into what goes out in one write: PORT and EPRT go alone.

    What translates addresses, or opens ports for a connection, finds them only where a segment begins.
    """
    together: list[bytes] = []
    for line in lines:
        if line.startswith((b"PORT ", b"EPRT ")):
            if together:
                yield together
            yield [line]
            together = []
        else:
            together.append(line)
    if together:
        yield together


# --- what a server can, and what it says of a file ---------------------------------------------------


def login_folder(reply: Reply) -> str:
    """Return the absolute name that the answer to PWD gives; `/` if it gives none.

    It stands between quotes, of which two within it mean one; some servers leave the quotes out. One that
    begins with a drive is made absolute, as servers that have drives take it.
    """
    if reply.code != 257:
        return "/"
    if not (found := _QUOTED.search(reply.text)):
        return next((word for word in reply.text.split() if word.startswith("/")), "/")
    name = found[1].replace('""', '"')
    return name if name.startswith("/") else "/" + name.replace("\\", "/")


_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)')


def parse_features(reply: Reply) -> dict[str, str]:
    """Read a FEAT reply into {feature: parameters}, names in upper case."""
    features = {}
    for line in reply.lines[1:-1]:
        name, _, parameters = line.strip().partition(" ")
        if name:
            features[name.upper()] = parameters
    return features


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of MLST or MLSD: facts (names in lower case) and the raw name."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)
    is_sure: bool = True  # False: where the name begins had to be guessed


def parse_facts(line: str, *, is_indented: bool = False) -> Entry:
    """Read `Type=file;Size=3; name`; MLST and MLSC indent their lines by a blank (`is_indented`).

    Linear; raises ValueError for what has not that form.

    RFC 3659: each fact ends with `;`, and the raw name follows the first blank. Where the text before that
    does not end so, a value holds a blank, as the target of a link may, or the last `;` is left out.
    """
    if is_indented:
        line = line.lstrip(" ")
    facts_text, blank, name = line.partition(" ")
    is_sure = facts_text.endswith(";") or not facts_text
    if not is_sure:
        others, end, behind = line.partition("; ")
        if end:
            facts_text, blank, name = others + ";", " ", behind
    if not blank or not name:
        raise ValueError(f"not a line of facts: {line[:80]!r}")
    facts = {}
    is_plain = facts_text.isascii() and facts_text.isprintable()  # no key need be looked at
    for fact in facts_text.split(";"):
        if not fact:
            continue
        key, equals, value = fact.partition("=")
        if not (equals and key and (is_plain or (key.isascii() and key.isprintable()))):
            raise ValueError(f"not a line of facts: {line[:80]!r}")
        facts[key.lower()] = value
    return Entry(name, facts, is_sure)


def lines_of_facts(reply: Reply) -> tuple[str, ...]:
    """Return the lines of an answer to MLST in which facts may stand; some servers have but one line."""
    return (reply.lines[1:-1] or reply.lines) if reply.is_ok else ()


# --- ranges -----------------------------------------------------------------------------------------


def parse_ranges(text: str) -> list[Range]:
    """Read `0-100,200-300` (end exclusive) as in REST and restart markers; raises ValueError."""
    ranges = []
    try:
        for part in text.split(","):
            start, end = map(parse_whole, part.strip().split("-"))
            if end < start:
                raise ValueError
            ranges.append((start, end))
    except ValueError:
        raise ValueError(f"not byte ranges: {text[:80]!r}") from None
    return ranges


def format_ranges(ranges: Iterable[Range]) -> str:
    """Write ranges as `0-100,200-300`."""
    return ",".join(f"{start}-{end}" for start, end in ranges)
