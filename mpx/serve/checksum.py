"""Checksums of a part of a file: CKSM.

However many clients ask for them, no more are worked on at a time than there are processors: others who ask
for little would wait for all of these threads.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpx.endpoints.ftp.checksum_forms import XXH3
from mpx.engine import checksum as checksums

# By the names that clients use; docs/extensions.md explains the first.
ALGORITHMS = {
    XXH3: "xxh3",
    "MD5": "md5",
    "ADLER32": "adler32",
    "SHA1": "sha1",
    "SHA256": "sha256",
    "SHA512": "sha512",
}

_READ_BYTES = 1024 * 1024
_PATIENCE_S = 0.5  # for a file system that hangs; who has waited so long for others stays beside them
_working = threading.BoundedSemaphore(os.cpu_count() or 1)


def checksum(fd: int, algorithm: str, offset: int, length: int, tick: Callable[[int], None]) -> str:
    """Return the checksum in hex of `length` bytes from `offset`, or to the end of the file.

    A negative length means to the end. `tick` is called with the bytes done so far about every second
    and may raise to stop.
    """
    digest = checksums.new(ALGORITHMS[algorithm])
    left = length if length >= 0 else max(0, os.fstat(fd).st_size - offset)
    buffer = memoryview(bytearray(max(1, min(left, _READ_BYTES))))
    done, told_s = 0, time.monotonic()
    patience_s = _PATIENCE_S
    while left:
        with _one_of_few(patience_s) as is_one:
            if not is_one:
                patience_s = 0.0  # those that hang may do so for all of this checksum: once waited is enough
            size = os.preadv(fd, [buffer[:left]], offset)
            digest.update(buffer[:size])
        if not size:
            break
        offset += size
        done += size
        left -= size
        if (now_s := time.monotonic()) >= told_s + 1:
            told_s = now_s
            tick(done)
    return digest.digest().hex()


@contextmanager
def _one_of_few(patience_s: float) -> Iterator[bool]:
    """Wait so long for a turn; yields whether it came."""
    had = _working.acquire(timeout=patience_s)
    try:
        yield had
    finally:
        if had:
            _working.release()
