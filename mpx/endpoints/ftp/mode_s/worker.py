"""Transfers in MODE S (stream): one connection per piece of a file, which every FTP server can do.

For servers without MODE E, and for clients that no server can connect to: the client always opens the
connection. A download is cut into pieces for several sessions where the server understands REST
(`download.py`); since MODE S cannot name an end, the connection is simply closed when a piece is
complete that ends within its file. An upload is one
connection per file, since servers disagree on what REST means to STOR; several files go at once.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.data_address import address_from, connect_data
from mpx.endpoints.ftp.early_end import await_first, brings_nothing, early_reply
from mpx.endpoints.ftp.mode_s.download import Incoming, Receive, StreamDownload
from mpx.endpoints.ftp.mode_s.upload import clear, send_piece
from mpx.endpoints.ftp.refusals import cannot_send, cannot_store
from mpx.endpoints.ftp.session import Session, SessionOptions
from mpx.endpoints.ftp.session_pool import SessionsFull, give_back_session, is_session_wanted, open_session
from mpx.endpoints.ftp.stored_size import stored_sizes
from mpx.endpoints.ftp.wire import Reply, command
from mpx.endpoints.local.source_stream import is_made_up
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.retry import Retry
from mpx.engine.stream import BUFFER_BYTES, Stream, StreamTotals
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    Interrupted,
    MpxError,
    NoSpace,
    OffsetsUnproven,
    TransferTimeout,
)
from mpx.files.local_error import local_error
from mpx.location import Location

PIECE_S = 5.0  # a piece lasts about so long, so that its handshake and slow start weigh little
FIRST_PIECE = 16 * 1024 * 1024
WORTH_CONNECTING = 4 * 1024 * 1024  # a shorter piece would mostly wait for its connection
SMALLEST_PIECE = 256 * 1024
IDLE_S = 0.05
_NO_OFFSET = (501, 504, 551, 554)  # of RETR: what it cannot do after REST

Result = TypeVar("Result")


class _Connection(Stream):
    """The data connection of the piece under way; its lane's thread uses it."""

    def count(self, size_bytes: int) -> None:
        """Take note of bytes that have passed."""
        self.passed_bytes += size_bytes


