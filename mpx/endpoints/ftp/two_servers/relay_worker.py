"""Transfers from one server to another through this host, the workers: each passes piece after piece on.

What comes is received in MODE S, which every server has, and sent on at once, in MODE E where the destination
has that. No more than one buffer is kept here, and what the kernel holds.
"""

import socket
import time
from collections.abc import Callable, Mapping

from mpx.endpoints.ftp.framing import HEADER_BYTES
from mpx.endpoints.ftp.mode_s.connections import DataConnections
from mpx.endpoints.ftp.mode_s.upload import await_taken, clear
from mpx.endpoints.ftp.refusals import cannot_send, cannot_store
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.session_pool import give_back_session
from mpx.endpoints.ftp.two_servers.block_store import BlockStore
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer, take_piece
from mpx.endpoints.ftp.two_servers.server_pair import ServerPair
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.source_change import why_elsewhere, why_too_short
from mpx.engine.stream import BUFFER_BYTES, StreamCounters, StreamTotals
from mpx.errors import (
    ConnectionLost,
    Interrupted,
    MpxError,
    NoSpace,
    OffsetsUnproven,
    TransferTimeout,
)

PIECE_S = 5.0  # duration of a piece, as each has a new connection from the source
FIRST_PIECE, SMALLEST_PIECE = 16 << 20, 4 << 20

Put = Callable[[int, memoryview, int], None]  # where in the file, room for a header and the bytes, how many


