"""Data connections that the client opens in both directions, inside TLS: the extension MPX-DATA on the wire.

docs/extensions.md draws it. `DATA UP` or `DATA DOWN` brings a ticket. Each data connection begins with an
opening: which ticket, its own number, and a code that only who has the ticket can make. An opening counts
once, in one direction, and soon after it was made.
"""

import hmac
import os
import re
import struct
from dataclasses import dataclass
from enum import Enum

FEATURE = "MPX-DATA"  # in the reply to FEAT
VERB = "DATA"
CONTROL_PROTOCOL, DATA_PROTOCOL = "mpx-control", "mpx-data"  # ALPN, of the two kinds of connections
TOKEN_USER = "token"  # of USER; PASS has the secret
NO_FOLDER = "the folder of this token is not there"  # in the answer to PASS
VALID_S = 30.0  # an opening, from when it was made
MOST_NUMBERS = 100_000  # openings of one ticket
MOST_TRANSFERS = 1 << 24  # that follow one ticket, where connections join later than the first
_ID_BYTES, _KEY_BYTES, _CODE_BYTES = 16, 32, 32
# Kind, direction, first transfer (its high byte and the rest), ticket, number, age of the ticket in ms:
_OPENING = struct.Struct(f"!4scBH{_ID_BYTES}sII")
_KIND = b"mpx>"
BYTES = _OPENING.size + _CODE_BYTES
_LONGEST_AGE_MS = (1 << 32) - 1
_TICKET = re.compile(rf"{FEATURE} ([0-9a-f]{{{2 * _ID_BYTES}}}) ([0-9a-f]{{{2 * _KEY_BYTES}}})", re.ASCII)


class Direction(Enum):
    """Which way data goes, as the client sees it."""

    UP = "UP"
    DOWN = "DOWN"


@dataclass(frozen=True, slots=True, repr=False)
class Ticket:
    """What lets connections into one data channel. It is a secret, and never shown."""

    id: bytes
    key: bytes

    @property
    def text(self) -> str:
        """What the reply to DATA says."""
        return f"{FEATURE} {self.id.hex()} {self.key.hex()}"

    def opening(self, direction: Direction, number: int, age_s: float, first: int = 0) -> bytes:
        """Return what a data connection begins with; `age_s`: for how long we have had the ticket.

        `first`: the first transfer of the ticket that it takes part in, counted from 0.
        """
        age_ms = min(int(age_s * 1000), _LONGEST_AGE_MS)
        said = _OPENING.pack(_KIND, _letter(direction), *divmod(first, 1 << 16), self.id, number, age_ms)
        return said + hmac.digest(self.key, said, "sha256")


@dataclass(frozen=True, slots=True)
class Opening:
    """What an opening says, before its code is checked."""

    said: bytes
    code: bytes
    direction: Direction
    ticket_id: bytes
    number: int
    age_s: float
    first: int = 0  # transfer that it takes part in

    def is_of(self, ticket: Ticket) -> bool:
        """Tell whether it was made by who has the ticket; takes the same time for each wrong code."""
        return hmac.compare_digest(self.code, hmac.digest(ticket.key, self.said, "sha256"))


def new_ticket() -> Ticket:
    """Make a ticket."""
    return Ticket(os.urandom(_ID_BYTES), os.urandom(_KEY_BYTES))


def parse_ticket(text: str) -> Ticket:
    """Read the reply to DATA; raises ValueError, which does not show it."""
    found = _TICKET.fullmatch(text.strip())
    if not found:
        raise ValueError("no ticket in the answer to DATA")
    return Ticket(bytes.fromhex(found.group(1)), bytes.fromhex(found.group(2)))


def parse_opening(data: bytes) -> Opening:
    """Read what a data connection begins with; raises ValueError."""
    if len(data) != BYTES:
        raise ValueError("not an opening: its length")
    said, code = data[: _OPENING.size], data[_OPENING.size :]
    kind, letter, high, low, ticket_id, number, age_ms = _OPENING.unpack(said)
    direction = next((each for each in Direction if _letter(each) == letter), None)
    if kind != _KIND or direction is None:
        raise ValueError("not an opening: its kind or direction")
    return Opening(said, code, direction, ticket_id, number, age_ms / 1000, (high << 16) + low)


def _letter(direction: Direction) -> bytes:
    return direction.value[:1].encode("ascii")
