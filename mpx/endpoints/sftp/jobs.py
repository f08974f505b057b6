"""Files that a session has open, and what is under way of each: what uploads and downloads share."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.request_window import RequestWindow
from mpx.endpoints.sftp.session import MOST_OUTSTANDING, SftpSession, request
from mpx.endpoints.sftp.wire import Attributes, Code, Handle, PacketKind, Reply, Status
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.ranges import Range
from mpx.errors import MpxError


@dataclass(slots=True, eq=False)
class Job:
    """One file that a session has open, or is opening."""

    file: FileTransfer
    fd: int  # of this host's side, which FileTransfer.close closes
    taken: list[Range] = field(default_factory=list)  # what this session was given of it
    todo: deque[Range] = field(default_factory=deque)  # of which nothing was asked for yet
    handle: bytes | None = None  # as a field; None until the server has opened it
    out: int = 0  # requests for data that have no answer
    is_stream: bool = False  # read in order, to its end, whatever its size was said to be
    position: int = 0  # of a stream: what comes next
    is_closing: bool = False
    is_closed: bool = False  # at the server, and so well
    is_cut: bool = False  # nothing that it had before is left
    is_synced: bool = False  # at the server, when all that it has was written
    is_alone: bool = False  # nothing else was open when it was to be opened
    is_left: bool = False  # nothing is done with it any more
    # What keeps it from being copied:
    refusal: Reply | None = None  # of the server, of whatever was asked for
    ended_at: int | None = None  # before the size that was told
    error: MpxError | None = None

    def give(self, start: int, end: int) -> None:
        """Have a piece of it moved; of a stream that is all."""
        self.taken.append((start, end))
        if start < end and not self.is_stream:
            self.todo.append((start, end))

    def cut_off(self, limit: int) -> Range:
        """Let go of at most so many bytes at the end of what was given last and not asked for yet."""
        start, end = self.todo.pop()
        cut = max(start, end - limit)
        if cut > start:
            self.todo.append((start, cut))
        given, _ = self.taken.pop()
        if cut > given:
            self.taken.append((given, cut))
        return cut, end

    @property
    def todo_bytes(self) -> int:
        """How many bytes were not asked for yet."""
        return sum(end - start for start, end in self.todo)

    @property
    def has_failed(self) -> bool:
        """Whether it cannot be copied."""
        return self.refusal is not None or self.error is not None or self.ended_at is not None

    @property
    def is_idle(self) -> bool:
        """Whether it is open, and nothing is under way or to be asked for."""
        return self.handle is not None and not (self.todo or self.out or self.is_stream)

    @property
    def was_one_too_many(self) -> bool:
        """Whether the server may have refused to open it as it has too many open."""
        refusal = self.refusal
        return self.handle is None and isinstance(refusal, Status) and refusal.code == Code.FAILURE


@dataclass(slots=True)
class Moving:
    """What the jobs of one worker share. Written by its thread; others read one counter at a time."""

    context: CarrierContext
    scheduler: RangeScheduler
    host: str
    window: RequestWindow
    asked_bytes: int = 0  # that are
    asked: int = 0  # requests for them
    moved_bytes: int = 0  # acknowledged, or received
    new_bytes: int = 0  # that arrived for the first time
    touched: dict[Job, None] = field(default_factory=dict)  # that may have something to do, in their order

    @property
    def has_room(self) -> bool:
        """Whether more may be asked for."""
        return self.asked_bytes < self.window.bytes and self.asked < MOST_OUTSTANDING

    def open(self, session: SftpSession, job: Job, flags: int, name: str) -> None:
        """Have a file opened at the server."""
        fields = (wire.name(name), wire.u32(flags), wire.attributes(Attributes()))
        session.submit(request(PacketKind.OPEN, *fields), partial(self._opened, session, job))

    def _opened(self, session: SftpSession, job: Job, reply: Reply) -> None:
        self.touched[job] = None
        if isinstance(reply, Handle):
            job.handle = wire.text(reply.value)
            if job.is_left:
                close_handle(session, job)
        else:
            job.refusal = reply

    def ask(self, job: Job, size_bytes: int) -> None:
        """Note a request for data."""
        job.out += 1
        self.asked += 1
        self.asked_bytes += size_bytes

    def answered(self, job: Job, size_bytes: int) -> None:
        """Note the answer to one."""
        self.touched[job] = None
        job.out -= 1
        self.asked -= 1
        self.asked_bytes -= size_bytes
        self.window.answered(size_bytes)

    def landed(self, file: FileTransfer, start: int, end: int) -> None:
        """Note bytes that have arrived."""
        self.moved_bytes += end - start
        self.new_bytes += file.landed(start, end)


class Mover(Protocol):
    """One direction: what a worker does with its jobs over a session."""

    def begin(self, session: SftpSession, file: FileTransfer) -> Job | None:
        """Open a file at both ends; None where it is given up, or nothing is to be done."""
        ...

    def advance(self, session: SftpSession, jobs: Sequence[Job]) -> bool:
        """Ask for more of what is to be moved; return whether there is room for still more."""
        ...

    def is_done(self, job: Job) -> bool:
        """Tell whether this session has done what it was given of a file."""
        ...

    def finish(self, session: SftpSession, job: Job) -> None:
        """Settle both ends of a file of which this session has done what it was given; sets `error`."""
        ...

    def let_go(self, job: Job) -> None:
        """Leave a file of which this session has done what it was given, and say so if it is whole."""
        ...

    def failure(self, session: SftpSession, job: Job) -> MpxError:
        """Return what keeps a file from being copied; may ask."""
        ...


def close_handle(session: SftpSession, job: Job) -> None:
    """Close a file at the server, whatever it says to that."""
    if job.handle is not None and not job.is_closing:
        job.is_closing = True
        session.submit(request(PacketKind.CLOSE, job.handle), lambda _: None)
