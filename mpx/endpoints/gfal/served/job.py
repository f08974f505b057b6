"""What takes gfal2 long, in a thread of its own: a copy, or the checksum of a file."""

import hashlib
import threading
import zlib
from collections.abc import Callable
from typing import Any

import gfal2

from mpx.endpoints.gfal.meaning import Trouble, trouble
from mpx.endpoints.gfal.served.connections import ForeignConnections
from mpx.endpoints.gfal.served.contexts import KeptContext
from mpx.endpoints.gfal.settings import JobState

LOOK_S = 0.1  # between two looks at connections
BLOCK_BYTES = 1024 * 1024
# A server that is there and is let in, but has no checksum, is read from:
_NOT_READ_BACK = (Trouble.MISSING, Trouble.LOGIN, Trouble.LATE, Trouble.STOPPED, Trouble.NO_PLUGIN)


class GfalJob:
    """One at a time in a process. All but `__init__` may be called from any thread."""

    def __init__(
        self, context: Any, work: Callable[["GfalJob", Any], str], connections: ForeignConnections
    ) -> None:
        """`work` does it with the context, and returns the checksum that it was about."""
        self._context, self._work, self._connections = context, work, connections
        self._changed = threading.Condition()  # guards the rest
        self._is_over = self._is_cancelled = False
        self._bytes = self._steps = 0
        self._how = self._message = self._sum = ""
        self._code = 0
        threading.Thread(target=self._run, name="job", daemon=True).start()
        threading.Thread(target=self._look, name="looks", daemon=True).start()

    def wait(self, wait_s: float) -> bool:
        """Wait for its end for so long, and tell whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_over, wait_s)

    def state(self) -> JobState:
        """Return how far it is."""
        sent, received = self._connections.totals
        with self._changed:
            return JobState(
                self._is_over,
                self._bytes,
                sent,
                received,
                self._steps,
                self._how,
                self._code,
                self._message,
                self._sum,
            )

    def cancel(self) -> None:
        """Have it end; what it has stored in part is removed as far as gfal2 does that."""
        with self._changed:
            self._is_cancelled = True
        self._context.cancel()

    @property
    def is_cancelled(self) -> bool:
        """Whether it is to end."""
        with self._changed:
            return self._is_cancelled

    def told(self, event: Any) -> None:
        """Take what gfal2 says of its steps."""
        with self._changed:
            self._steps += 1
            if str(event.stage) == "TRANSFER:TYPE":
                self._how = str(event.description)

    def moved(
        self, _source: str, _destination: str, _average: int, _now: int, size_bytes: int, _s: int
    ) -> None:
        """Take how much gfal2 has moved."""
        self.has_read(size_bytes)

    def has_read(self, size_bytes: int) -> None:
        """Take how much there is by now."""
        with self._changed:
            self._bytes = max(self._bytes, size_bytes)

    def _run(self) -> None:
        code, message, found = 0, "", ""
        try:
            found = self._work(self, self._context)
        except gfal2.GError as error:
            code, message = error.code or -1, str(error.message)
        except OSError as error:
            code, message = error.errno or -1, error.strerror or str(error)
        except SystemError:
            code, message = -1, "it fails in words that are no text"
        except Exception as error:
            code, message = -1, f"{type(error).__name__}: {error}"
        with self._changed:
            self._code, self._message, self._sum, self._is_over = code, message, found, True
            self._changed.notify_all()

    def _look(self) -> None:
        while not self.wait(LOOK_S):
            self._connections.look()


def sum_job(
    reading: KeptContext, context: Any, url: str, name: str, algorithm: str, connections: ForeignConnections
) -> GfalJob:
    """Begin to have a checksum computed of a file; where the server does not, the file is read.

    `context` is asked for it, and no data pass it; `reading`: for what is read; `name`: that is in the URL.
    """

    def work(job: GfalJob, context: Any) -> str:
        try:
            return str(context.checksum(url, algorithm.upper()))
        except gfal2.GError as error:
            if trouble(error.code, str(error.message), [name]) in _NOT_READ_BACK:
                raise
        try:
            return _read(job, reading.of(algorithm), url, algorithm)
        except BaseException:
            reading.drop()
            raise

    return GfalJob(context, work, connections)


def _read(job: GfalJob, context: Any, url: str, algorithm: str) -> str:
    file, digest, adler, count = context.open(url, "r"), hashlib.md5(), 1, 0
    while (data := file.read_bytes(BLOCK_BYTES)) and not job.is_cancelled:
        if algorithm == "md5":
            digest.update(data)
        else:
            adler = zlib.adler32(data, adler)
        count += len(data)
        job.has_read(count)
    return digest.hexdigest() if algorithm == "md5" else f"{adler:08x}"
