"""Checksums of a source that can be read only once, taken as its bytes pass by."""

import hashlib
from collections.abc import Callable

from mpx.checksum import SECTION_BYTES

SHORT_BYTES = 1024 * 1024  # so much is hashed in any case: it costs nothing that would show
ALGORITHMS: dict[str, Callable[[], "hashlib._Hash"]] = {
    "md5": lambda: hashlib.md5(usedforsecurity=False),
    "sha256": lambda: hashlib.sha256(usedforsecurity=False),
}


class ReadOnce:
    """The hashes of each section of a stream, which is added in order. Bytes that fill a section end it."""

    def __init__(self, *, is_summed: bool) -> None:
        """With `is_summed` somebody keeps the Adler-32 of it, so that only a short stream is hashed."""
        self._is_summed = is_summed
        self._position = 0
        self._running = {name: new() for name, new in ALGORITHMS.items()}
        self._sums: dict[tuple[str, int, int], str] = {}

    def add(self, data: memoryview) -> None:
        """Take the bytes that come next."""
        while data:
            room = SECTION_BYTES - self._position % SECTION_BYTES
            self._add(data[:room])
            data = data[room:]

    def _add(self, data: memoryview) -> None:
        self._position += len(data)
        if self._is_summed and self._position > SHORT_BYTES:
            self._running = {}
        for running in self._running.values():
            running.update(data)
        if self._position % SECTION_BYTES == 0:
            self._end_section()

    def end(self) -> None:
        """Take note that nothing more will come."""
        if self._position % SECTION_BYTES:
            self._end_section()

    def _end_section(self) -> None:
        start = (self._position - 1) // SECTION_BYTES * SECTION_BYTES
        for name, running in self._running.items():
            self._sums[name, start, self._position] = running.hexdigest()
        self._running = {name: ALGORITHMS[name]() for name in self._running}

    def sum(self, algorithm: str, start: int, end: int) -> str | None:
        """Return the hash of a section in lower-case hex; None where it was not taken."""
        return self._sums.get((algorithm, start, end))
