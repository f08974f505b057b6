"""Holes of sparse files: where a file of this host has data, and what the zeros between sum up to."""

import errno
import os
from collections.abc import Iterator

from mpx.ranges import Range

_BASE = 65521  # of Adler-32 (RFC 1950)


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


def adler32_of_zeros(size_bytes: int) -> int:
    """Return the Adler-32 of so many zero bytes."""
    return size_bytes % _BASE << 16 | 1
