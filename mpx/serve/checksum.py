"""Checksums of a part of a file: CKSM.

However many clients ask for them, fewer are worked on at a time than there are processors, block by block in
turns: others who ask for little would wait for all of these threads.
"""

import os
import time
from collections.abc import Callable

from mpx.endpoints.ftp.extensions.xxh3 import XXH3
from mpx.engine import block_digests
from mpx.engine import checksum as checksums
from mpx.serve.turns import PATIENCE_S, Grant, Share, Turns

# By the names that clients use; docs/extensions.md explains the first.
ALGORITHMS = {
    XXH3: "xxh3",
    "MD5": "md5",
    "ADLER32": "adler32",
    "SHA1": "sha1",
    "SHA256": "sha256",
    "SHA512": "sha512",
}
if not block_digests.IS_HAD:
    del ALGORITHMS[XXH3]

_READ_BYTES = 1024 * 1024
_FIRST_PATIENCE_S = 0.5  # for a file system that hangs; later blocks wait less for those that hang with it
_turns = Turns(max(1, (os.cpu_count() or 1) - 1))


def checksum(fd: int, algorithm: str, offset: int, length: int, tick: Callable[[int], None]) -> str:
    """Return the checksum in hex of `length` bytes from `offset`, or to the end of the file.

    A negative length means to the end. `tick` is called with the bytes done so far about every second
    and may raise to stop.
    """
    digest = checksums.new(ALGORITHMS[algorithm])
    left = length if length >= 0 else max(0, os.fstat(fd).st_size - offset)
    buffer = memoryview(bytearray(max(1, min(left, _READ_BYTES))))
    share, patience_s = Share(), _FIRST_PATIENCE_S
    done, ticked_s = 0, time.monotonic()
    while left:
        grant, began_s = _turns.take(share, patience_s), time.thread_time()
        try:
            size = os.preadv(fd, [buffer[:left]], offset)
            digest.update(buffer[:size])
        finally:
            _turns.end(share, time.thread_time() - began_s, grant)
        if grant is Grant.NONE:
            patience_s = PATIENCE_S
        if not size:
            break
        offset += size
        done += size
        left -= size
        if (now_s := time.monotonic()) >= ticked_s + 1:
            ticked_s = now_s
            tick(done)
    return digest.digest().hex()
