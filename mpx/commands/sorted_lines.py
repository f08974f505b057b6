"""Lines in the order of their names, by bytes; on disk once they are many, so that memory is bounded."""

import heapq
import marshal
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

MOST = 100_000  # lines in memory; a sorted run on disk has as many
_BLOCK = 1000  # lines that are read from a run at once


class SortedLines:
    """Takes lines in any order, returns them sorted. Without a temporary file all stay in memory."""

    def __init__(self) -> None:
        self._recent: list[tuple[bytes, bytes]] = []
        self._runs: list[IO[bytes]] = []

    def put(self, name: bytes, line: bytes) -> None:
        """Add a line, to be sorted by this name."""
        self._recent.append((name, line))
        if len(self._recent) % MOST == 0:
            with suppress(OSError):
                self._runs.append(_written(sorted(self._recent)))
                self._recent.clear()

    def drain(self) -> Iterator[bytes]:
        """Yield the lines in order; to be called once, after the last was added."""
        self._recent.sort()
        try:
            for _, line in heapq.merge(self._recent, *map(_read, self._runs)):
                yield line
        finally:
            for run in self._runs:
                run.close()


def _written(lines: list[tuple[bytes, bytes]]) -> IO[bytes]:
    """Return a temporary file with these lines, at its beginning; raises OSError."""
    import tempfile

    file = tempfile.TemporaryFile(prefix="mpx-list-")  # noqa: SIM115  as long as SortedLines
    try:
        for i in range(0, len(lines), _BLOCK):
            file.write(marshal.dumps(lines[i : i + _BLOCK]))
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _read(run: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    with suppress(EOFError):
        while True:
            yield from marshal.load(run)
