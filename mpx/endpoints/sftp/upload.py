"""Uploads over one SFTP session: blocks of several files are under way at once, each at its offset."""

import os
import stat
from collections.abc import Callable, Sequence
from functools import partial

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.jobs import Job, Moving
from mpx.endpoints.sftp.refusals import cannot_store, is_ok, is_unsupported
from mpx.endpoints.sftp.room import free_bytes_for
from mpx.endpoints.sftp.session import LARGEST_WRITE_BYTES, SftpSession, extended, request
from mpx.endpoints.sftp.wire import Attributes, Open, PacketKind, Reply
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import AGAIN
from mpx.engine.source_stream import SourceStream, is_made_up
from mpx.errors import IntegrityError, MpxError, SourceError
from mpx.files.local_error import local_error

BLOCKS_AT_ONCE = 16  # that are sent before answers are read


class Upload:
    """See Mover."""

    def __init__(self, moving: Moving, tend: Callable[[SftpSession], None], *, whole_files: bool) -> None:
        """`tend`: is called now and then. `whole_files`: each is written by one session."""
        self._moving, self._tend, self._whole_files = moving, tend, whole_files
        self._buffer = memoryview(bytearray(LARGEST_WRITE_BYTES))  # lent to the session, block by block

    def begin(self, session: SftpSession, file: FileTransfer) -> Job | None:
        """See Mover."""
        if file.is_whole and file.size_bytes:  # an earlier run has brought all of it
            self._moving.scheduler.let_go(file)
            return None
        try:
            fd = file.open(file.source, os.O_RDONLY)
        except OSError as error:
            self._moving.scheduler.give_up(file, local_error(error, file.source, writing=False))
            return None
        try:
            if is_made_up(os.fstat(fd)):
                file.stream()
            if file.is_streamed and _is_empty(fd):
                file.ended(0)
        except OSError as error:
            file.close()
            self._moving.scheduler.give_up(file, local_error(error, file.source, writing=False))
            return None
        job = Job(file, fd, is_stream=file.is_streamed)
        flags = Open.WRITE | Open.CREATE
        is_begun_here = (self._whole_files or file.is_small) and not file.arrived_bytes
        if job.is_stream or not file.size_bytes or is_begun_here:
            flags |= Open.TRUNCATE  # all of it is written from here, as no small file is divided
            job.is_cut = True
        self._moving.open(session, job, flags, file.partial)
        return job

    def advance(self, session: SftpSession, jobs: Sequence[Job]) -> bool:
        """See Mover."""
        sent = 0
        for job in jobs:
            if job.handle is None or job.is_closing or job.has_failed:
                continue
            if job.is_stream:
                self._send_stream(session, job)
                sent += 1
            while job.todo and sent < BLOCKS_AT_ONCE and self._moving.has_room and session.is_clear:
                self._send_block(session, job)
                sent += 1
            self._close(session, job)
        return sent > 0 and session.is_clear and self._moving.has_room

    def _send_block(self, session: SftpSession, job: Job) -> None:
        start, end = job.todo.popleft()
        limiter = self._moving.context.limiter
        end_of_block = min(end, start + limiter.piece(session.write_bytes))
        if end_of_block < end:
            job.todo.appendleft((end_of_block, end))
        data, got = self._buffer[: end_of_block - start], 0
        try:
            while got < len(data):
                some = os.preadv(job.fd, [data[got:]], start + got)
                if not some:
                    job.error = IntegrityError(
                        f"{job.file.source} became shorter while it was copied; {AGAIN}"
                    )
                    return
                got += some
        except OSError as error:
            job.error = local_error(error, job.file.source, writing=False)
            return
        job.file.sums.passed(start, data)
        limiter.wait(len(data))
        self._write(session, job, start, data)

    def _write(self, session: SftpSession, job: Job, start: int, data: memoryview) -> None:
        assert job.handle is not None
        self._moving.ask(job, len(data))
        session.write(job.handle, start, data, partial(self._written, job, start, start + len(data)))

    def _written(self, job: Job, start: int, end: int, reply: Reply) -> None:
        self._moving.answered(job, end - start)
        if is_ok(reply):
            self._moving.landed(job.file, start, end)
        else:
            job.refusal = reply

    def _send_stream(self, session: SftpSession, job: Job) -> None:
        """Send what is read in order to its end: nothing else begins meanwhile."""
        limiter, block = self._moving.context.limiter, self._buffer[: session.write_bytes]
        try:
            stream = SourceStream(job.file, job.fd, session.stop)
            while not job.has_failed and (piece := stream.read(block[: limiter.piece(len(block))])):
                start, end = piece
                limiter.wait(end - start)
                self._write(session, job, start, block[: end - start])
                self._tend(session)
                while not session.is_clear or not self._moving.has_room:
                    session.pump()
        except SourceError as error:
            job.error = error
        while job.out:
            session.pump()
        job.is_stream = False

    def _close(self, session: SftpSession, job: Job) -> None:
        """Close a file of which all that was given to this session is under way, or done."""
        file = job.file
        if job.todo or job.is_closing or job.has_failed:
            return
        # Only then it is known whether it is whole: others have parts of it.
        if job.out and not _has_all(job):
            return
        job.is_closing = True
        assert job.handle is not None
        has_all = _has_all(job)
        if (
            has_all or file.is_whole
        ) and not job.is_cut:  # what a longer file of that name has left is cut off
            cut = request(
                PacketKind.FSETSTAT, job.handle, wire.attributes(Attributes(size_bytes=file.size_bytes))
            )
            session.submit(cut, lambda _: None)  # the size is compared later
        if has_all and wire.FSYNC in session.extensions:  # so nobody has to open it again for that
            session.submit(extended(wire.FSYNC, job.handle), partial(self._synced, job))
        session.submit(request(PacketKind.CLOSE, job.handle), partial(self._closed, job))

    @staticmethod
    def _synced(job: Job, reply: Reply) -> None:
        if is_ok(reply):
            job.is_synced = True
        elif not is_unsupported(reply):
            job.refusal = reply

    def _closed(self, job: Job, reply: Reply) -> None:
        self._moving.touched[job] = None
        if not is_ok(reply):
            job.refusal = job.refusal or reply
        elif job.refusal is None:
            job.is_closed = True
            job.file.is_synced = job.is_synced

    def is_done(self, job: Job) -> bool:
        """See Mover."""
        return job.is_closed

    def finish(self, session: SftpSession, job: Job) -> None:
        """See Mover. It is closed at the server."""

    def let_go(self, job: Job) -> None:
        """See Mover. Only who closes a file learns of some failures to store it (NFS, quotas)."""
        if not self._moving.scheduler.let_go_last(job.file):
            self._moving.scheduler.put_back(job.file)  # where something of it was found damaged meanwhile

    def failure(self, session: SftpSession, job: Job) -> MpxError:
        """See Mover."""
        if job.error is not None:
            return job.error
        assert job.refusal is not None
        free_bytes = free_bytes_for(session, job.file.final)
        return cannot_store(job.refusal, self._moving.host, job.file.final, free_bytes)


def _is_empty(fd: int) -> bool:
    """Tell whether a file has no bytes, whatever its file system says; a pipe is read later."""
    status = os.fstat(fd)
    return stat.S_ISREG(status.st_mode) and not status.st_size and not os.pread(fd, 1, 0)


def _has_all(job: Job) -> bool:
    """Tell whether this session was given all of a file, in one piece."""
    return job.taken == [(0, job.file.size_bytes)]
