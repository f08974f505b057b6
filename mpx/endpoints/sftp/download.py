"""Downloads over one SFTP session: blocks of several files are asked for at once, each by its offset."""

import os
from collections.abc import Sequence
from functools import partial

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.jobs import Job, Moving, close_handle
from mpx.endpoints.sftp.refusals import cannot_send
from mpx.endpoints.sftp.session import SftpSession, request
from mpx.endpoints.sftp.wire import Code, Data, Open, PacketKind, Reply, Status
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import AGAIN, why_too_short
from mpx.errors import IntegrityError, MpxError
from mpx.files.local_error import local_error
from mpx.units import counted


class Download:
    """See Mover."""

    def __init__(self, moving: Moving) -> None:
        self._moving = moving

    def begin(self, session: SftpSession, file: FileTransfer) -> Job | None:
        """See Mover."""
        if file.is_whole and not file.is_streamed and file.size_bytes:
            self._moving.scheduler.make_empty(file)  # all of it is there
            return None
        try:
            fd = file.open(file.partial, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            self._moving.scheduler.give_up(file, local_error(error, file.final, writing=True))
            return None
        job = Job(file, fd, is_stream=file.is_streamed)
        self._moving.open(session, job, Open.READ, file.source)
        return job

    def advance(self, session: SftpSession, jobs: Sequence[Job]) -> bool:
        """See Mover."""
        asked = False
        for job in jobs:
            if job.handle is None or job.has_failed:
                continue
            if job.is_stream and not job.out:
                self._ask_next(session, job)
                asked = True
            while job.todo and self._moving.has_room:
                self._ask_block(session, job)
                asked = True
        return asked and self._moving.has_room

    def _ask_block(self, session: SftpSession, job: Job) -> None:
        start, end = job.todo.popleft()
        limiter = self._moving.context.limiter
        end_of_block = min(end, start + limiter.piece(session.read_bytes))
        if end_of_block < end:
            job.todo.appendleft((end_of_block, end))
        limiter.wait(end_of_block - start)
        self._read(session, job, start, end_of_block)
        if end_of_block == job.file.size_bytes:  # nothing may come behind the end
            self._read(session, job, end_of_block, end_of_block + 1)

    def _ask_next(self, session: SftpSession, job: Job) -> None:
        """Ask for what comes next of a file that is read in order to its end."""
        self._read(session, job, job.position, job.position + session.read_bytes)

    def _read(self, session: SftpSession, job: Job, start: int, end: int) -> None:
        assert job.handle is not None
        self._moving.ask(job, end - start)
        fields = (job.handle, wire.u64(start), wire.u32(end - start))
        session.submit(request(PacketKind.READ, *fields), partial(self._came, session, job, start, end))

    def _came(self, session: SftpSession, job: Job, start: int, end: int, reply: Reply) -> None:
        self._moving.answered(job, end - start)
        if job.has_failed or job.file.is_given_up:
            return
        if isinstance(reply, Data):
            self._took(session, job, start, end, reply.content)
        elif isinstance(reply, Status) and reply.code == Code.EOF:
            self._ended(job, start)
        else:
            job.refusal = reply

    def _took(self, session: SftpSession, job: Job, start: int, end: int, data: memoryview) -> None:
        file, came_to = job.file, start + len(data)
        if not len(data) or came_to > end:
            job.error = IntegrityError(
                f"{self._moving.host} sends {counted(len(data), 'byte')} of {file.source} where "
                f"{end - start} were asked for; its SFTP server is broken"
            )
            return
        if not job.is_stream and came_to > file.size_bytes:
            job.error = IntegrityError(
                f"{file.named()} changed while it was copied: it is longer than "
                f"{counted(file.size_bytes, 'byte')} now; {AGAIN}"
            )
            return
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(job.fd, data[written:], start + written)
        except OSError as error:
            job.error = local_error(error, file.final, writing=True)
            return
        file.sums.passed(start, data)
        self._moving.landed(file, start, came_to)
        if job.is_stream:
            job.position = came_to
        elif came_to < end:
            self._read(session, job, came_to, end)

    def _ended(self, job: Job, position: int) -> None:
        if job.is_stream:
            job.is_stream = False
            self._moving.scheduler.ended(job.file, position)
        elif position < job.file.size_bytes:
            job.ended_at = position

    def is_done(self, job: Job) -> bool:
        """See Mover. What is asked for at the end is the last to be answered."""
        return job.is_idle

    def finish(self, session: SftpSession, job: Job) -> None:
        """See Mover."""
        close_handle(session, job)
        if job.file.is_whole:
            try:
                os.ftruncate(job.fd, job.file.size_bytes)  # an attempt before may have brought more
            except OSError as error:
                job.error = local_error(error, job.file.final, writing=True)

    def let_go(self, job: Job) -> None:
        """See Mover."""
        if not self._moving.scheduler.let_go(job.file):
            self._moving.scheduler.put_back(job.file)  # where something of it was found damaged meanwhile

    def failure(self, session: SftpSession, job: Job) -> MpxError:  # noqa: ARG002  nothing is asked
        """See Mover."""
        file = job.file
        if job.error is not None:
            return job.error
        if job.ended_at is not None:
            why = why_too_short(self._moving.context.supervisor.describe(file.source), file, job.ended_at)
            ended = f"ended after {counted(job.ended_at, 'byte')}, of {file.size_bytes}"
            return why or IntegrityError(f"{file.named()} changed while it was copied: it {ended}; {AGAIN}")
        assert job.refusal is not None
        return cannot_send(job.refusal, self._moving.host, file.source)
