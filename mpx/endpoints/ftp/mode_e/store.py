"""Uploads in MODE E, one STOR or ESTO: what of its file was sent, and which connections take part."""

import os
import threading
from collections.abc import Callable

from mpx.endpoints.ftp.mode_e.end_of_data import EndOfData
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_stream import SourceStream, is_made_up


class Store:
    """One STOR or ESTO on its way. `source`: where the bytes of a file of unknown size come from."""

    def __init__(self, file: FileTransfer, fd: int, stop: Callable[[], bool] = lambda: False) -> None:
        """`stop` ends waiting for a pipe. Raises SourceError for one that cannot be read once more."""
        self.file = file
        self.fd = fd
        self.number = 0  # in its channel
        self.ends = EndOfData()
        if is_made_up(os.fstat(fd)):
            file.stream()
        self.source = SourceStream(file, fd, stop) if file.is_streamed else None
        self._before_bytes = file.arrived_bytes
        self._sent_bytes = 0
        self._counting = threading.Lock()

    def sent(self, size_bytes: int) -> None:
        """Count a block that was sent whole."""
        with self._counting:
            self._sent_bytes += size_bytes

    @property
    def sent_bytes(self) -> int:
        """How much of it was sent."""
        with self._counting:
            return self._sent_bytes

    @property
    def is_taken(self) -> bool:
        """Whether nothing of the file is left for a stream to take."""
        return not self.file.is_streamed and not self.file.todo_bytes

    @property
    def is_complete(self) -> bool:
        """Whether what was sent, with what had arrived before, is the whole file."""
        return not self.file.is_streamed and self._before_bytes + self.sent_bytes >= self.file.size_bytes
