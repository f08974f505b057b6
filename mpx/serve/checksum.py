"""Checksums of a part of a file: CKSM."""

import hashlib
import os
import time
import zlib
from collections.abc import Callable

ALGORITHMS = ("MD5", "ADLER32", "SHA1", "SHA256", "SHA512")

_READ_BYTES = 1024 * 1024


class _Adler32:
    """Adler-32 with the shape of a hashlib object."""

    def __init__(self) -> None:
        self._value = 1

    def update(self, data: memoryview) -> None:
        self._value = zlib.adler32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def checksum(fd: int, algorithm: str, offset: int, length: int, tick: Callable[[int], None]) -> str:
    """Return the checksum in hex of `length` bytes from `offset`, or to the end of the file.

    A negative length means to the end. `tick` is called with the bytes done so far about every second
    and may raise to stop.
    """
    digest = _Adler32() if algorithm == "ADLER32" else hashlib.new(algorithm, usedforsecurity=False)
    buffer = memoryview(bytearray(_READ_BYTES))
    left = length if length >= 0 else max(0, os.fstat(fd).st_size - offset)
    done, told_s = 0, time.monotonic()
    while left:
        size = os.preadv(fd, [buffer[: min(left, _READ_BYTES)]], offset)
        if not size:
            break
        digest.update(buffer[:size])
        offset += size
        done += size
        left -= size
        if (now_s := time.monotonic()) >= told_s + 1:
            told_s = now_s
            tick(done)
    return digest.hexdigest()
