"""Lines of a listing that wait until it has ended, compressed: a folder may have a million of them."""

import zlib
from collections import deque
from collections.abc import Iterator

_BLOCK_BYTES = 256 * 1024  # compressed together


class KeptLines:
    """Lines without their ends, in their order."""

    def __init__(self) -> None:
        self.count = 0
        self._blocks: deque[bytes] = deque()
        self._block = bytearray()  # the latest lines
        self._compressed_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """How much memory they take."""
        return self._compressed_bytes + len(self._block)

    def add(self, line: str) -> None:
        """Keep one more."""
        self.count += 1
        self._block += line.encode("utf-8", "surrogateescape") + b"\n"
        if len(self._block) >= _BLOCK_BYTES:
            self._close_block()

    def take(self, together: int) -> Iterator[list[str]]:
        """Yield all of them, no more than so many at a time; what was yielded is not kept any longer."""
        self._close_block()
        while self._blocks:
            lines = zlib.decompress(self._blocks.popleft()).split(b"\n")[:-1]
            for first in range(0, len(lines), together):
                yield [line.decode("utf-8", "surrogateescape") for line in lines[first : first + together]]

    def _close_block(self) -> None:
        if self._block:
            self._blocks.append(zlib.compress(self._block, 1))
            self._compressed_bytes += len(self._blocks[-1])
            self._block.clear()
