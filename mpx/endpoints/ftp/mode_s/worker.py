"""Transfers in MODE S (stream), the workers: one connection per piece of a file.

Every FTP server has it: for servers without MODE E, and for clients that no server can connect to, as the
client opens the connections. A download is cut into pieces for several sessions where the server
understands REST (`download.py`); since MODE S cannot name an end, the connection is simply closed when a
piece is complete that ends within its file. An upload is one connection per file, since servers disagree
on what REST means to STOR; several files go at once.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from mpx.endpoints.ftp.mode_s.connections import DataConnections
from mpx.endpoints.ftp.mode_s.download import Incoming, Receive, StreamDownload
from mpx.endpoints.ftp.mode_s.upload import clear, send_piece
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import give_back_session, is_session_wanted, open_session
from mpx.endpoints.ftp.stored_size import stored_sizes
from mpx.endpoints.ftp.wire import command
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.source_stream import is_made_up
from mpx.engine.stream import BUFFER_BYTES, StreamTotals
from mpx.errors import ConnectionLost, Interrupted, MpxError, NoSpace, OffsetsUnproven, TransferTimeout
from mpx.files.local_error import local_error
from mpx.location import Location

_MODE_S = command("MODE", "S")
PIECE_S = 5.0  # duration of a piece, so that its handshake and slow start weigh little
FIRST_PIECE = 16 * 1024 * 1024
WORTH_CONNECTING = 4 * 1024 * 1024  # a shorter piece would mostly wait for its connection
SMALLEST_PIECE = 256 * 1024


class StreamWorker(SessionWorker):
    """Carries piece after piece, in one direction."""

    def __init__(
        self,
        number: int,
        location: Location,
        options: SessionOptions,
        context: CarrierContext,
        scheduler: RangeScheduler,
        *,
        upload: bool,
        whole_files: bool,
    ) -> None:
        super().__init__("stream", number, location.host, context)
        self.target = 0  # 1: take pieces; the carrier's decision (see SessionWorker)
        self._session: ClientSession | None = None  # replaced by this thread; others only cut it
        self._data = DataConnections(context, options.timeout_s, upload=upload)
        # This thread's own:
        self._location = location
        self._options = replace(options, waits_for_turn=number == 0)  # one worker is enough
        self._scheduler = scheduler
        self._upload = upload
        self._whole_files = whole_files
        self._is_open = False  # the session is logged in and in MODE S
        self._piece: Piece | None = None  # in hand
        self._goodput = 0.0  # bytes/s, of the last piece; 0: not known
        self._first_piece = FIRST_PIECE
        self._stored_bytes = 0  # for the first time: what is sent again is no progress
        self._was_tried = False  # the piece in hand, over an open session
        self._before_bytes = 0  # `_new_bytes` when the piece in hand was begun
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._download = StreamDownload(context, scheduler, self._retrieve, self._describe)

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker."""
        return {DEFAULT_PATH: self._data.totals()}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. Every piece has a connection of its own."""

    def cut(self) -> None:
        """See SessionWorker."""
        if session := self._session:
            session.abort()
        self._data.cut()

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Carry a piece: see SessionWorker."""
        piece = self._next_piece() if self.target else None
        if piece is None:
            return False
        self._piece, self._before_bytes, self._was_tried = piece, self._new_bytes, self._is_open
        self._carry(piece)
        self.retry.progressed()
        return True

    def pause(self) -> None:
        """See SessionWorker."""
        if is_session_wanted(self._options):
            self._let_go()

    def lost(self, _error: MpxError, /) -> Lost:
        """See SessionWorker."""
        self.drop()
        self._first_piece = max(self._first_piece // 4, SMALLEST_PIECE)
        self._goodput = 0.0  # what was too much for this connection is not asked for again
        if self._piece is None or not self._was_tried:
            return Lost([], progressed=False)
        file = self._piece.file
        is_read_anew = self._whole_files or file.is_streamed  # from its first byte: nothing of it is kept
        return Lost([file], self._new_bytes > self._before_bytes and not is_read_anew)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A whole file is carried again only as often as --retries allows.

        One that failed twice waits behind the others, so that it keeps none of them from being carried. A
        file of which every byte came, and which the server then did not end well, is read again too.
        """
        piece = self._piece
        if piece is None:
            return
        file = piece.file
        was_whole = file.is_whole and not file.is_claimed
        if not self._whole_files and not file.is_streamed and not was_whole:
            self._scheduler.give_back(file, piece.start, piece.end)
            return
        file.failures += self._was_tried
        if file.failures > self.context.options.retries:
            self._scheduler.give_up(file, error)
        else:
            if was_whole:
                file.redo(0, file.size_bytes)
            self.context.queue.put_again(file, last=file.failures > 1)

    # --- one piece -----------------------------------------------------------------------------------

    def _next_piece(self) -> Piece | None:
        if self._whole_files:
            return self._scheduler.take_file()
        size = int(max(self._goodput * PIECE_S, WORTH_CONNECTING)) if self._goodput else self._first_piece
        return self._scheduler.take(size)

    def _carry(self, piece: Piece) -> None:
        """Carry one piece; raises ConnectionLost and TransferTimeout, gives the file up for the rest."""
        file = piece.file
        name = file.source if self._upload else file.partial
        try:
            fd = file.open(name, os.O_RDONLY if self._upload else os.O_RDWR | os.O_CREAT)
        except OSError as error:
            self._scheduler.give_up(file, local_error(error, name, writing=not self._upload))
            return
        try:
            began_s = time.monotonic()
            if self._upload and not file.sent_whole and is_made_up(os.fstat(fd)):
                file.stream()
            if file.sent_whole and not file.is_streamed and self._is_stored(file):
                file.landed(0, file.size_bytes)
            elif self._upload:
                self._store(piece, fd)
                self._measured(piece, began_s)
            elif piece.start == piece.end and file.is_whole:
                os.ftruncate(fd, file.size_bytes)  # an earlier run has brought all of it
            else:
                self._download.bring(piece, fd)
                self._measured(piece, began_s)
                if file.is_whole:
                    os.ftruncate(fd, file.size_bytes)  # an attempt before may have brought more
        except (ConnectionLost, TransferTimeout, Interrupted, NoSpace, OffsetsUnproven):
            raise
        except MpxError as error:
            self.drop()
            self._scheduler.give_up(file, error)
            return
        finally:
            file.close()
        if file.claim_whole():
            self.context.supervisor.whole(file)

    def _measured(self, piece: Piece, began_s: float) -> None:
        """Note how fast a piece was carried, by which the next is measured out; in bytes per second."""
        if piece.end > piece.start:
            self._goodput = (piece.end - piece.start) / max(time.monotonic() - began_s, 1e-3)

    @property
    def _new_bytes(self) -> int:
        """How many bytes have arrived for the first time: what comes or goes again is no progress."""
        return self._stored_bytes + self._download.new_bytes

    def _store(self, piece: Piece, fd: int) -> None:
        file, session = piece.file, self.open_session()
        send = partial(send_piece, self.context, piece, fd, buffer=self._buffer)
        clear(session, file)
        self._data.transfer(session, file, 0, send)
        file.sent_whole = True  # until the answer is read
        reply = session.final_reply(work_bytes=file.size_bytes)
        file.sent_whole = False
        if not reply.is_ok:
            raise self._data.refusal(session, reply, file)
        self._stored_bytes += file.landed(0, file.size_bytes)

    def _is_stored(self, file: FileTransfer) -> bool:
        """Tell whether a file of which every byte was sent is there whole, though the answer was lost."""
        session = self.open_session()
        file.sent_whole = False
        return stored_sizes(session, [session.name(file.partial)]) == [file.size_bytes]

    def _retrieve(
        self, file: FileTransfer, offset: int, expected_bytes: int | None, receive: Receive
    ) -> Incoming:
        """Run one RETR; see StreamDownload."""
        session = self.open_session()
        came = self._data.transfer(session, file, offset, receive)
        if came.is_left_open:  # then the server's word that it has sent all ends them
            if (said := session.poll_reply(0.0)) is None or said.is_preliminary:
                raise TransferTimeout(
                    f"{session.peer} sent all of {file.source}, but does not end the transfer"
                )
            session.put_back(said)
            came.is_ended = True
        try:
            reply = session.final_reply() if came.is_ended else session.reply_to_cut()
        except (ConnectionLost, TransferTimeout):
            if came.is_ended and came.bytes != expected_bytes:
                raise
            self.drop()  # all that was asked for has come, whatever became of the session
            return came
        if came.is_ended and not reply.is_ok:
            raise self._data.broken(session, reply, file)
        return came

    # --- the session ---------------------------------------------------------------------------------

    def open_session(self) -> ClientSession:
        """See SessionWorker."""
        if self._session is None:
            self._session = session = open_session(self._location, self._options, (_MODE_S,))
            session.call(_MODE_S)
            self._is_open = self._was_tried = True
            self.opened()
        return self._session

    def _describe(self, name: str) -> FileInfo | None:
        """As Supervisor.describe, where no other session may be admitted beside this one."""
        self._let_go()
        return self.context.supervisor.describe(name)

    def _let_go(self) -> None:
        """Give the session to others until the next piece; no command of it is unanswered."""
        session, self._session = self._session, None
        self._is_open = False
        self._download.begin_session()
        if session:
            give_back_session(session)

    def drop(self) -> None:
        """See SessionWorker."""
        self._is_open = False
        if self._session:
            self._session.close()
            self._session = None
        self._download.begin_session()
