"""The datagrams of the echo of `mpx serve`: questions and answers of the same length.

docs/extensions.md draws them. An answer never looks like a question, so two echoes cannot be made to answer
each other for ever.
"""

import struct
from dataclasses import dataclass

FEATURE = "MPX-ECHO"  # of FEAT, followed by the UDP port
_QUESTION, _ANSWER = b"mpx?", b"mpx!"
_DATAGRAM = struct.Struct("!4s4xQQd32x")  # kind, token, number, how long it was held in seconds
BYTES = _DATAGRAM.size


@dataclass(frozen=True, slots=True)
class EchoAnswer:
    """What comes back."""

    token: int  # of who asked, so that nobody else's answer is taken for ours
    number: int  # of the probe
    held_s: float  # how long the server had the question although only its program had to run


def question(token: int, number: int) -> bytes:
    """Encode a probe; token and number have 64 bits."""
    return _DATAGRAM.pack(_QUESTION, token, number, 0.0)


def answer(asked: bytes, held_s: float) -> bytes | None:
    """Return what answers a datagram, None for one that is no question."""
    if len(asked) != BYTES:
        return None
    kind, token, number, _ = _DATAGRAM.unpack(asked)
    return _DATAGRAM.pack(_ANSWER, token, number, held_s) if kind == _QUESTION else None


def parse_answer(data: bytes) -> EchoAnswer | None:
    """Read what came back, None if it is no answer."""
    if len(data) != BYTES:
        return None
    kind, token, number, held_s = _DATAGRAM.unpack(data)
    return EchoAnswer(token, number, held_s) if kind == _ANSWER and 0 <= held_s < 3600 else None
