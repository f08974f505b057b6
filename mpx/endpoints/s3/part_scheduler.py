"""What the workers of an upload do next: a part of a file that is begun, else the next file."""

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from mpx.endpoints.s3.parts import PartedFile
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import RangeScheduler


@dataclass(frozen=True, slots=True)
class SendFile:
    """A file that is to be sent whole, or of which an upload in parts is to be begun."""

    file: FileTransfer


@dataclass(frozen=True, slots=True)
class SendPart:
    """A part that is to be sent."""

    parted: PartedFile
    number: int

    @property
    def file(self) -> FileTransfer:
        """The file that it is of."""
        return self.parted.file


class PartScheduler(RangeScheduler):
    """Hands parts and files to workers. Safe for several threads."""

    def __init__(self, context: CarrierContext) -> None:
        super().__init__(context)
        self._order = threading.Lock()
        self._parted: deque[PartedFile] = deque()  # with parts to send; with `_order` held
        self._beginning = 0  # uploads in parts, of which the server is being told; with `_order` held

    def take_work(self) -> SendFile | SendPart | None:
        """Return what is to be done next, what is begun first; None where there is nothing now."""
        with self._order:
            while self._parted:
                parted = self._parted[0]
                number = parted.take()
                if number is not None:
                    return SendPart(parted, number)
                self._parted.popleft()  # its last parts are on the way
        with self._lock:
            file = self._open_next()
        return SendFile(file) if file else None

    @contextlib.contextmanager
    def beginning(self) -> Iterator[None]:
        """Have workers that wait know, within, that there will be parts soon."""
        with self._order:
            self._beginning += 1
        try:
            yield
        finally:
            with self._order:
                self._beginning -= 1

    @property
    def is_beginning(self) -> bool:
        """Whether there will be parts soon."""
        return self._beginning > 0

    def put(self, parted: PartedFile) -> None:
        """Have the parts of a file handed out, once more or for the first time."""
        with self._order:
            if parted not in self._parted:
                self._parted.append(parted)
