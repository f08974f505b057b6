"""Memory of data connections, which goes back to the kernel as soon as it is not needed.

The heap would keep it: of what threads allocate there, little is ever given back. Pages of a mapping cost
nothing until something is written to them, so a connection that carries little takes little.
"""

import mmap
import threading
import time
from collections import Counter

from mpx.endpoints.ftp.framing import HEADER_BYTES
from mpx.engine.token_bucket import TokenBucket

BLOCK_BYTES = 1024 * 1024  # moved at once: see docs/serve.md for what was measured
SMALL_BLOCK_BYTES = 128 * 1024  # moved at once by who has many connections already
MOST_CONNECTIONS = 256  # of one session at a time
MOST_OF_ADDRESS = 2048  # data connections: eight copies with as many streams as they may have
MOST_OF_ALL = 8192
WITH_LARGE_BLOCKS = 128  # of one address
_JOIN_RATE, _JOIN_BURST = 400.0, 256  # connections in a second, and at once
_KEPT_BYTES = 64 * 1024  # between two transfers: that much small files need


class Buffer:
    """Memory for one MODE E block and its header; pages come as they are used."""

    def __init__(self, block_bytes: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._pages = mmap.mmap(-1, HEADER_BYTES + block_bytes, flags)
        self.view = memoryview(self._pages)

    def shrink(self) -> None:
        """Give back all but what a small file needs; the content is lost."""
        self._pages.madvise(mmap.MADV_DONTNEED, _KEPT_BYTES)

    def release(self) -> None:
        """Give everything back now, though somebody may still hold the view."""
        self._pages.madvise(mmap.MADV_DONTNEED)


class ConnectionBudget:
    """How many data connections there may be, of one address and in all; safe to use from many threads."""

    def __init__(self, of_address: int = MOST_OF_ADDRESS, of_all: int = MOST_OF_ALL) -> None:
        self._of_address = of_address
        self._of_all = of_all
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()  # by address; guarded by _lock, as is the sum
        self._sum = 0
        self._one_at_a_time = threading.Lock()
        self._joining = TokenBucket(_JOIN_RATE, _JOIN_BURST)  # guarded by _one_at_a_time

    def wait_to_join(self) -> None:
        """Wait until one more may join a transfer that has several: of all transfers, so many in a second.

        A connection costs a thread. Threads that come and go in crowds keep Python from all others.
        """
        with self._one_at_a_time:
            if not self._joining.take(time.monotonic()):
                time.sleep(1 / _JOIN_RATE)  # the others wait for the lock, their connections in the kernel

    def take(self, address: str) -> int:
        """Count one more; return how many bytes it may move at once, or 0 if there may be no more."""
        with self._lock:
            theirs = self._open[address]
            if theirs >= self._of_address or self._sum >= self._of_all:
                return 0
            self._open[address] += 1
            self._sum += 1
            return BLOCK_BYTES if theirs < WITH_LARGE_BLOCKS else SMALL_BLOCK_BYTES

    def give_back(self, address: str) -> None:
        """Count one less."""
        with self._lock:
            self._sum -= 1
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]