class RelayWorker(SessionWorker):
    """Passes pieces of files on, one after the other."""

    def __init__(
        self, number: int, servers: ServerPair, context: CarrierContext, scheduler: RangeScheduler
    ) -> None:
        super().__init__("relay", number, servers.hosts, context)
        self.target = 0  # 1: take pieces; the carrier's decision (see SessionWorker)
        self._sessions: tuple[ClientSession, ClientSession] | None = None  # replaced by this thread only
        self._from = DataConnections(context, context.options.timeout_s, upload=False)
        self._to = DataConnections(context, context.options.timeout_s, upload=True)  # in MODE S
        self._counters = StreamCounters()  # of the connection to the destination, in MODE E
        # This thread's own:
        self._servers = servers.for_worker(number)
        self._scheduler = scheduler
        self._store: BlockStore | None = None
        self._piece: Piece | None = None  # in hand
        self._goodput = 0.0  # bytes/s, of the last piece; 0: not known
        self._landed_bytes = 0  # for the first time; more than that is progress
        self._before_bytes = 0  # the same, when the piece in hand was begun
        self._was_open = False  # there were sessions for the piece in hand
        self._buffer = memoryview(bytearray(HEADER_BYTES + BUFFER_BYTES))

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker. What has gone on counts, and the connections that it goes over."""
        one = self._counters.totals() if self._servers.mode_e else self._to.totals()
        return {DEFAULT_PATH: one if self._piece else one.none_open()}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. A connection lasts as long as its session."""

    def cut(self) -> None:
        """See SessionWorker."""
        for session in self._sessions or ():
            session.abort()
        self._from.cut()
        self._to.cut()
        self._counters.cut()

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Pass a piece on: see SessionWorker."""
        size = max(self._goodput * PIECE_S, SMALLEST_PIECE) if self._goodput else FIRST_PIECE
        piece = take_piece(self._scheduler, int(size), parts=self._servers.parts) if self.target else None
        if piece is None:
            return False
        self._piece, self._before_bytes, self._was_open = piece, self._landed_bytes, False
        self._carry(piece)
        self._piece = None
        self.retry.progressed()
        return True

    def pause(self) -> None:
        """See SessionWorker."""
        if self._servers.is_session_wanted:
            self._let_go()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker."""
        del error
        self.drop()
        self._goodput = 0.0
        if self._piece is None or not self._was_open:
            return Lost([], progressed=False)
        return Lost([self._piece.file], self._landed_bytes > self._before_bytes)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._piece = None
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A whole file is passed on again only as often as --retries allows."""
        piece, self._piece = self._piece, None
        if piece is None:
            return
        file = piece.file
        if self._servers.parts and not file.is_streamed:
            self._scheduler.give_back(file, piece.start, piece.end)
            return
        file.failures += self._was_open
        if file.failures > self.context.options.retries:
            self._scheduler.give_up(file, error)
        else:
            self.context.queue.put_again(file, last=file.failures > 1)

    # --- one piece -----------------------------------------------------------------------------------

    def _carry(self, piece: Piece) -> None:
        """Pass one piece on; raises ConnectionLost and TransferTimeout, gives the file up for the rest."""
        file = piece.file
        try:
            if piece.start < piece.end or file.is_streamed or not file.is_whole:
                began_s = time.monotonic()
                self._pass_on(PairedTransfer(piece, parts=self._servers.parts))
                if piece.end > piece.start:
                    self._goodput = (piece.end - piece.start) / max(time.monotonic() - began_s, 1e-3)
        except (ConnectionLost, TransferTimeout, Interrupted, NoSpace, OffsetsUnproven):
            raise
        except MpxError as error:
            self.drop()
            self._scheduler.give_up(file, error)
            return
        if file.claim_whole():
            self.context.supervisor.whole(file)
        elif self._servers.parts:
            self._scheduler.put_back(file)  # where something of it was found to be damaged meanwhile

    def _pass_on(self, transfer: PairedTransfer) -> None:
        sender, receiver = self.open_session()
        file = transfer.file
        came = self._from.transfer(
            sender, file, transfer.start, lambda data, count: self._store_from(transfer, data, count)
        )
        size_bytes, is_ended = came
        if self._store is not None:
            self._store.end(transfer)
        else:
            reply = receiver.final_reply(work_bytes=file.size_bytes)
            if not reply.is_ok:
                raise cannot_store(reply, receiver.peer, file.final, file.partial)
        reply = sender.final_reply() if is_ended else sender.reply_to_cut()
        if is_ended and not reply.is_ok:
            raise ConnectionLost(str(cannot_send(reply, sender.peer, file.source)))
        self._check_size(transfer, size_bytes)
        self._landed_bytes += file.landed(transfer.start, transfer.start + size_bytes)

    def _check_size(self, transfer: PairedTransfer, size_bytes: int) -> None:
        """Take the end of the data for that of the file where it is; raises what else they mean."""
        file = transfer.file
        if not transfer.is_whole:
            if size_bytes != transfer.size_bytes:
                what = f"{size_bytes} bytes came from {transfer.start} on, of {file.size_bytes} in all"
                raise why_elsewhere(self._describe(file.source), file, what)
            return
        if size_bytes < (file.listed_bytes or 0) and (
            why := why_too_short(self._describe(file.source), file, size_bytes)
        ):
            raise why
        if file.is_streamed or size_bytes != file.size_bytes:
            self._scheduler.ended(file, size_bytes)

    def _store_from(
        self, transfer: PairedTransfer, data: socket.socket, count: Callable[[int], None]
    ) -> tuple[int, bool]:
        """Store what comes; return how many bytes did, and whether the server ended them."""
        sender, receiver = self.open_session()
        if self._servers.mode_e:
            store = self._store = self._store or BlockStore(self.context, receiver, self._counters)
            store.begin(transfer)
            return self._receive(
                transfer, sender, data, count, lambda at, block, size: store.put(transfer, at, block, size)
            )

        def send(connection: socket.socket, sent: Callable[[int], None]) -> tuple[int, bool]:
            def put(_at: int, block: memoryview, size_bytes: int) -> None:
                connection.sendall(block[HEADER_BYTES : HEADER_BYTES + size_bytes])
                sent(size_bytes)

            came = self._receive(transfer, sender, data, count, put)
            await_taken(connection, self.context.failure.cancel.is_set)
            return came

        clear(receiver, transfer.file)
        return self._to.transfer(receiver, transfer.file, 0, send)

    def _receive(
        self,
        transfer: PairedTransfer,
        sender: ClientSession,
        data: socket.socket,
        count: Callable[[int], None],
        put: Put,
    ) -> tuple[int, bool]:
        """Give all that comes to `put`; return how many bytes did, and whether the server ended them.

        A part that ends within its file is cut off there. Where the file should end one more byte is asked
        for, which must not come.
        """
        limiter, buffer = self.context.limiter, self._buffer[HEADER_BYTES:]
        is_last = transfer.is_whole or transfer.end >= transfer.file.size_bytes
        came = 0
        while is_last or came < transfer.size_bytes:
            want = min(len(buffer), limiter.piece(BUFFER_BYTES))
            want = want if transfer.is_whole else min(want, transfer.size_bytes + is_last - came)
            try:
                got = data.recv_into(buffer, want)
            except TimeoutError:
                raise TransferTimeout(f"no data from {sender.peer} for {data.gettimeout():g} s") from None
            except OSError as error:
                raise ConnectionLost(
                    f"a data connection to {sender.peer} was lost: {error.strerror or error}"
                ) from None
            if not got:
                return came, True
            if not transfer.is_whole and came + got > transfer.size_bytes:
                raise why_elsewhere(
                    self._describe(transfer.file.source), transfer.file, "more came than it has"
                )
            limiter.wait(got)
            put(transfer.start + came, self._buffer, got)
            came += got
            count(got)
        return came, False

    # --- the session ---------------------------------------------------------------------------------

    def open_session(self) -> tuple[ClientSession, ClientSession]:
        """See SessionWorker."""
        if self._sessions is None:
            self._sessions = self._servers.open_sessions(sends_in_mode_e=False)
            self._was_open = True
            self.opened()
        self._was_open = True
        return self._sessions

    def _describe(self, name: str) -> FileInfo | None:
        self.drop()  # there may be no other session
        return self.context.supervisor.describe(name)

    def _let_go(self) -> None:
        """Give both sessions to others; nothing is under way."""
        sessions, self._sessions = self._sessions, None
        self._leave()
        for session in sessions or ():
            give_back_session(session)

    def drop(self) -> None:
        """See SessionWorker."""
        sessions, self._sessions = self._sessions, None
        self._leave()
        for session in sessions or ():
            session.close()

    def _leave(self) -> None:
        """Close the connection to the destination, if it stays open."""
        self._store = None
        if self._counters.connection is not None:
            self._counters.closed(clean=False)
            with self.guard:
                self.retire({DEFAULT_PATH: self._counters.totals()})
                self._counters = StreamCounters()
