"""Random changes of known inputs, and inputs that are made long; the same for the same random numbers."""

import random
from collections.abc import Sequence

LONGEST_BYTES = 32 * 1024  # of a changed input: longer ones have a check of their own
_ODD = (0, 1, 2, 3, 4, 7, 8, 0x10, 0x7F, 0x80, 0xFE, 0xFF)
_NUMBERS = (b"0", b"-1", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"9" * 40, b"1e999")
_WORDS = (
    b"\r\n",
    b"\0",
    b"\xff\xf4\xf2",
    b"\xff\xff",
    b" ",
    b"  ",
    b"-",
    b";",
    b"=",
    b",",
    b"/..",
    b'"',
    b"\xc3",
)


def mutated(pool: Sequence[bytes], chance: random.Random) -> bytes:
    """Return one of these inputs with one to eight changes."""
    data = bytearray(chance.choice(pool))
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        _change(data, chance, pool)
    return bytes(data[:LONGEST_BYTES])


def _change(data: bytearray, chance: random.Random, pool: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    kind = chance.randrange(9)
    if kind <= 1 and at < len(data):
        data[at] = chance.choice((*_ODD, chance.randrange(256)))
    elif kind == 2 and at + 2 <= len(data):
        data[at : at + 2] = chance.choice((0, 1, 4, 7, 8, 16, 0x7FFF, 0xFFF8, 0xFFFF)).to_bytes(2)
    elif kind == 3:
        del data[at : at + chance.choice((1, 2, 8, len(data)))]
    elif kind == 4:
        data[at:at] = chance.choice((bytes(8), b"\xff" * 4, chance.randbytes(chance.randrange(16))))
    elif kind == 5:
        data[at:at] = chance.choice(_WORDS)
    elif kind == 6:  # another number in the place of one, or anywhere
        end = at
        while end < len(data) and data[end : end + 1].isdigit():
            end += 1
        data[at:end] = chance.choice(_NUMBERS)
    elif kind == 7:  # a part of it again
        end = at + chance.choice((1, 2, 8, 32))
        data[at:at] = data[at:end] * chance.choice((1, 1, 2, 30))
    else:
        other = chance.choice(pool)
        start = chance.randrange(len(other) + 1)
        data[at:at] = other[start : start + chance.choice((4, 8, 64))]


def long_pair(pool: Sequence[bytes], chance: random.Random, size_bytes: int) -> tuple[bytes, bytes]:
    """Return an input in which a few bytes are repeated, twice as often in the second as in the first.

    The second has about `size_bytes`.
    """
    data = chance.choice(pool)
    at = chance.randrange(len(data) + 1)
    part = data[at : at + chance.choice((1, 1, 2, 3, 8, 20, 100))] or chance.randbytes(1)
    end = chance.choice((data[at:], data[at + len(part) :], b"", b"!"))
    times = max(1, size_bytes // 2 // len(part))
    return data[:at] + part * times + end, data[:at] + part * (2 * times) + end
