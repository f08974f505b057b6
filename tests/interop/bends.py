"""Ways in which a server may bend what it says and sends, as values: pure functions of the true bytes.

A Bend says where (`place`), how (a name in one of the tables here), how much (`n`, whatever that means for
this way), and at which occurrences of the place. A bent message is a list of pieces, of which an Ending ends
the connection or all that is said on it.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

ALWAYS = 1 << 30


@dataclass(frozen=True)
class Bend:
    """One thing that is bent."""

    place: str
    how: str
    n: int = 0
    first: int = 0  # the first occurrence that is bent
    times: int = ALWAYS  # how many are

    def hits(self, occurrence: int) -> bool:
        return self.first <= occurrence < self.first + self.times


class Ending(Enum):
    """What becomes of a connection after a piece."""

    CLOSED = "closed"
    RESET = "reset"
    SILENT = "silent"  # it stays, and nothing more is said


Piece = bytes | Ending
Way = Callable[[bytes, int], list[Piece]]

CODES = (
    *(0, 99, 100, 110, 111, 112, 113, 120, 125, 150, 199, 200, 202, 211, 213, 220, 221, 226, 227, 229, 230),
    *(250, 257, 299, 331, 332, 350, 421, 425, 426, 450, 451, 452, 500, 501, 502, 503, 504, 530, 550, 551),
    *(552, 553, 631, 700, 999),
)


def noise(n: int) -> bytes:
    """Return up to 2000 bytes that depend on n alone."""
    chance = random.Random(n)
    return chance.randbytes(chance.choice((1, 2, 3, 20, 200, 2000)))


def cut(raw: bytes, n: int) -> bytes:
    return raw[: n % (len(raw) or 1)]


def changed(raw: bytes, n: int) -> bytes:
    """Change one byte."""
    at = n % (len(raw) or 1)
    return raw[:at] + bytes(byte ^ (1 + n % 255) for byte in raw[at : at + 1]) + raw[at + 1 :]


def other_number(raw: bytes, n: int) -> bytes:
    """Add to, or take from, one of the numbers behind the code."""
    found = list(re.finditer(rb"\d+", raw[4:]))
    if not found:
        return raw
    start, end = (at + 4 for at in found[n % len(found)].span())
    amount = (1, -1, 2, 10, -10, 255, 4096, -4096, 1 << 31, 1 << 32, -(1 << 62))[n % 11]
    return raw[:start] + str(int(raw[start:end]) + amount).encode() + raw[end:]


def more_digits(raw: bytes, n: int) -> bytes:
    return re.sub(rb"(\d+)(\D*)$", lambda found: found[1] + b"7" * (1 + n % 40) + found[2], raw)


def telnet(raw: bytes, n: int) -> bytes:
    at, command = n % (len(raw) or 1), (b"\xff\xf4", b"\xff\xfb\x01", b"\xff\xff", b"\xf2\xff")[n % 4]
    return raw[:at] + command + raw[at:]


def lines_before(raw: bytes, n: int) -> bytes:
    return b"%03d-as follows\r\n %03d inner\r\n" % (int(raw[:3]), CODES[n % len(CODES)]) + raw


def of_code(raw: bytes, n: int) -> bytes:
    """Give another code to a reply, on each of its lines that has one."""
    return re.sub(rb"(?m)^\d{3}(?=[ -])", b"%03d" % CODES[n % len(CODES)], raw)


REPLIES: dict[str, Way] = {
    "another code": lambda raw, n: [of_code(raw, n)],
    "another number": lambda raw, n: [other_number(raw, n)],
    "more digits": lambda raw, n: [more_digits(raw, n)],
    "preliminary replies before": lambda raw, n: [b"1%02d wait\r\n" % (n % 100) * (1 + n % 50), raw],
    "another reply before": lambda raw, n: [b"%03d this too\r\n" % CODES[n % len(CODES)], raw],
    "several lines": lambda raw, n: [lines_before(raw, n)],
    "cut": lambda raw, n: [cut(raw, n)],
    "cut and closed": lambda raw, n: [cut(raw, n), Ending.CLOSED],
    "cut and reset": lambda raw, n: [cut(raw, n), Ending.RESET],
    "cut and silent": lambda raw, n: [cut(raw, n), Ending.SILENT],
    "said and closed": lambda raw, n: [raw, Ending.CLOSED],
    "never": lambda raw, n: [],
    "twice": lambda raw, n: [raw, raw],
    "dripped": lambda raw, n: [bytes([byte]) for byte in raw],
    "telnet": lambda raw, n: [telnet(raw, n)],
    "one byte changed": lambda raw, n: [changed(raw, n)],
    "noise": lambda raw, n: [noise(n) + b"\r\n"],
    "noise before": lambda raw, n: [noise(n) + b"\r\n" + raw],
    "noise within": lambda raw, n: [raw[:-2] + noise(n) + b"\r\n"],
    "empty lines before": lambda raw, n: [b"\r\n" * (1 + n % 9) + raw],
    "bare line feeds": lambda raw, n: [raw.replace(b"\r\n", b"\n")],
    "long": lambda raw, n: [raw[:-2] + b" x" * (n % 200_000) + b"\r\n"],
    "without text": lambda raw, n: [raw[:3] + b"\r\n"],
}

# How the bytes of a file, or of a listing, are sent.
DATA: dict[str, Way] = {
    "cut": lambda raw, n: [cut(raw, n)],
    "cut and reset": lambda raw, n: [cut(raw, n), Ending.RESET],
    "cut and silent": lambda raw, n: [cut(raw, n), Ending.SILENT],
    "whole and silent": lambda raw, n: [raw, Ending.SILENT],
    "whole and reset": lambda raw, n: [raw, Ending.RESET],
    "nothing": lambda raw, n: [],
    "longer": lambda raw, n: [raw + noise(n)],
    "twice": lambda raw, n: [raw, raw],
    "dripped": lambda raw, n: [*(bytes([byte]) for byte in raw[:20]), raw[20:]],
}
DAMAGE: dict[str, Way] = {  # of the right length: only a checksum shows it
    "one byte changed": lambda raw, n: [changed(raw, n)],
    "the first bytes twice": lambda raw, n: [(raw[: len(raw) // 2] * 3)[: len(raw)]],
    "zeros": lambda raw, n: [bytes(len(raw))],
}
BLOCKS: dict[str, Way] = {  # the 17 bytes of one header
    "one byte changed": lambda raw, n: [changed(raw, n)],
    "cut": lambda raw, n: [cut(raw, n)],
    "twice": lambda raw, n: [raw, raw],
    "noise before": lambda raw, n: [noise(n), raw],
}
LINES: dict[str, Way] = {  # one line of a listing
    "left out": lambda raw, n: [],
    "twice": lambda raw, n: [raw, raw],
    "cut": lambda raw, n: [cut(raw, n)],
    "cut before its end": lambda raw, n: [cut(raw, n) + b"\r\n"],
    "one byte changed": lambda raw, n: [changed(raw, n)],
    "noise": lambda raw, n: [noise(n) + b"\r\n"],
    "noise before": lambda raw, n: [noise(n), raw],
    "another number": lambda raw, n: [other_number(raw, n)],
    "more digits": lambda raw, n: [more_digits(raw, n)],
    "another kind": lambda raw, n: [raw.replace(b"type=", b"type=" + KINDS[n % len(KINDS)] + b";x=")],
    "another name": lambda raw, n: [raw[: raw.rindex(b" ") + 1] + NAMES[n % len(NAMES)] + b"\r\n"],
    "without facts": lambda raw, n: [raw[raw.index(b" ") :]],
    "without a blank": lambda raw, n: [raw.replace(b" ", b"")],
    "empty lines before": lambda raw, n: [b"\r\n" * (1 + n % 9) + raw],
    "bare line feeds": lambda raw, n: [raw.replace(b"\r\n", b"\n")],
    "telnet": lambda raw, n: [telnet(raw, n)],
}
KINDS = (b"dir", b"cdir", b"pdir", b"OS.unix=slink:/", b"OS.unix=symlink", b"OS.unix=fifo", b"what", b"")
NAMES = (b"", b".", b"..", b"../x", b"/x", b"a/b", b"one", b"ONE", b"new", b"\0", b"a\rb", b"x" * 300, b"-r")
STORED: dict[str, Way] = {  # what is kept of an upload
    "cut": lambda raw, n: [cut(raw, n)],
    "longer": lambda raw, n: [raw + noise(n)],
    "nothing": lambda raw, n: [],
}
OFFSETS: dict[str, Callable[[int, int], int]] = {  # where a part begins
    "ignored": lambda offset, n: 0,
    "too far": lambda offset, n: offset + (1 + n % 1000 if offset else 0),
    "too early": lambda offset, n: max(0, offset - 1 - n % 1000),
    "of few bits": lambda offset, n: offset % (1 << 18),
    "in blocks": lambda offset, n: offset // 4096 * 4096,
}
SIZES: dict[str, Callable[[int, int], int]] = {  # whoever is asked
    "other": lambda size, n: max(0, size + (1, -1, 2, -2, 512, -512, 100_000, 1 << 31, 1 << 40)[n % 9]),
    "none": lambda size, n: 0,
}
ARRIVALS = (  # what becomes of an upload once so many bytes have come
    "one reset",  # of its data connections
    "all reset",
    "closed",
    "closed and done",  # as the server says
    "session reset",
    "silent",
)
DEEDS = ("refused", "only said", "done and refused")  # what becomes of a command that changes something


def bent(pieces: Sequence[Piece], table: dict[str, Way], bend: Bend) -> list[Piece]:
    """Bend what may be bent already; an ending stays where it is."""
    raw = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    endings = [piece for piece in pieces if isinstance(piece, Ending)]
    return [*table[bend.how](raw, bend.n), *endings] if raw else list(pieces)
