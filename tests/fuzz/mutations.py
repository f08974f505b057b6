"""Random changes of known inputs, the same for the same seed, and a run of a fuzz target over them."""

import faulthandler
import random
from collections.abc import Callable, Iterator, Sequence

HANG_S = 60.0  # that one input may take; a busy machine takes seconds
ODD = (0, 1, 2, 3, 4, 7, 8, 0x10, 0x7F, 0x80, 0xFE, 0xFF)


def mutations(corpus: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield the corpus, then changes of it without end."""
    yield from corpus
    chance = random.Random(seed)
    while True:
        data = bytearray(chance.choice(corpus))
        for _ in range(chance.choice((1, 1, 2, 4, 8))):
            _change(data, chance, corpus)
        yield bytes(data)


def _change(data: bytearray, chance: random.Random, corpus: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    kind = chance.randrange(6)
    if kind <= 1 and at < len(data):
        data[at] = chance.choice((*ODD, chance.randrange(256)))
    elif kind == 2 and at + 2 <= len(data):
        data[at : at + 2] = chance.choice((0, 1, 4, 7, 8, 16, 0x7FFF, 0xFFF8, 0xFFFF)).to_bytes(2)
    elif kind == 3:
        del data[at : at + chance.choice((1, 2, 8, len(data)))]
    elif kind == 4:
        data[at:at] = chance.choice((bytes(8), b"\xff" * 4, chance.randbytes(chance.randrange(16))))
    else:
        other = chance.choice(corpus)
        start = chance.randrange(len(other) + 1)
        data[at:at] = other[start : start + chance.choice((4, 8, 64))]


def fuzz(one: Callable[[bytes], None], corpus: Sequence[bytes], count: int, seed: int = 1) -> None:
    """Give a target the corpus and `count` changes of it; one that it does not end with ends the process."""
    for number, data in zip(range(len(corpus) + count), mutations(corpus, seed), strict=False):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        try:
            one(data)
        except Exception as error:
            error.add_note(f"input {number} of seed {seed}: {data[:2000].hex()}")
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
