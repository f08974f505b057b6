"""The echo of `mpx serve` on the wire: what FEAT says of it, its datagrams, and requests for rate pulses.

docs/extensions.md draws them. An answer is as long as its question and never looks like one, so two echoes
cannot be made to answer each other for ever.
"""

import re
import struct
from dataclasses import dataclass

FEATURE = "MPX-ECHO"  # of FEAT, followed by UDP port and token
PULSE_FEATURE = "MPX-DIP"  # of FEAT: data can be sent more slowly for a moment
TOKEN_BYTES = 8
_QUESTION, _ANSWER = b"mpx?", b"mpx!"
_PULSE, _PULSE_ANSWER = b"mpx~", b"mpx-"
KINDS_ASKED = (_QUESTION, _PULSE)  # the first four bytes of what a server answers
TOKEN_AT = 8  # bytes into a datagram
_DATAGRAM = struct.Struct(f"!4s4x{TOKEN_BYTES}sQd32x")  # kind, token, number, how long it was held in seconds
_PULSE_DATAGRAM = struct.Struct(f"!4s4x{TOKEN_BYTES}sQdd24x")  # kind, token, number, seconds or depth, share
BYTES = _DATAGRAM.size
MOST_PULSE_S, LEAST_PULSE_SHARE = 0.04, 0.25
_PLACE = re.compile(rf"([0-9]{{1,5}}) ([0-9a-f]{{{2 * TOKEN_BYTES}}})", re.ASCII)


@dataclass(frozen=True, slots=True)
class EchoPlace:
    """Where the client of one session asks, and what shows that it is that client."""

    port: int  # UDP
    token: bytes

    @property
    def feature(self) -> str:
        """The line of FEAT."""
        return f"{FEATURE} {self.port} {self.token.hex()}"


def parse_place(parameters: str) -> EchoPlace | None:
    """Read what follows the name of the feature, None if it is nothing that we know."""
    found = _PLACE.fullmatch(parameters)
    port = int(found.group(1)) if found else 0
    return EchoPlace(port, bytes.fromhex(found.group(2))) if found and 0 < port < 65536 else None


@dataclass(frozen=True, slots=True)
class EchoAnswer:
    """What comes back."""

    token: bytes
    number: int  # of the probe
    held_s: float  # how long the server had the question although only its program had to run


def question(token: bytes, number: int) -> bytes:
    """Encode a probe; its number has 64 bits."""
    return _DATAGRAM.pack(_QUESTION, token, number, 0.0)


def is_question(asked: bytes) -> bool:
    """Return whether a datagram is one."""
    return len(asked) == BYTES and asked.startswith(_QUESTION)


def token_in(asked: bytes) -> bytes:
    """Return what stands where questions and requests for a pulse have their token."""
    return asked[TOKEN_AT : TOKEN_AT + TOKEN_BYTES]


def answer(asked: bytes, held_s: float) -> bytes:
    """Return what answers a question."""
    _, token, number, _ = _DATAGRAM.unpack(asked)
    return _DATAGRAM.pack(_ANSWER, token, number, held_s)


def parse_answer(data: bytes) -> EchoAnswer | None:
    """Read what came back, None if it is no answer."""
    if len(data) != BYTES:
        return None
    kind, token, number, held_s = _DATAGRAM.unpack(data)
    return EchoAnswer(token, number, held_s) if kind == _ANSWER and 0 <= held_s < 3600 else None


@dataclass(frozen=True, slots=True)
class PulseRequest:
    """A rate pulse: data is to be sent at this share of its rate for so long."""

    seconds: float
    share: float


def ask_for_pulse(token: bytes, number: int, seconds: float, share: float) -> bytes:
    """Encode a request for a rate pulse (pulse.py)."""
    return _PULSE_DATAGRAM.pack(_PULSE, token, number, seconds, share)


def parse_pulse_request(asked: bytes) -> PulseRequest | None:
    """Read a request for a pulse; None for another datagram, or for a pulse that nobody may have."""
    if len(asked) != BYTES:
        return None
    kind, _, _, seconds, share = _PULSE_DATAGRAM.unpack(asked)
    is_fit = kind == _PULSE and 0 < seconds <= MOST_PULSE_S and LEAST_PULSE_SHARE <= share < 1
    return PulseRequest(seconds, share) if is_fit else None


def answer_pulse(asked: bytes, depth: float) -> bytes:
    """Return the answer to a request for a pulse: the share of the data that is left out, 0 where none is."""
    _, token, number, _, _ = _PULSE_DATAGRAM.unpack(asked)
    return _PULSE_DATAGRAM.pack(_PULSE_ANSWER, token, number, depth, 0.0)


def parse_pulse_answer(data: bytes, token: bytes) -> tuple[int, float] | None:
    """Read the number and the depth of the pulse that was requested; None for another datagram."""
    if len(data) != BYTES:
        return None
    kind, whose, number, depth, _ = _PULSE_DATAGRAM.unpack(data)
    return (number, depth) if kind == _PULSE_ANSWER and whose == token and 0 <= depth <= 1 else None
