"""The sink of a relay: pieces of files are written over SFTP, many blocks at once."""

from collections.abc import Sequence
from functools import partial

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.lanes import LaneOptions, SftpLanes
from mpx.endpoints.sftp.refusals import cannot_store, is_ok, is_unsupported
from mpx.endpoints.sftp.relay_end import WINDOW_BYTES, SftpRelayEnd
from mpx.endpoints.sftp.room import free_bytes_for
from mpx.endpoints.sftp.session import MOST_OUTSTANDING, extended, request
from mpx.endpoints.sftp.wire import Attributes, Open, PacketKind, Reply
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Relayed
from mpx.engine.stream import StreamTotals
from mpx.errors import MpxError


class SftpRelaySink(SftpRelayEnd):
    """See RelaySink."""

    def __init__(self, pool: SftpLanes, options: LaneOptions, context: CarrierContext) -> None:
        super().__init__(pool, options)
        self._context = context
        self._refusal: Reply | None = None  # of a write
        self._written_bytes = 0  # in all, and acknowledged; others read it
        self._asked_bytes = 0  # that have no answer

    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:
        """See RelaySink."""
        file, self._refusal, self._asked_bytes = piece.file, None, 0
        flags = Open.WRITE | Open.CREATE | (Open.TRUNCATE if is_whole else 0)
        if (refusal := self.open_file(file.partial, flags)) is not None:
            raise self._refused(file, refusal)
        # Of a file that is stored whole nothing counts before its end.
        return pull(partial(self._put, None if is_whole else piece, file))

    def _put(self, landing: Piece | None, file: FileTransfer, at: int, data: memoryview) -> None:
        session = self.session
        while data:
            while not session.is_clear or not self._has_room:
                session.pump()
            if self._refusal is not None:
                raise self._refused(file, self._refusal)
            block, data = data[: session.write_bytes], data[session.write_bytes :]
            self._asked_bytes += len(block)
            session.write(self._handle, at, block, partial(self._written, landing, at, at + len(block)))
            at += len(block)
        while not session.is_clear:  # what is sent is lent
            session.pump()
        session.pump(0.0)

    @property
    def _has_room(self) -> bool:
        return self._asked_bytes < WINDOW_BYTES and self.session.outstanding < MOST_OUTSTANDING

    def _written(self, landing: Piece | None, start: int, end: int, reply: Reply) -> None:
        """Take an answer. The last bytes of a piece count once it is closed, so that no other session finds
        the file whole before.
        """
        self._asked_bytes -= end - start
        if not is_ok(reply):
            self._refusal = self._refusal or reply
            return
        self._written_bytes += end - start
        if landing is not None and end < landing.end:
            landing.file.landed(start, end)

    def finish(self, piece: Piece, *, is_whole: bool) -> None:
        """See RelaySink. What a longer file of that name has left is cut off."""
        file, session = piece.file, self.session
        while self._asked_bytes:
            session.pump()
        if self._refusal is not None:
            raise self._refused(file, self._refusal)
        cut, synced = [], []
        if not is_whole and piece.end >= file.size_bytes:
            size = wire.attributes(Attributes(size_bytes=file.size_bytes))
            cut = [request(PacketKind.FSETSTAT, self._handle, size)]  # the size is compared later
        if is_whole and wire.FSYNC in session.extensions:  # so nobody has to open it again for that
            synced = [extended(wire.FSYNC, self._handle)]
        handle, self._handle = self._handle, b""
        *answers, closed = session.ask([*cut, *synced, request(PacketKind.CLOSE, handle)])
        for reply in (*answers[len(cut) :], closed):  # only who closes a file learns of some failures (NFS)
            if not is_ok(reply) and not (reply is not closed and is_unsupported(reply)):
                raise self._refused(file, reply)
        if synced:
            file.is_synced = is_ok(answers[-1])

    def store_all(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """See RelaySink. All are opened, written, synced and closed together."""
        session = self.session
        flags = Open.WRITE | Open.CREATE | Open.TRUNCATE
        handles = self.open_files([piece.file.partial for piece, _ in contents], flags)
        stored = [isinstance(handle, bytes) for handle in handles]
        synced = [False] * len(contents)

        def closed(index: int, reply: Reply) -> None:
            stored[index] = stored[index] and is_ok(reply)

        def was_synced(index: int, reply: Reply) -> None:
            synced[index] = is_ok(reply)
            stored[index] = stored[index] and (is_ok(reply) or is_unsupported(reply))

        for index, (handle, (_, content)) in enumerate(zip(handles, contents, strict=True)):
            if not isinstance(handle, bytes):
                continue
            for at in range(0, len(content), session.write_bytes):
                block = memoryview(content)[at : at + session.write_bytes]
                session.write(handle, at, block, partial(closed, index))
                while not session.is_clear:
                    session.pump()
            if wire.FSYNC in session.extensions:
                session.submit(extended(wire.FSYNC, handle), partial(was_synced, index))
            session.submit(request(PacketKind.CLOSE, handle), partial(closed, index))
        session.drain()
        for (piece, content), is_stored, is_synced in zip(contents, stored, synced, strict=True):
            if is_stored:
                piece.file.is_synced = is_synced
                self._written_bytes += len(content)
        return stored

    def totals(self) -> StreamTotals:
        """See RelaySink."""
        return StreamTotals(streams=int(self._session is not None), bytes=self._written_bytes)

    def _refused(self, file: FileTransfer, reply: Reply) -> MpxError:
        """Return what a refusal means; asks how much room there is, once what is lent is sent."""
        session = self.session
        while not session.is_clear or self._asked_bytes:
            session.pump()
        return cannot_store(reply, self.host, file.final, free_bytes_for(session, file.final))
