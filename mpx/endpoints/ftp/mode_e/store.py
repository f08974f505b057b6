"""Uploads in MODE E, one STOR or ESTO: what of its file was sent, and which connections take part."""

import os
import threading
from collections.abc import Callable

from mpx.endpoints.ftp.mode_e.end_of_data import EndOfData
from mpx.endpoints.local.source_stream import SourceStream, is_made_up
from mpx.engine.file_transfer import FileTransfer


class Transfer:
    """One STOR or ESTO on its way. `source`: where the bytes of a file of unknown size come from."""

    def __init__(self, move: FileTransfer, fd: int, stop: Callable[[], bool] = lambda: False) -> None:
        """`stop` ends waiting for a pipe. Raises SourceError for one that cannot be read once more."""
        self.move = move
        self.fd = fd
        self.number = 0  # in its channel
        self.ends = EndOfData()
        if is_made_up(os.fstat(fd)):
            move.stream()
        self.source = SourceStream(move, fd, stop) if move.is_streamed else None
        self._before_bytes = move.arrived_bytes
        self._sent_bytes = 0
        self._counting = threading.Lock()

    def sent(self, size_bytes: int) -> None:
        """Count a block that was sent whole."""
        with self._counting:
            self._sent_bytes += size_bytes

    @property
    def is_taken(self) -> bool:
        """Whether nothing of the file is left for a stream to take."""
        return not self.move.is_streamed and not self.move.todo_bytes

    @property
    def is_complete(self) -> bool:
        """Whether what was sent, with what had arrived before, is the whole file."""
        with self._counting:
            sent_bytes = self._before_bytes + self._sent_bytes
        return not self.move.is_streamed and sent_bytes >= self.move.size_bytes
