"""What has to be kept until a copy ends: on disk once it is much, so that millions take no memory."""

import marshal
from collections.abc import Iterator
from typing import IO, Any

from mpx.local import local_error

BLOCK = 4096  # records in memory, and in each block on disk


class Spool:
    """Records of plain values (as marshal writes them), taken out again in the reverse order."""

    def __init__(self) -> None:
        self._recent: list[Any] = []
        self._file: IO[bytes] | None = None
        self._blocks: list[int] = []  # where each begins in the file

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._recent)

    def put(self, record: tuple[Any, ...]) -> None:
        """Add a record; raises NoSpace, DestinationError where the temporary file cannot be written."""
        self._recent.append(record)
        if len(self._recent) < BLOCK:
            return
        import tempfile

        try:
            self._file = self._file or tempfile.TemporaryFile(prefix="mpx-")  # noqa: SIM115  as long as we
            self._blocks.append(self._file.tell())
            self._file.write(marshal.dumps(self._recent))
            self._file.flush()
        except OSError as error:
            raise local_error(error, f"a temporary file in {tempfile.gettempdir()}", writing=True) from None
        self._recent.clear()

    def drain(self) -> Iterator[Any]:
        """Take all records out, the last one first."""
        while self:
            while self._recent:
                yield self._recent.pop()
            if self._file and self._blocks:
                self._file.seek(self._blocks.pop())
                at = self._file.tell()
                self._recent = marshal.loads(self._file.read())
                self._file.truncate(at)
                self._file.seek(at)
        if self._file:
            self._file.close()
            self._file = None
