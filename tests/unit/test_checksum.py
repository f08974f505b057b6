"""Checksums against the standard library, of stretches in any order."""

import hashlib
import os
import random
import zlib
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mpx import checksum
from mpx.checksum import SECTION_BYTES, RunningSums, adler32, adler32_combine, of_file, sum_of

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


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), max_size=40),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), max_size=3),
    st.integers(0, 5000),
    st.integers(0, 5000),
)
def test_running_sums_of_stretches_in_any_order(
    stretches: list[tuple[int, int]], forgotten: list[tuple[int, int]], one: int, other: int
) -> None:
    sums, read = RunningSums(), []
    for start, end in stretches:
        if start <= end:
            sums.add(start, end, zlib.adler32(CONTENT[start:end]))
    for start, end in forgotten:
        sums.forget(min(start, end), max(start, end))

    def from_file(start: int, end: int, value: int) -> int:
        read.append((start, end))
        return zlib.adler32(CONTENT[start:end], value)

    start, end = min(one, other), max(one, other)
    assert sum_of(sums.within(start, end), start, end, from_file) == zlib.adler32(CONTENT[start:end])
    assert sum_of(sums.within(0, 5000), 0, 5000, from_file) == zlib.adler32(CONTENT)


def test_what_passed_by_is_not_read_again() -> None:
    sums = RunningSums()
    order = list(range(0, 5000, 100))
    random.Random(1).shuffle(order)
    for start in order:
        if start != 2000:
            sums.add(start, start + 100, zlib.adler32(CONTENT[start : start + 100]))
    read = []

    def from_file(start: int, end: int, value: int) -> int:
        read.append((start, end))
        return zlib.adler32(CONTENT[start:end], value)

    assert len(sums.within(0, 5000)) == 2  # joined, so that it stays small
    assert sum_of(sums.within(0, 5000), 0, 5000, from_file) == zlib.adler32(CONTENT)
    assert read == [(2000, 2100)]


def test_bytes_that_pass_twice_count_once() -> None:
    sums = RunningSums()
    sums.add(0, 100, zlib.adler32(CONTENT[:100]))
    sums.add(50, 150, zlib.adler32(CONTENT[50:150]))
    assert sums.within(0, 5000) == [(0, 100, zlib.adler32(CONTENT[:100]))]


def test_sections_stay_apart() -> None:
    sums = RunningSums()
    edge = SECTION_BYTES
    sums.add(edge - 10, edge, 1)
    sums.add(edge, edge + 10, 1)
    assert [stretch[:2] for stretch in sums.within(0, 2 * edge)] == [(edge - 10, edge), (edge, edge + 10)]


@pytest.mark.parametrize("algorithm", checksum.ALGORITHMS)
@pytest.mark.parametrize(("start", "end"), [(0, 5000), (17, 4000), (100, 100), (4000, 9000)])
def test_of_a_part_of_a_file(tmp_path: Path, algorithm: str, start: int, end: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(CONTENT)
    part = CONTENT[start:end]
    wanted = (
        f"{zlib.adler32(part):08x}" if algorithm == "adler32" else hashlib.new(algorithm, part).hexdigest()
    )
    fd = os.open(file, os.O_RDONLY)
    try:
        assert of_file(algorithm, fd, start, end) == wanted
    finally:
        os.close(fd)
