"""Checksums of files and of their parts: their names, how they are computed, and Adler-32 that combines."""

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Protocol

try:
    from zlib_ng import zlib_ng
except ImportError as error:  # in the server that is sent over ssh, which has what Python has
    if "failed to map segment" in str(error):  # it is there, and memory is not
        raise
    import zlib as zlib_ng  # type: ignore[no-redef]

from mpx.engine.block_digests import BlockDigest
from mpx.engine.holes import HoleReader, is_sparse, stretches

DIGITS = {"xxh3": 32, "sha256": 64, "sha512": 128, "sha1": 40, "md5": 32, "crc32": 8, "adler32": 8}  # hex
SECTION_BYTES = 64 * 1024 * 1024  # verified as one; a mismatch costs one section, not the file

_BASE = 65521  # the largest prime below 2**16 (RFC 1950)
_READ_BYTES = 1024 * 1024


class ComposedMd5(str):
    """The MD5 of the MD5s of parts of a file, in hex: all have `part_bytes`, but the last."""

    __slots__ = ("part_bytes",)
    part_bytes: int

    def __new__(cls, digits: str, part_bytes: int) -> "ComposedMd5":
        """Make one."""
        made = super().__new__(cls, digits)
        made.part_bytes = part_bytes
        return made


def part_bytes_of(told: object) -> int:
    """Return how large the parts are that a checksum is composed of; 0: it is of all bytes at once."""
    return told.part_bytes if isinstance(told, ComposedMd5) else 0


class Digest(Protocol):
    """What hashlib's objects are, as far as it is used here."""

    def update(self, data: memoryview, /) -> None:
        """Add bytes."""
        ...

    def digest(self) -> bytes:
        """Return the checksum of what was added."""
        ...


class _Sum32:
    """Adler-32 or CRC-32 with the shape of a hashlib object."""

    def __init__(self, step: Callable[[memoryview, int], int], value: int) -> None:
        self._step = step
        self._value = value

    def update(self, data: memoryview) -> None:
        self._value = self._step(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


def new(algorithm: str) -> Digest:
    """Return what computes one of DIGITS from bytes in order."""
    if algorithm == "xxh3":
        return BlockDigest()
    if algorithm == "adler32":
        return _Sum32(zlib_ng.adler32, 1)
    if algorithm == "crc32":
        return _Sum32(zlib_ng.crc32, 0)
    begin: Callable[..., Digest] = getattr(hashlib, algorithm)  # hashlib.new() takes four times as long
    return begin(usedforsecurity=False)


def adler32(data: bytes | bytearray | memoryview, value: int = 1) -> int:
    """Return the Adler-32 of `data` continued from `value`; frees the interpreter while it runs."""
    return zlib_ng.adler32(data, value)


def adler32_combine(first: int, second: int, second_bytes: int) -> int:
    """Return the Adler-32 of two parts put together, from their sums and the length of the second.

    With a = low half, b = high half (RFC 1950): a = a1 + a2 - 1 and b = b1 + b2 + n2 (a1 - 1), mod 65521.
    """
    a1, b1 = first & 0xFFFF, first >> 16
    a2, b2 = second & 0xFFFF, second >> 16
    a = (a1 + a2 - 1) % _BASE
    b = (b1 + b2 + second_bytes * (a1 - 1)) % _BASE
    return b << 16 | a


def crc32_combine(first: int, second: int, second_bytes: int) -> int:
    """Return the CRC-32 of two parts put together, from their sums and the length of the second."""
    return zlib_ng.crc32_combine(first, second, second_bytes)


def of_file(algorithm: str, fd: int, start: int, end: int, stop: Callable[[], bool] = lambda: False) -> str:
    """Return the checksum of [start, end) of an open file in lower-case hex.

    `stop` is asked after each MiB; when it says so, or the file ends early, the sum is of what was read.
    """
    digest = new(algorithm)
    for piece in pieces(fd, start, end, stop):
        digest.update(piece)
    return digest.digest().hex()


def composed_md5(fd: int, size_bytes: int, part_bytes: int, stop: Callable[[], bool]) -> str:
    """Return the ComposedMd5 of an open file; `stop`: see of_file."""
    whole = hashlib.md5(usedforsecurity=False)
    for start in range(0, size_bytes, part_bytes):
        whole.update(bytes.fromhex(of_file("md5", fd, start, min(start + part_bytes, size_bytes), stop)))
    return whole.hexdigest()


def is_same(stated: str, computed: str) -> bool:
    """Tell whether a checksum as a server wrote it (digits) has the value of one of ours (hex).

    Servers leave leading zeros out, and some write 32 bits as a decimal number.
    """
    if stated == computed:
        return True
    value = int(computed, 16)
    return int(stated, 16) == value or (len(computed) == 8 and stated.isdecimal() and int(stated) == value)


def pieces(fd: int, start: int, end: int, stop: Callable[[], bool]) -> Iterator[memoryview]:
    """Yield the bytes [start, end) of an open file, as far as they are there; each is gone with the next."""
    if end - start <= _READ_BYTES or not is_sparse(os.fstat(fd)):
        yield from _each(_reader(fd, end - start), start, end, stop)
        return
    data = _reader(fd, _READ_BYTES)
    with HoleReader(fd) as holes:
        for first, last, is_hole in stretches(fd, start, end):
            yield from _each(holes.read if is_hole else data, first, last, stop)


def _reader(fd: int, most_bytes: int) -> Callable[[int, int], memoryview]:
    buffer = memoryview(bytearray(min(_READ_BYTES, max(1, most_bytes))))
    return lambda start, end: buffer[: os.preadv(fd, [buffer[: end - start]], start)]


def _each(
    read: Callable[[int, int], memoryview], start: int, end: int, stop: Callable[[], bool]
) -> Iterator[memoryview]:
    while start < end and not stop() and (got := read(start, end)):
        yield got
        start += len(got)
