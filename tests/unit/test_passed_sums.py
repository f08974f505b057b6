"""Checksums of what passes through this host: of the bytes that were stored, or none."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.engine import checksum, passed_sums
from mpx.engine.passed_sums import PassedSums
from mpx.engine.running_checksum import Unread

DATA = random.Random(5).randbytes(1000)
SECTION = 64


@pytest.fixture(autouse=True, scope="module")
def small_sections() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passed_sums, "SECTION_BYTES", SECTION)
        yield


def of(by: str, start: int, end: int) -> str:
    digest = checksum.new(by)
    digest.update(memoryview(DATA)[start:end])
    return digest.digest().hex()


def told(sums: PassedSums, start: int, end: int) -> str:
    return sums.hex(start, end, None, lambda: False)


def passes(sums: PassedSums, start: int, end: int, *, each: int = 50, is_stored: bool = True) -> None:
    piece = sums.begin(start)
    for at in range(start, end, each):
        piece.add(memoryview(DATA)[at : min(at + each, end)])
    if is_stored:
        piece.stored()


@given(
    st.sampled_from(["adler32", "crc32"]),
    st.sets(st.integers(1, len(DATA) - 1), max_size=20),
    st.integers(1, 200),
    st.randoms(),
)
def test_pieces_in_any_order(by: str, cuts: set[int], each: int, order: random.Random) -> None:
    edges = [0, *sorted(cuts), len(DATA)]
    pieces = list(pairwise(edges))
    order.shuffle(pieces)
    sums = PassedSums("none", by)
    for start, end in pieces:
        passes(sums, start, end, each=each, is_stored=False)  # is lost, and passes once more
        passes(sums, start, end, each=each)
    assert told(sums, 0, len(DATA)) == of(by, 0, len(DATA))
    for start in range(0, len(DATA), SECTION):
        end = min(start + SECTION, len(DATA))
        assert told(sums, start, end) == of(by, start, end)


@pytest.mark.parametrize("by", ["adler32", "crc32"])
def test_what_did_not_pass_is_not_told(by: str) -> None:
    sums = PassedSums("none", by)
    passes(sums, 0, 100)
    passes(sums, 200, 300)
    passes(sums, 100, 200, is_stored=False)
    with pytest.raises(Unread):
        told(sums, 0, 300)
    assert told(sums, 0, SECTION) == of(by, 0, SECTION)
    sums.forget(0, 10)
    with pytest.raises(Unread):
        told(sums, 0, SECTION)


def test_a_hash_of_what_passes_in_order() -> None:
    sums = PassedSums("none", "md5")
    passes(sums, 0, 100)
    passes(sums, 100, 1000)
    assert told(sums, 0, 1000) == of("md5", 0, 1000)
    sums.forget(0, 1000)
    with pytest.raises(Unread):
        told(sums, 0, 1000)
    passes(sums, 0, 1000)
    assert told(sums, 0, 1000) == of("md5", 0, 1000)


@pytest.mark.parametrize("pieces", [[(100, 200), (0, 100)], [(0, 100), (200, 300)], [(0, 100)]])
def test_a_hash_of_what_does_not(pieces: list[tuple[int, int]]) -> None:
    sums = PassedSums("none", "md5")
    for start, end in pieces:
        passes(sums, start, end)
    with pytest.raises(Unread):
        told(sums, 0, 300)


def test_a_hash_counts_what_is_stored() -> None:
    sums = PassedSums("none", "md5")
    passes(sums, 0, 100)
    passes(sums, 100, 200, is_stored=False)
    passes(sums, 100, 200)
    with pytest.raises(Unread):  # some of it is in the hash twice
        told(sums, 0, 200)
    passes(sums, 0, 200)
    assert told(sums, 0, 200) == of("md5", 0, 200)


def test_a_hash_of_what_is_forgotten_while_a_piece_is_under_way() -> None:
    sums = PassedSums("none", "md5")
    piece = sums.begin(0)
    piece.add(memoryview(DATA))
    sums.forget(0, len(DATA))
    piece.stored()
    with pytest.raises(Unread):
        told(sums, 0, len(DATA))
