"""Holes of sparse files: where a file of this host has data, and what the zeros between sum up to.

Where the holes are is told by the file system, and some have told it wrong, so that copies got zeros for
data. So a checksum is never taken of zeros that were not read: holes are read too, past the cache, which
takes a tenth of the time.
"""

import contextlib
import errno
import mmap
import os
from collections.abc import Callable, Iterator

from mpx.engine.ranges import Range

_BASE = 65521  # of Adler-32 (RFC 1950)
_READ_BYTES = 1024 * 1024
_UNCACHED = os.O_RDONLY | os.O_DIRECT | os.O_NONBLOCK | os.O_CLOEXEC
_ZEROS = bytearray(_READ_BYTES)  # compared as one, which a memoryview would not be


def is_sparse(status: os.stat_result) -> bool:
    """Tell whether a file takes less room than its size, so that looking for holes may pay."""
    return status.st_blocks * 512 < status.st_size


def next_data(fd: int, start: int, end: int) -> Range:
    """Return the first stretch with data within [start, end) of an open file; (end, end) if it is all hole.

    Where a file system cannot tell, everything is data. Raises OSError.
    """
    try:
        first = os.lseek(fd, start, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # none up to the end of the file
            return end, end
        if error.errno == errno.EINVAL:
            return start, end
        raise
    if first >= end:
        return end, end
    return first, min(end, os.lseek(fd, first, os.SEEK_HOLE))


def stretches(fd: int, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield what [start, end) of an open file is made of, as (start, end, is it a hole). Raises OSError.

    A hole is told only up to the end of the file; beyond it, as in a file without holes, all may be data.
    """
    status = os.fstat(fd)
    while is_sparse(status) and start < (inside := min(end, status.st_size)):
        first, last = next_data(fd, start, inside)
        if first > start:
            yield start, first, True
        if last > first:
            yield first, last, False
        start = last
    if start < end:
        yield start, end, False


def lost_from(fd: int, start: int, end: int) -> int | None:
    """Return from where on bytes that were written to [start, end) of an open file are gone; or None.

    Whoever cuts a file to which others still write leaves a hole. Some file systems make holes of zeros that
    were written; whether this is one shows when a zero is written to the hole. Raises OSError.
    """
    if (size_bytes := os.fstat(fd).st_size) < end:
        return size_bytes
    if start >= end or _next_hole(fd, start, end) >= end:
        return None
    os.fsync(fd)  # what is not written yet may be taken for a hole
    if (hole := _next_hole(fd, start, end)) >= end:
        return None
    os.pwrite(fd, b"\0", hole)
    os.fsync(fd)
    return None if _next_hole(fd, hole, end) == hole else hole


def _next_hole(fd: int, start: int, end: int) -> int:
    """Return where the next hole begins; `end` where a file system cannot tell. Raises OSError."""
    try:
        return os.lseek(fd, start, os.SEEK_HOLE)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOTSUP):
            return end
        raise


def adler32_of_zeros(size_bytes: int) -> int:
    """Return the Adler-32 of so many zero bytes."""
    return size_bytes % _BASE << 16 | 1


class HoleReader:
    """Reads an open file where it is said to have holes; close it, or use it in a `with` statement."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = memoryview(mmap.mmap(-1, _READ_BYTES))  # aligned, as reading past the cache asks for
        try:
            self._uncached: int | None = os.open(f"/proc/self/fd/{fd}", _UNCACHED)
        except OSError:  # not every file system can
            self._uncached = None

    def __enter__(self) -> "HoleReader":
        return self

    def __exit__(self, *_: object) -> None:
        if self._uncached is not None:
            os.close(self._uncached)

    def read(self, start: int, end: int) -> memoryview:
        """Return some of the bytes [start, end), none at the end of the file. Raises OSError.

        They are gone with the next call.
        """
        wanted = self._buffer[: end - start]
        return wanted[: self._read_into(wanted, start)]

    def _read_into(self, wanted: memoryview, start: int) -> int:
        if self._uncached is not None:
            with contextlib.suppress(OSError):  # not at the edge of a block
                return os.preadv(self._uncached, [wanted], start)
        return os.preadv(self._fd, [wanted], start)

    def zeros_until(self, start: int, end: int, stop: Callable[[], bool]) -> int:
        """Return up to where [start, end) was read and found to be zeros, block by block. Raises OSError."""
        while start < end and not stop():
            got = self.read(start, end)
            if not got or not _are_zeros(got):
                break
            start += len(got)
        return start


def _are_zeros(data: memoryview) -> bool:
    return (_ZEROS if len(data) == _READ_BYTES else bytearray(len(data))) == data
