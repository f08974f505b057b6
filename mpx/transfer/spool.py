"""What has to be kept until a copy ends: on disk once it is much, so that millions take no memory."""

import marshal
from collections.abc import Iterator
from typing import IO, Any

from mpx.files.local_error import local_error

BLOCK = 4096  # records in memory, and in each block on disk


class Spool:
    """Records of plain values (as marshal writes them), taken out again in the reverse order."""

    def __init__(self) -> None:
        self._recent: list[Any] = []
        self._file: IO[bytes] | None = None
        self._blocks: list[int] = []  # where each begins in the file
        self._end = 0  # of the last one

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._recent)

    def put(self, record: tuple[Any, ...]) -> None:
        """Add a record; raises NoSpace, DestinationError where the temporary file cannot be written.

        The record is not added then.
        """
        if len(self._recent) == BLOCK - 1:
            import tempfile

            try:
                self._write([*self._recent, record])
            except OSError as error:
                name = f"a temporary file in {tempfile.gettempdir()}"
                raise local_error(error, name, writing=True) from None
            self._recent.clear()
        else:
            self._recent.append(record)

    def _write(self, records: list[Any]) -> None:
        if self._file is None:
            import tempfile

            self._file = tempfile.TemporaryFile(prefix="mpx-", buffering=0)  # noqa: SIM115  as long as we
        self._file.seek(self._end)  # behind it may be what could not be written whole
        data = memoryview(marshal.dumps(records))
        while data:
            data = data[self._file.write(data) :]
        self._blocks.append(self._end)
        self._end = self._file.tell()

    def drain(self) -> Iterator[Any]:
        """Take all records out, the last one first."""
        while self:
            while self._recent:
                yield self._recent.pop()
            if self._file and self._blocks:
                size = self._end - self._blocks[-1]
                self._end = self._blocks.pop()
                self._file.seek(self._end)
                self._recent = marshal.loads(self._file.read(size))
                self._file.truncate(self._end)
        if self._file:
            self._file.close()
            self._file = None
