"""Checksums taken while bytes pass, in any order, against those of the bytes themselves."""

import hashlib
import os
import random
import tempfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mpx.engine import block_digests, checksum, running_checksum
from mpx.engine.checksum import of_file
from mpx.engine.running_checksum import Running, RunningAdler32, RunningHash, Unread, running

SECTION = 4096  # instead of 64 MiB, so that a short file has several
BLOCK = 512
SIZE = 3 * SECTION + 700
CONTENT = random.Random(3).randbytes(SIZE)
ALGORITHMS = ["adler32", "xxh3", "md5", "sha256"]
EDGES = st.lists(st.integers(0, SIZE), max_size=12)


@pytest.fixture(autouse=True)
def short_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (checksum, running_checksum):
        monkeypatch.setattr(module, "SECTION_BYTES", SECTION)
    monkeypatch.setattr(block_digests, "BLOCK_BYTES", BLOCK)


@pytest.fixture(scope="module")
def fd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    file = tmp_path_factory.mktemp("running") / "file"
    file.write_bytes(CONTENT)
    number = os.open(file, os.O_RDONLY)
    yield number
    os.close(number)


def taking(algorithm: str) -> Running:
    return running(algorithm)


def sections() -> list[tuple[int, int]]:
    return [(start, min(start + SECTION, SIZE)) for start in range(0, SIZE, SECTION)]


def passes(sums: Running, start: int, end: int) -> None:
    sums.passed(start, memoryview(CONTENT)[start:end])


def never() -> bool:
    return False


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=12), EDGES)
def test_stretches_in_any_order_twice_and_forgotten(
    fd: int, algorithm: str, stretches: list[tuple[int, int]], forgotten: list[int]
) -> None:
    sums = taking(algorithm)
    for i, (one, other) in enumerate(stretches):
        passes(sums, min(one, other), max(one, other))
        if i < len(forgotten):
            sums.forget(min(one, forgotten[i]), max(one, forgotten[i]))
    for start, end in [*sections(), (0, SIZE)]:
        assert sums.hex(start, end, fd, never) == of_file(algorithm, fd, start, end)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(EDGES)
def test_what_passed_in_order_is_not_read_again(algorithm: str, edges: list[int]) -> None:
    sums = taking(algorithm)
    cut = sorted({0, SIZE, *edges})
    for start, end in pairwise(cut):
        passes(sums, start, end)
    for start, end in sections():
        for _ in range(2):  # a session may be lost before it has said what it found
            assert sums.hex(start, end, None, never) == expected(algorithm, CONTENT[start:end])


def expected(algorithm: str, data: bytes) -> str:
    digest = checksum.new(algorithm)
    digest.update(memoryview(data))
    return digest.digest().hex()


@pytest.mark.parametrize("algorithm", ["adler32", "xxh3"])
def test_whole_blocks_may_pass_in_any_order(algorithm: str) -> None:
    sums, starts = taking(algorithm), list(range(0, SIZE, BLOCK))
    random.Random(1).shuffle(starts)
    for start in starts:
        passes(sums, start, min(start + BLOCK, SIZE))
    for start, end in sections():
        assert sums.hex(start, end, None, never) == expected(algorithm, CONTENT[start:end])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_did_not_pass_and_cannot_be_read_is_not_made_up(algorithm: str) -> None:
    sums = taking(algorithm)
    passes(sums, 0, 100)
    passes(sums, 101, SECTION)
    with pytest.raises(Unread):
        sums.hex(0, SECTION, None, never)
    with pytest.raises(Unread):
        taking(algorithm).hex(0, 1, None, never)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_passes_after_it_was_forgotten_counts(fd: int, algorithm: str) -> None:
    sums = taking(algorithm)
    sums.passed(0, memoryview(bytes(SECTION)))
    assert sums.hex(0, SECTION, fd, never) == expected(algorithm, bytes(SECTION))
    sums.forget(0, SECTION)
    passes(sums, 0, SECTION)
    assert sums.hex(0, SECTION, None, never) == expected(algorithm, CONTENT[:SECTION])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(st.integers(0, SIZE), st.integers(0, SIZE), EDGES)
def test_holes_are_zeros(algorithm: str, one: int, other: int, edges: list[int]) -> None:
    start, end = min(one, other), max(one, other)
    content = CONTENT[:start] + bytes(end - start) + CONTENT[end:]
    sums, cut = taking(algorithm), sorted({start, end, *edges})
    for first, last in pairwise(cut):
        if start <= first and last <= end:
            sums.passed_zeros(first, last)
    sums.passed(0, memoryview(content)[:start])
    sums.passed(end, memoryview(content)[end:])
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        for first, last in sections():
            assert sums.hex(first, last, file.fileno(), never) == expected(algorithm, content[first:last])


@pytest.mark.parametrize("algorithm", ["adler32", "xxh3"])
def test_a_hole_need_not_be_read(algorithm: str) -> None:
    sums = taking(algorithm)
    sums.passed_zeros(0, 3 * SECTION)
    for start, end in sections()[:3]:
        assert sums.hex(start, end, None, never) == expected(algorithm, bytes(end - start))


def test_hashes_of_sections_do_not_combine_so_a_whole_file_is_read(fd: int) -> None:
    sums = RunningHash("md5")
    passes(sums, 0, SIZE)
    assert sums.hex(0, SIZE, fd, never) == hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    with pytest.raises(Unread):
        sums.hex(0, SIZE, None, never)


def test_adler32_of_sections_combines() -> None:
    sums = RunningAdler32()
    passes(sums, 0, SIZE)
    assert sums.hex(0, SIZE, None, never) == f"{zlib.adler32(CONTENT):08x}"


def test_stretches_that_touch_are_joined_within_a_section() -> None:
    sums, starts = RunningAdler32(), list(range(0, SIZE, 100))
    random.Random(1).shuffle(starts)
    for start in starts:
        if start != 2000:
            passes(sums, start, min(start + 100, SIZE))
    assert [stretch[:2] for stretch in sums.within(0, SECTION)] == [(0, 2000), (2100, SECTION)]
    assert len(sums.within(0, SIZE)) == 5


def test_a_file_in_the_kernel_is_read_where_it_did_not_pass(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(CONTENT)
    sums = RunningHash("sha256")
    passes(sums, 0, 1000)
    with file.open("rb") as near:
        assert sums.hex(0, SECTION, near.fileno(), never) == expected("sha256", CONTENT[:SECTION])


def test_nothing_is_taken_where_nothing_is_compared() -> None:
    sums = running("none")
    passes(sums, 0, SIZE)
    with pytest.raises(Unread):
        sums.hex(0, SIZE, None, never)
