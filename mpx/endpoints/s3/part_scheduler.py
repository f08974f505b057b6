"""What the workers of an upload do next: a part of a file that is begun, else the next file."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from mpx.endpoints.s3.parts import PartedFile
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import RangeScheduler

STUCK_PART_S, STUCK_TIMES = 4.0, 4  # a part that takes longer, and so many times as long as others, is late
_RECENT = 8  # parts


@dataclass(frozen=True, slots=True)
class SendFile:
    """A file that is to be sent whole, or of which an upload in parts is to be begun."""

    file: FileTransfer


@dataclass(frozen=True, slots=True, eq=False)
class SendPart:
    """A part that is to be sent, by one worker."""

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
        # With `_order` held:
        self._since_s: dict[SendPart, float] = {}  # in the hands of workers, not stored (monotonic clock)
        self._took_s: deque[float] = deque(maxlen=_RECENT)  # those that were stored last

    def take_work(self) -> SendFile | SendPart | None:
        """Return what is to be done next, what is begun first; None where there is nothing now."""
        with self._order:
            while self._parted:
                parted = self._parted[0]
                number = parted.take()
                if number is not None:
                    return self._handed_out(parted, number)
                self._parted.popleft()  # its last parts are on the way
        with self._lock:
            file = self._open_next()
        if file:
            return SendFile(file)
        with self._order:
            return self._late() if self._context.queue.is_listed else None

    def _handed_out(self, parted: PartedFile, number: int) -> SendPart:
        work = SendPart(parted, number)
        self._since_s[work] = time.monotonic()
        return work

    def _late(self) -> SendPart | None:
        """Hand out once more what takes many times as long as other parts did: its lane may be stuck.

        The bytes are the same, and each part is stored whole. A file that was given up gets no more.
        """
        if not self._took_s:
            return None
        before_s = time.monotonic() - max(STUCK_PART_S, STUCK_TIMES * max(self._took_s))
        in_hand = [(work.parted, work.number) for work in self._since_s]
        for work, since_s in self._since_s.items():
            which = (work.parted, work.number)
            is_wanted = not (work.file.is_claimed or work.parted.is_dead or work.parted.has(work.number))
            if since_s < before_s and in_hand.count(which) == 1 and is_wanted:
                return self._handed_out(*which)
        return None

    def part_ended(self, work: SendPart) -> None:
        """Note that a worker has a part in its hands no more."""
        with self._order:
            since_s = self._since_s.pop(work, None)
            if since_s is None or not work.parted.has(work.number):
                return  # another was sooner, or nobody has stored it
            self._took_s.append(time.monotonic() - since_s)
            for other in list(self._since_s):
                if (other.parted, other.number) == (work.parted, work.number):
                    del self._since_s[other]

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
