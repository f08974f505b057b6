"""Checksums against the standard library, of stretches in any order."""

import hashlib
import os
import random
import zlib
from pathlib import Path

import hypothesis.strategies as st
import pytest
import xxhash
from hypothesis import given

from mpx.engine import checksum
from mpx.engine.block_digests import BLOCK_BYTES
from mpx.engine.checksum import adler32, adler32_combine, of_file

CONTENT = random.Random(3).randbytes(5000)


@given(st.binary(max_size=3000), st.binary(max_size=3000))
def test_two_sums_combine_as_zlib_computes_the_whole(first: bytes, second: bytes) -> None:
    assert adler32_combine(zlib.adler32(first), zlib.adler32(second), len(second)) == zlib.adler32(
        first + second
    )


@given(st.integers(0, 40_000_000))
def test_sums_of_many_equal_bytes_combine(count: int) -> None:
    # 0xff takes both halves furthest beyond the modulus.
    first, second = b"\xff" * 65521, b"\xff" * (count % 70_000)
    assert adler32_combine(zlib.adler32(first), zlib.adler32(second), len(second)) == zlib.adler32(
        first + second
    )


@given(st.binary(max_size=3000), st.binary(max_size=3000))
def test_a_sum_continues(first: bytes, second: bytes) -> None:
    assert adler32(second, adler32(first)) == zlib.adler32(first + second)


@pytest.mark.parametrize("algorithm", checksum.DIGITS)
@pytest.mark.parametrize(("start", "end"), [(0, 5000), (17, 4000), (100, 100), (4000, 9000)])
def test_of_a_part_of_a_file(tmp_path: Path, algorithm: str, start: int, end: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(CONTENT)
    fd = os.open(file, os.O_RDONLY)
    try:
        assert of_file(algorithm, fd, start, end) == by_others(algorithm, CONTENT[start:end])
    finally:
        os.close(fd)


def by_others(algorithm: str, part: bytes) -> str:
    """Compute a checksum in another way than mpx does; of xxh3 that of less than a block."""
    if algorithm == "xxh3":
        return xxhash.xxh3_128_hexdigest(xxhash.xxh3_128_digest(part) if part else b"")
    if algorithm in ("adler32", "crc32"):
        return f"{getattr(zlib, algorithm)(part):08x}"
    return hashlib.new(algorithm, part).hexdigest()


def test_every_checksum_has_its_length() -> None:
    for algorithm, digits in checksum.DIGITS.items():
        assert len(checksum.new(algorithm).digest()) * 2 == digits


@pytest.mark.parametrize(
    "size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, 700_001]
)
@pytest.mark.parametrize("step", [1000, BLOCK_BYTES, 1_000_000])
def test_xxh3_is_that_of_the_digests_of_its_blocks(size: int, step: int) -> None:
    content = random.Random(size).randbytes(size)
    blocks = [content[i : i + BLOCK_BYTES] for i in range(0, size, BLOCK_BYTES)]
    digest = checksum.new("xxh3")
    for start in range(0, size, step):
        digest.update(memoryview(content)[start : start + step])
    assert digest.digest() == xxhash.xxh3_128_digest(b"".join(map(xxhash.xxh3_128_digest, blocks)))


@pytest.mark.parametrize(
    ("told", "computed", "same"),
    [
        ("00ab12cd", "00ab12cd", True),
        ("ab12cd", "00ab12cd", True),
        ("11211469", "00ab12cd", True),  # in decimal
        ("2864434397", "aabbccdd", True),
        ("00ab12ce", "00ab12cd", False),
        ("2864434396", "aabbccdd", False),
        ("12", "0" * 30 + "0c", False),  # of 128 bits nobody writes decimal numbers
    ],
)
def test_checksums_are_compared_by_value(told: str, computed: str, same: bool) -> None:
    assert checksum.is_same(told, computed) is same