class StreamWorker(threading.Thread):
    """One session that carries piece after piece, in one direction."""

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
        super().__init__(name=f"mpx-stream-{number}", daemon=True)
        self.target = 0  # 1: take pieces
        self.gone = False  # the server lets no further session in, so others are to have its share
        self._location = location
        self._options = replace(options, waits_for_turn=number == 0)  # one lane is enough
        self._context = context
        self._scheduler = scheduler
        self._upload = upload
        self._number = number
        self._session: Session | None = None
        self._whole_files = whole_files
        self._data: _Connection | None = None
        self._past = StreamTotals()
        self._counting = threading.Lock()  # nothing is counted twice, or not at all, while it changes hands
        self._goodput = 0.0
        self._ever_opened = False
        self._first_piece = FIRST_PIECE
        self._is_open = False  # the session is logged in
        self._stored_bytes = 0  # for the first time: what is sent again is no progress
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._download = StreamDownload(context, scheduler, self._retrieve, self._describe)

    # --- for the carrier -----------------------------------------------------------------------------

    def totals(self) -> dict[str, StreamTotals]:
        """Return the counters of all connections that there are and were."""
        sums = StreamTotals()
        with self._counting:
            sums.add(self._past)
            if self._data and self._upload:
                sums.add(self._data.totals())
            elif self._data:
                sums.add(StreamTotals(streams=1, bytes=self._data.passed_bytes))
        return {DEFAULT_PATH: sums}

    def silent_s(self, path: str) -> None:
        """Return None: it has nothing to do with paths."""

    def renew(self) -> None:
        """Do nothing: every piece has a connection of its own."""

    def cut(self) -> None:
        """Reset everything; the lane's thread ends soon."""
        session, data = self._session, self._data
        if session:
            session.abort()
        if data:
            data.cut()

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Carry pieces until the pool is settled or the copy stops."""
        context = self._context
        retry = Retry(context.options.retries, context.failure.cancel)
        with context.failure.guard():
            while not context.queue.is_settled and not context.failure.cancel.is_set():
                piece = self._next_piece() if self.target else None
                if piece is None:
                    if is_session_wanted(self._options):
                        self._let_go()
                    context.failure.cancel.wait(IDLE_S)
                    continue
                before = self._new_bytes
                try:
                    self._carry(piece)
                    retry.progressed()
                except (AuthenticationError, ConnectionLost, TransferTimeout) as error:
                    was_open = self._is_open
                    self._drop()
                    self._first_piece = max(self._first_piece // 4, SMALLEST_PIECE)
                    self._goodput = 0.0  # what was too much for this connection is not asked for again
                    if self._new_bytes > before:
                        retry.progressed()
                    if was_open and context.queue.listed_files > 1 and retry.may_give_up(error):
                        self._scheduler.give_up(piece.file, error)
                        continue
                    self._return(piece, error, was_tried=was_open)
                    if isinstance(error, SessionsFull):
                        self.gone = True
                        break
                    if not self._ever_opened and (self._number > 0 or context.events.admitted.is_set()):
                        context.supervisor.note(f"no further session with {self._location.host}: {error}")
                        self.gone = True
                        break
                    retry.again(error)
                    context.supervisor.note(f"trying again after: {error}")
        self._drop()

    def _return(self, piece: Piece, error: MpxError, *, was_tried: bool) -> None:
        """Have what was not carried carried once more; a whole file only as often as --retries allows.

        One that failed twice waits behind the others, so that it keeps none of them from being carried. A
        file of which every byte came, and which the server then did not end well, is read again too.
        """
        file = piece.file
        was_whole = file.is_whole and not file.is_claimed
        if not self._whole_files and not file.is_streamed and not was_whole:
            self._scheduler.give_back(file, piece.start, piece.end)
            return
        file.failures += was_tried
        if file.failures > self._context.options.retries:
            self._scheduler.give_up(file, error)
        else:
            if was_whole:
                file.redo(0, file.size_bytes)
            self._context.queue.put_again(file, last=file.failures > 1)

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
            began = time.monotonic()
            if self._upload and not file.sent_whole and is_made_up(os.fstat(fd)):
                file.stream()
            if file.sent_whole and not file.is_streamed and self._is_stored(file):
                file.landed(0, file.size_bytes)
            elif self._upload:
                self._store(piece, fd)
                self._measured(piece, began)
            elif piece.start == piece.end and file.is_whole:
                os.ftruncate(fd, file.size_bytes)  # an earlier run has brought all of it
            else:
                self._download.bring(piece, fd)
                self._measured(piece, began)
                if file.is_whole:
                    os.ftruncate(fd, file.size_bytes)  # an attempt before may have brought more
        except (ConnectionLost, TransferTimeout, Interrupted, NoSpace, OffsetsUnproven):
            raise
        except MpxError as error:
            self._drop()
            self._scheduler.give_up(file, error)
            return
        finally:
            file.close()
        if file.claim_whole():
            self._context.supervisor.whole(file)

    def _measured(self, piece: Piece, began_s: float) -> None:
        """Note how fast a piece was carried, by which the next is measured out; in bytes per second."""
        if piece.end > piece.start:
            self._goodput = (piece.end - piece.start) / max(time.monotonic() - began_s, 1e-3)

    @property
    def _new_bytes(self) -> int:
        """How many bytes have arrived for the first time: what comes or goes again is no progress."""
        return self._stored_bytes + self._download.new_bytes

    # --- one transfer --------------------------------------------------------------------------------

    def _store(self, piece: Piece, fd: int) -> None:
        file = piece.file

        def send(connection: socket.socket, count: Callable[[int], None]) -> None:
            send_piece(self._context, piece, fd, connection, count, self._buffer)

        clear(self._open_session(), file)
        session, _ = self._transfer(file, "STOR", file.partial, 0, send)
        file.sent_whole = True  # until the answer is read
        reply = session.final_reply()
        file.sent_whole = False
        if not reply.is_ok:
            raise self._refusal(session, reply, file)
        self._stored_bytes += file.landed(0, file.size_bytes)

    def _is_stored(self, file: FileTransfer) -> bool:
        """Tell whether a file of which every byte was sent is there whole, though the answer was lost."""
        session = self._open_session()
        file.sent_whole = False
        return stored_sizes(session, [session.name(file.partial)]) == [file.size_bytes]

    def _retrieve(
        self, file: FileTransfer, offset: int, expected_bytes: int | None, receive: Receive
    ) -> Incoming:
        """Run one RETR; see StreamDownload."""
        session, came = self._transfer(file, "RETR", file.source, offset, receive)
        try:
            reply = session.final_reply() if came.is_ended else session.reply_to_cut()
        except (ConnectionLost, TransferTimeout):
            if came.is_ended and came.bytes != expected_bytes:
                raise
            self._drop()  # all that was asked for has come, whatever became of the session
            return came
        if came.is_ended and not reply.is_ok:
            raise self._broken(session, reply, file)
        return came

    def _transfer(
        self,
        file: FileTransfer,
        verb: str,
        name: str,
        offset: int,
        use: Callable[[socket.socket, Callable[[int], None]], Result],
    ) -> tuple[Session, Result]:
        """Open a data connection for a file from an offset on, `use` it, and close it.

        The final reply is left to be read. Raises ConnectionLost, TransferTimeout, OffsetsUnproven and what
        a refusal means.
        """
        session = self._open_session()
        telnet_escape.learn(session, name)
        address = address_from(session, offset)
        session.send(command(verb, session.name(name)))
        data = _Connection(
            "mpx-stream-data",
            self._context.supervisor.stream_ended if self._context.streams.over_mptcp else None,
        )
        try:
            congestion = self._context.streams.congestion if self._upload else None
            over_mptcp = self._context.streams.over_mptcp
            try:
                connection = connect_data(session, address, congestion=congestion, over_mptcp=over_mptcp)
            except ConnectionLost as error:
                connection = self._unconnected(session, file, offset, error)
            data.opened(connection)
            self._data = data
            reply = session.read_reply()
            connection.settimeout(self._options.timeout_s)
            if verb == "RETR" and reply.is_ok:
                session.put_back(reply)
                await_first(connection, is_sized=file.listed_bytes is not None)
            elif not reply.is_preliminary:
                raise self._turned_down(session, reply, file, offset)
            try:
                return session, use(connection, data.count)
            except TimeoutError:
                raise TransferTimeout(
                    f"nothing has moved for {self._options.timeout_s:g} s between us and {session.peer}"
                ) from None
            except OSError as error:
                raise self._verdict(session, file, error) from None
        finally:
            with self._counting:
                self._data = None
                self._past.add(StreamTotals(bytes=data.passed_bytes))
            data.closed(clean=False)

    def _unconnected(
        self, session: Session, file: FileTransfer, offset: int, error: MpxError
    ) -> socket.socket:
        """Return what brings nothing if the server closed its port as there is nothing; else raise why."""
        if not self._upload and file.listed_bytes is None:
            raise error  # nobody knows that there is nothing
        reply = early_reply(session, error)
        if not reply.is_ok or self._upload:
            raise self._turned_down(session, reply, file, offset) from None
        session.put_back(reply)
        return brings_nothing()

    def _turned_down(self, session: Session, reply: Reply, file: FileTransfer, offset: int) -> MpxError:
        if offset and reply.code in _NO_OFFSET:
            return OffsetsUnproven(f"{session.peer} cannot start at an offset: {reply.reason}")
        return self._refusal(session, reply, file)

    def _verdict(self, session: Session, file: FileTransfer, error: OSError) -> MpxError:
        """Read what the server says of a broken connection before judging it."""
        lost = ConnectionLost(f"a data connection to {session.peer} was lost: {error.strerror or error}")
        try:
            reply = session.poll_reply(5.0)
        except MpxError:
            return lost
        if reply is None or reply.is_ok or reply.is_preliminary:
            return lost
        return self._broken(session, reply, file)

    def _broken(self, session: Session, reply: Reply, file: FileTransfer) -> MpxError:
        """Return what it means that a transfer was ended by a refusal: try again, but on a full disk."""
        said = self._refusal(session, reply, file)
        return said if isinstance(said, NoSpace) else ConnectionLost(str(said))

    def _refusal(self, session: Session, reply: Reply, file: FileTransfer) -> MpxError:
        if self._upload:
            return cannot_store(reply, session.peer, file.final, file.partial)
        return cannot_send(reply, session.peer, file.source)

    # --- the session ---------------------------------------------------------------------------------

    def _open_session(self) -> Session:
        if self._session is None:
            self._session = session = open_session(self._location, self._options)
            session.call(command("MODE", "S"))
            self._ever_opened = self._is_open = True
            self._context.events.admitted.set()
        return self._session

    def _describe(self, name: str) -> FileInfo | None:
        """As Supervisor.describe, where no other session may be admitted beside this one."""
        self._let_go()
        return self._context.supervisor.describe(name)

    def _let_go(self) -> None:
        """Give the session to others until the next piece; no command of it is unanswered."""
        self._is_open = False
        session, self._session = self._session, None
        self._download.begin_session()
        if session:
            give_back_session(session)

    def _drop(self) -> None:
        self._is_open = False
        if self._session:
            self._session.close()
            self._session = None
        self._download.begin_session()
