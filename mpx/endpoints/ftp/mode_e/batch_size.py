"""Uploads in MODE E: how many files a session is given at once to store, and of how many bytes.

It is given more while it stores the last of them, so that it never waits for an answer with nothing to send.
"""

from collections.abc import Callable, Sequence

from mpx.endpoints.ftp import telnet_escape
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer

FEWEST_FILES, MOST_FILES = 64, 256
FILES_OF_ALL = 512  # sessions together, as each file is open
BATCH_BYTES = 16 * 1024 * 1024
BATCH_RTTS = 10  # a batch lasts so long or longer, so that the wait for its last reply weighs little
LARGEST_BATCH = 1024 * 1024 * 1024
FULL = 0.75  # of the files: no more are taken


class BatchSize:
    """Learns from each batch how large the next one is to be."""

    def __init__(self) -> None:
        self._files = MOST_FILES
        self._bytes = BATCH_BYTES

    def fill(self, first: FileTransfer, queue: FileQueue, sessions: int) -> list[FileTransfer]:
        """Take what is to be stored together with `first`: no more than a fair share of what waits.

        What cannot be read again goes alone: the failure of another file would lose it, and it may have all
        that stands behind it wait.
        """
        if first.listed_bytes is None:
            return [first]
        return [first, *self._more(1, first.size_bytes, min(self._files, FEWEST_FILES), queue, sessions)]

    def refill(self, in_hand: Sequence[FileTransfer], queue: FileQueue, sessions: int) -> list[FileTransfer]:
        """Take more, once a part of what was taken has been stored; `in_hand`: what has not.

        No file for whose name the server is to be asked something: its answers are those to what is in hand.
        """
        most = min(self._files, max(FEWEST_FILES, FILES_OF_ALL // sessions))
        if len(in_hand) > most * FULL:
            return []
        todo_bytes = sum(file.todo_bytes for file in in_hand)
        return self._more(len(in_hand), todo_bytes, most, queue, sessions, asks_nothing)

    def _more(
        self,
        files: int,
        size_bytes: int,
        most_files: int,
        queue: FileQueue,
        sessions: int,
        may_be: Callable[[FileTransfer], bool] = lambda _: True,
    ) -> list[FileTransfer]:
        """Take what fits beside so many files of this size."""
        taken: list[FileTransfer] = []
        most_bytes = max(BATCH_BYTES, min(self._bytes, queue.waiting_bytes // sessions))

        def fits(file: FileTransfer) -> bool:
            is_known = file.listed_bytes is not None
            return is_known and size_bytes + file.size_bytes <= most_bytes and may_be(file)

        while files + len(taken) < most_files and (file := queue.take_more(fits)):
            taken.append(file)
            size_bytes += file.size_bytes
        return taken

    def measured(self, goodput: float, rtt_s: float) -> None:
        """Take the next batch so large that it lasts `BATCH_RTTS`, going by the bytes/s of this one."""
        self._bytes = int(min(max(BATCH_BYTES, goodput * BATCH_RTTS * rtt_s), LARGEST_BATCH))

    def succeeded(self) -> None:
        """Take more files at once: one has been stored."""
        self._files = min(MOST_FILES, self._files * 2)

    def failed(self) -> None:
        """Take one file next."""
        self._files = 1


def asks_nothing(file: FileTransfer) -> bool:
    """Tell whether a file can be stored without a question before."""
    return not telnet_escape.has_to_be_learnt(file.partial)
