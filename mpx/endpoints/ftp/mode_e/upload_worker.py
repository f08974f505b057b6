"""Uploads in MODE E, the workers: each stores one large file, or a batch of smaller ones, at a time.

After a failure the session is given up, and what of the batch was not stored is stored again over another:
first what was interrupted is compared, so that only the rest of it is sent.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mpx.endpoints.ftp.asked_ahead import MARKERS, TICKET_UP
from mpx.endpoints.ftp.data_address import passive_port
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.mode_e.batch_size import BatchSize
from mpx.endpoints.ftp.mode_e.misplaced_blocks import await_end
from mpx.endpoints.ftp.mode_e.mode_e_worker import ModeEWorker
from mpx.endpoints.ftp.mode_e.upload_batch import UploadBatch
from mpx.endpoints.ftp.mode_e.upload_channel import UploadDataChannel
from mpx.endpoints.ftp.mode_e.upload_stream import UploadStream
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import is_session_wanted, open_session
from mpx.endpoints.ftp.wire import command
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.session_worker import Lost
from mpx.engine.stream import FIRST_BLOCK, StreamTotals
from mpx.errors import ConnectionLost, MpxError, NoSpace, SourceError, TransferTimeout, UsageError
from mpx.location import Location
from mpx.net import congestion_control

_MODE_E = command("MODE", "E")
LEAST_S = 1e-3  # that anything took
ALLOWED_S = 0.2  # a worker that may not take files looks so often whether there is something else to do


class UploadWorker(ModeEWorker):
    """Stores batches of files."""

    def __init__(
        self, number: int, location: Location, options: SessionOptions, context: CarrierContext
    ) -> None:
        super().__init__("upload", number, location.host, context)
        # The carrier's decisions (see SessionWorker):
        self.target: Sequence[str] = context.streams.paths.names[:1]  # the path of each stream
        self.sessions = 1  # how many workers share what waits
        self.allowed = threading.Event()  # whether this worker may take files now
        streams = context.streams
        self.congestions = {path: streams.congestion_of(path) for path in streams.paths.names}
        # Replaced by this thread with `guard` held, read by others:
        self._batch: Sequence[FileTransfer] = ()  # what is being stored
        self._session: ClientSession | None = None
        self._channel: UploadDataChannel | None = None
        # This thread's own:
        self._location = location
        self._options = replace(options, waits_for_turn=number == 0)  # one worker is enough
        self._size = BatchSize()
        self._at_once = 0  # how many files of the batch are stored in the next attempt
        self._in_attempt: Sequence[FileTransfer] = ()  # that are being stored; none between two attempts
        self._was_open = False  # there was a session in this attempt
        self._block_bytes = context.options.block_size_bytes  # None: as much as a stream sends in 100 ms
        self._interrupted: set[FileTransfer] = set()  # what of them has arrived is not known yet
        self._arrived_bytes = 0  # of the batch, when it had most: only more than that is progress

    # --- for the carrier, from any thread ------------------------------------------------------------

    def totals(self) -> dict[str, StreamTotals]:
        """See SessionWorker. Streams without anything to send are not counted as open.

        Those between two batches are, as a pause of an RTT says nothing of how many there should be.
        """
        sums = super().totals()
        return sums if self.is_busy else {path: each.none_open() for path, each in sums.items()}

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker."""
        return self._channel.totals() if self._channel else {}

    def silent_s(self, path: str) -> float | None:
        """See SessionWorker. As with `StreamCounters.unanswered_s`, it is to be asked again and again."""
        silent = [each.unanswered_s() for each in self._streams(path) if each.connection is not None]
        return min((each for each in silent if each is not None), default=None)

    def _streams(self, path: str) -> list[UploadStream]:
        channel = self._channel
        return [stream for stream in channel.live_streams() if stream.path == path] if channel else []

    def renew(self, path: str) -> None:
        """See SessionWorker. Each ends at its next block edge."""
        if channel := self._channel:
            channel.renew(path)

    def switch_congestion(self, path: str, name: str) -> None:
        """Use `name`, which is permitted, on the streams of a path from now on; locked routes keep theirs."""
        self.congestions[path] = name
        for connection in self.connections(path):
            with contextlib.suppress(OSError, UsageError):  # it has ended, or may not
                congestion_control.set_congestion(connection, name)

    def connections(self, path: str) -> list[socket.socket]:
        """Return those of a path that are open."""
        return [stream.connection for stream in self._streams(path) if stream.connection is not None]

    def cut(self) -> None:
        """See SessionWorker."""
        session, channel = self._session, self._channel
        if session:
            session.abort()
        if channel:
            channel.close()
            for stream in channel.live_streams():
                stream.cut()

    @property
    def is_busy(self) -> bool:
        """Whether it stores files, or is about to take the next ones."""
        return bool(self._batch) or (self._channel is not None and self.context.queue.waiting_bytes > 0)

    @property
    def todo_bytes(self) -> int:
        """How much is left for it to send: of the files that it stores, and its share of those that wait."""
        in_hand = sum(file.todo_bytes for file in self._batch)
        return in_hand + self.context.queue.waiting_bytes // self.sessions

    @property
    def has_part(self) -> bool:
        """See ModeEWorker."""
        return self.allowed.is_set()

    def run(self) -> None:
        """See SessionWorker."""
        super().run()
        self._set_batch(())

    # --- one attempt ---------------------------------------------------------------------------------

    def step(self) -> bool:
        """Store the batch, or part of it: see SessionWorker.

        After a failure without progress one file goes alone, then two, and so on.
        """
        if not self._batch and not self._take():
            return False
        self._in_attempt = files = self._batch[: self._at_once]
        self._was_open = False
        try:
            for file in files:
                if file in self._interrupted:
                    self._rescue(file)
                    self._interrupted.discard(file)
            self._store([file for file in files if file in self._batch])
        finally:
            # Behind a refused file streams have taken what nobody stored.
            self._interrupted.update(self._in_attempt)
        self.retry.progressed()
        self._in_attempt, self._block_bytes = (), self.context.options.block_size_bytes
        self._at_once *= 2
        return True

    def _take(self) -> bool:
        queue = self.context.queue
        file = queue.take(self.pause) if self.allowed.wait(ALLOWED_S) else None
        if file is None:
            return False
        self._set_batch(self._size.fill(file, queue, self.sessions))
        self._at_once = len(self._batch)
        self._arrived_bytes = _arrived(self._batch)
        self._interrupted.clear()
        self.retry.begin()
        return True

    def _set_batch(self, files: Sequence[FileTransfer]) -> None:
        with self.guard:
            self._batch = tuple(files)

    def _done(self, file: FileTransfer) -> None:
        self._set_batch([each for each in self._batch if each is not file])

    def _rescue(self, file: FileTransfer) -> None:
        """Find out what of an interrupted file has arrived, so that only the rest is sent again.

        Raises ConnectionLost or TransferTimeout when the server cannot be asked.
        """
        try:
            if not file.is_small or file.arrived_bytes or (file.sent_whole and file.listed_bytes is not None):
                self.context.supervisor.prove(file)
        except SourceError as error:
            self._done(file)
            self.context.supervisor.given_up(file, error)
        else:
            if file.redo_missing() == 0 and file.sent_whole and file.size_bytes:
                self._done(file)
                self.context.supervisor.whole(file)
            file.sent_whole = False

    def _store(self, files: Sequence[FileTransfer]) -> None:
        """Store files; those that are done leave the batch. Raises what ends the session, and NoSpace."""
        if not files:
            return
        session, channel = self._open()
        batch = UploadBatch(self.context, session, channel, lambda: self.target)
        began_s, sent_bytes = time.monotonic(), 0
        try:
            self._begin(batch, files)
            while batch.transfers:
                transfer = batch.transfers[0]
                try:
                    error = batch.complete(transfer)
                except (ConnectionLost, TransferTimeout):
                    self._leave_channel(politely=False)
                    await_end(session)
                    raise
                if error is None:
                    self._size.succeeded()
                else:
                    self._size.failed()
                    self.drop()
                if error is not None and (error.may_retry or isinstance(error, NoSpace)):
                    raise error
                self._done(transfer.file)
                if error is not None:
                    self.context.supervisor.given_up(transfer.file, error)
                    return  # the others of the batch start anew
                self.context.supervisor.whole(transfer.file)
                sent_bytes += transfer.sent_bytes
                batch.settled()
                took_s = max(time.monotonic() - began_s, LEAST_S)
                self._size.measured(sent_bytes / took_s, session.rtt_s or 0.0)
                self._refill(batch, channel)
        finally:
            if any(transfer.file in self._batch for transfer in batch.transfers):
                self.drop()  # no stream reads from these files any more
            batch.end(self._batch.__contains__)

    def _begin(self, batch: UploadBatch, files: Sequence[FileTransfer]) -> None:
        for file, why in batch.begin(files):
            self._done(file)
            self.context.supervisor.given_up(file, why)

    def _refill(self, batch: UploadBatch, channel: UploadDataChannel) -> None:
        """Have more files stored behind those that are, where nothing is to change before.

        A connection that is retired leaves with the last file that waits for it.
        """
        is_divided = len(batch.transfers) < len(self._batch)  # the others are tried apart from these
        if not batch.transfers or is_divided or not self.allowed.is_set() or not channel.is_steady:
            return
        if is_session_wanted(self._options) or self.context.failure.cancel.is_set():
            return
        more = self._size.refill(self._batch, self.context.queue, self.sessions)
        if more:
            self._set_batch((*self._batch, *more))
            self._in_attempt = self._batch
            self._at_once = len(self._batch)
            self._arrived_bytes = _arrived(self._batch)
            self.retry.progressed()
            self._begin(batch, more)

    # --- after a failure -----------------------------------------------------------------------------

    def lost(self, _error: MpxError, /) -> Lost:
        """See SessionWorker."""
        self.drop()
        files = [file for file in self._in_attempt if file in self._batch]
        arrived, is_less = _arrived(self._batch), len(files) < len(self._in_attempt)
        progressed = is_less or arrived > self._arrived_bytes
        if not progressed:  # what is sent before a connection ends is to count, but for its first block
            self._block_bytes = min(FIRST_BLOCK, self._block_bytes or FIRST_BLOCK)
        # What a marker claimed may be gone, and come again: only more than ever before is progress.
        self._arrived_bytes = arrived if is_less else max(self._arrived_bytes, arrived)
        return Lost(files if self._was_open else (), progressed)

    def isolate(self) -> None:
        """See SessionWorker."""
        self._at_once = 1

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self.context.supervisor.given_up(file, error)
        self._done(file)
        self._arrived_bytes = _arrived(self._batch)

    def hand_back(self, _error: MpxError, /) -> None:
        """See SessionWorker. The batch stays in hand while there may be another session for it."""
        if self.gone:
            files, self._in_attempt = self._batch, ()
            self._set_batch(())
            for file in reversed(files):
                self.context.queue.put_again(file)

    # --- the session ---------------------------------------------------------------------------------

    def open_session(self) -> ClientSession:
        """See SessionWorker. It is in MODE E."""
        if self._session is None:
            self._session = session = open_session(
                self._location, self._options, (_MODE_E, *MARKERS, TICKET_UP)
            )
            (mode,) = session.protected([_MODE_E])
            if not mode.is_ok:
                raise ConnectionLost(f"{session.peer} refuses MODE E: {mode.reason}")
            self.opened()
        return self._session

    def _open(self) -> tuple[ClientSession, UploadDataChannel]:
        """Return a session in MODE E and a channel that can begin a transfer; opens what there is not."""
        session, self._was_open = self.open_session(), True
        if self._channel is not None and self._channel.is_deserted:
            self._leave_channel(politely=True)  # nothing could begin the next transfer there
        if self._channel is None:
            port = passive_port(session, MARKERS, Direction.UP)
            self._channel = UploadDataChannel(port, self.context, self.congestions)
            self._channel.block_bytes = self._block_bytes
        return session, self._channel

    def pause(self) -> None:
        """See SessionWorker."""
        if is_session_wanted(self._options):
            self.drop()

    def drop(self) -> None:
        """See SessionWorker."""
        self._leave_channel(politely=not self._in_attempt and not self.context.failure.cancel.is_set())
        if self._session:
            self._session.close()
        self._session = None

    def _leave_channel(self, *, politely: bool) -> None:
        channel = self._channel
        if channel is None:
            return
        if politely:
            channel.leave()
        else:
            channel.cut()
        with self.guard:
            self.retire(channel.totals())
            self._channel = None


def _arrived(files: Sequence[FileTransfer]) -> int:
    """Return how many bytes of these files have arrived, as far as it is known."""
    return sum(file.arrived_bytes for file in files)
