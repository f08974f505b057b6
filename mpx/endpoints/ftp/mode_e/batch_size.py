"""Uploads in MODE E: how many files a session stores in one batch, and of how many bytes."""

from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer

BATCH_FILES = 64
BATCH_BYTES = 16 * 1024 * 1024
BATCH_RTTS = 10  # a batch lasts so long or longer, so that the wait for its last reply weighs little
LARGEST_BATCH = 1024 * 1024 * 1024


class BatchSize:
    """Learns from each batch how large the next one is to be."""

    def __init__(self) -> None:
        self._files = BATCH_FILES
        self._bytes = BATCH_BYTES

    def fill(self, first: FileTransfer, queue: FileQueue, sessions: int) -> list[FileTransfer]:
        """Take what is to be stored together with `first`: no more than a fair share of what waits.

        What cannot be read again goes alone: the failure of another file would lose it, and it may have all
        that stands behind it wait.
        """
        if first.listed_bytes is None:
            return [first]
        batch, total = [first], first.size_bytes
        most = max(BATCH_BYTES, min(self._bytes, queue.waiting_bytes // sessions))

        def fits(file: FileTransfer) -> bool:
            return file.listed_bytes is not None and total + file.size_bytes <= most

        while len(batch) < self._files and (file := queue.take_more(fits)):
            batch.append(file)
            total += file.size_bytes
        return batch

    def measured(self, goodput: float, rtt_s: float) -> None:
        """Take the next batch so large that it lasts `BATCH_RTTS`, going by the bytes/s of this one."""
        self._bytes = int(min(max(BATCH_BYTES, goodput * BATCH_RTTS * rtt_s), LARGEST_BATCH))

    def succeeded(self) -> None:
        """Take more files at once: one has been stored."""
        self._files = min(BATCH_FILES, self._files * 2)

    def failed(self) -> None:
        """Take one file next."""
        self._files = 1
