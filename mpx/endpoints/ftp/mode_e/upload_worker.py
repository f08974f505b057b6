"""Uploads in MODE E, the sessions: each stores one large file, or a batch of smaller ones, at a time.

The STORs of a batch go out in one write and run back to back on the same connections. A failing one
does not stop those queued behind it, which then would read the wrong data; so after a failure the
session is given up, and what followed is stored again. Nothing gets its final name before its own
completion was read.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.data_address import passive_address
from mpx.endpoints.ftp.mode_e.batch_size import BatchSize
from mpx.endpoints.ftp.mode_e.store import Transfer
from mpx.endpoints.ftp.mode_e.upload_channel import UploadDataChannel
from mpx.endpoints.ftp.mode_e.upload_watch import TICK_S, UploadWatch, marked
from mpx.endpoints.ftp.refusals import cannot_store
from mpx.endpoints.ftp.session import Session, SessionOptions
from mpx.endpoints.ftp.session_pool import SessionsFull, is_session_wanted, open_session
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry
from mpx.engine.stream import StreamTotals, summed
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    Interrupted,
    MpxError,
    NoSpace,
    SourceError,
    TransferTimeout,
    UsageError,
)
from mpx.files.local_error import local_error
from mpx.location import Location
from mpx.net import congestion_control

VERDICT_S = 10.0  # after a data connection broke, wait so long for what the server says of it
CONNECT_FAILURES = 3


class UploadWorker(threading.Thread):
    """One session that stores files."""

    def __init__(
        self, number: int, location: Location, options: SessionOptions, context: CarrierContext
    ) -> None:
        super().__init__(name=f"mpx-upload-{number}", daemon=True)
        self.location = location
        self.context = context
        self.target: Sequence[str] = context.streams.paths.names[:1]  # the path of each stream
        self.sessions = 1  # how many lanes share what waits
        self._batch: list[FileTransfer] = []  # is being stored
        self.allowed = threading.Event()  # whether this lane may take files now
        self.gone = False  # the server lets no further session in, so others are to have its share
        self.congestion = context.streams.congestion
        self._number = number
        self._options = replace(options, waits_for_turn=number == 0)  # one lane is enough
        self._session: Session | None = None
        self._channel: UploadDataChannel | None = None
        self._past: dict[str, StreamTotals] = {}  # by path
        self._counting = threading.Lock()  # nothing is counted twice, or not at all, while it changes hands
        self._size = BatchSize()
        self._ever_opened = False
        self._retry = Retry(context.options.retries, context.failure.cancel)
        self._was_open = False  # there was a session in the latest attempt

    # --- for the carrier -----------------------------------------------------------------------------

    def totals(self) -> dict[str, StreamTotals]:
        """Return the counters of all streams that there are and were, by path; unused ones are not counted.

        Those between two batches are, as a pause of an RTT says nothing of how many there should be.
        """
        with self._counting:
            sums = summed(self._past, self._channel.totals() if self._channel else {})
        return sums if self.is_busy else {path: each.none_open() for path, each in sums.items()}

    def silent_s(self, path: str) -> float | None:
        """Return for how long nothing sent on a path has been acknowledged; None where nothing is owed.

        As with `Stream.unanswered_s`, it is to be asked again and again.
        """
        channel = self._channel
        streams = [stream for stream in channel.live_streams() if stream.path == path] if channel else []
        silent = [stream.unanswered_s() for stream in streams if stream.connection is not None]
        return min((each for each in silent if each is not None), default=None)

    def renew(self) -> None:
        """Replace every stream at its next block edge."""
        if self._channel:
            self._channel.renew()

    def switch_congestion(self, name: str) -> None:
        """Use `name`, which is permitted, on open streams and later ones; locked routes keep theirs."""
        self.congestion = name
        if channel := self._channel:
            channel.congestion = name
        for connection in self.connections():
            with contextlib.suppress(OSError, UsageError):  # it has ended, or may not
                congestion_control.set_congestion(connection, name)

    def connections(self) -> list[socket.socket]:
        """Return those that are open."""
        channel = self._channel
        streams = channel.live_streams() if channel else []
        return [stream.connection for stream in streams if stream.connection is not None]

    def cut(self) -> None:
        """Reset everything; the lane's thread ends soon."""
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
        in_hand = sum(file.todo_bytes for file in list(self._batch))
        return in_hand + self.context.queue.waiting_bytes // self.sessions

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Store files until the pool is settled or the copy stops."""
        queue = self.context.queue
        with self.context.failure.guard():
            while self._may_go_on() and (file := queue.take(self._pause)) is not None:
                self._batch = self._size.fill(file, queue, self.sessions)
                self._carry(self._batch)
                self._batch = []
        self._batch = []
        self._drop(politely=True)

    def _may_go_on(self) -> bool:
        while not self.allowed.wait(0.2):
            if self.context.failure.cancel.is_set() or self.context.queue.is_settled:
                return False
            self._pause()
        return True

    def _pause(self) -> None:
        """Give up the session while there is nothing to store, if others wait for it."""
        if is_session_wanted(self._options):
            self._drop(politely=True)

    def _carry(self, pending: list[FileTransfer]) -> None:
        """Store every file of the batch, trying again over new sessions as often as is allowed.

        After a failure without progress one goes alone, then two, and so on: to see which one it is due to.
        """
        (retry := self._retry).begin()
        interrupted: list[FileTransfer] = []  # what of them has arrived is not known yet
        settled, at_once = _arrived(pending), len(pending)
        while pending:
            self._was_open = False
            files, some, rest = len(pending), pending[:at_once], pending[at_once:]
            try:
                for file in [each for each in interrupted if each in some]:
                    self._rescue(file, some)
                    interrupted.remove(file)
                self._store(some)
                retry.progressed()
                interrupted += some  # behind a refused file streams have taken what nobody stored
                pending[:], at_once = some + rest, 2 * at_once
            except (AuthenticationError, ConnectionLost, TransferTimeout) as error:
                self._drop()
                pending[:] = some + rest
                is_further = not self._ever_opened and (
                    self._number > 0 or self.context.events.admitted.is_set()
                )
                if is_further or isinstance(error, SessionsFull):
                    self._give_lane_up(pending, error)
                    return
                is_less, arrived = len(pending) < files, _arrived(pending)
                if is_less or arrived > settled:
                    retry.progressed()
                elif self._was_open and len(some) > 1:
                    retry.begin()
                    at_once = 1
                # What a marker claimed may be gone, and come again: only more than ever before is progress.
                settled = arrived if is_less else max(settled, arrived)
                is_one = self._was_open and len(some) == 1 and self.context.queue.listed_files > 1
                if is_one and retry.may_give_up(error):
                    self.context.supervisor.given_up(pending.pop(0), error)
                    settled = _arrived(pending)
                elif pending:
                    retry.again(error)
                    self.context.supervisor.note(f"trying again after: {error}")
                interrupted = [each for each in pending if each in interrupted or each in some]

    def _give_lane_up(self, pending: list[FileTransfer], error: MpxError) -> None:
        """Leave the files to the other lanes: this server admits no more sessions than there are."""
        if not isinstance(error, SessionsFull):  # else it was noted
            self.context.supervisor.note(f"no further session with {self.location.host}: {error}")
        self.gone = True
        for file in reversed(pending):
            self.context.queue.put_again(file)
        raise Interrupted("lane given up")

    def _rescue(self, file: FileTransfer, pending: list[FileTransfer]) -> None:
        """Find out what of an interrupted file has arrived, so that only the rest is sent again.

        One that is there whole, or cannot be read any more, leaves `pending`. Raises ConnectionLost or
        TransferTimeout when the server cannot be asked.
        """
        try:
            if not file.is_small or file.arrived_bytes or (file.sent_whole and file.listed_bytes is not None):
                self.context.supervisor.prove(file)
        except SourceError as error:
            pending.remove(file)
            self.context.supervisor.given_up(file, error)
        else:
            if file.redo_missing() == 0 and file.sent_whole and file.size_bytes:
                pending.remove(file)
                self.context.supervisor.whole(file)
            file.sent_whole = False

    # --- one batch -----------------------------------------------------------------------------------

    def _store(self, pending: list[FileTransfer]) -> None:
        """Store the files; those that are done leave the list. Raises ConnectionLost, TransferTimeout."""
        session = self._open_session()
        if self._channel is not None and self._channel.is_deserted:
            self._leave_port(politely=True)  # nothing could begin the next transfer there
        if self._channel is None:
            self._channel = UploadDataChannel(passive_address(session), self.context, self.congestion)
        channel = self._channel
        transfers: list[Transfer] = []
        began_s, todo_bytes = time.monotonic(), sum(file.todo_bytes for file in pending)
        try:
            self._begin(session, channel, pending, transfers)
            for transfer in transfers:
                error = self._complete(session, channel, transfer)
                if error is not None and (error.may_retry or isinstance(error, NoSpace)):
                    raise error
                pending.remove(transfer.file)
                if error is not None:
                    self.context.supervisor.given_up(transfer.file, error)
                    return  # the others of the batch start anew
                self.context.supervisor.whole(transfer.file)
            self._size.measured(todo_bytes / (time.monotonic() - began_s), session.rtt_s or 0.0)
        finally:
            if any(transfer.file in pending for transfer in transfers):
                self._drop()  # no stream reads from these files any more
            for transfer in transfers:
                transfer.file.sent_whole = transfer.file in pending and transfer.is_complete
                transfer.file.close()

    def _begin(
        self,
        session: Session,
        channel: UploadDataChannel,
        pending: list[FileTransfer],
        transfers: list[Transfer],
    ) -> None:
        """Open the files and have the server store them; what cannot be opened is given up."""
        lines = []
        for file in list(pending):
            telnet_escape.learn(session, file.partial)
            name = session.name(file.partial)
            try:
                transfers.append(self._open(file, channel))
            except SourceError as error:
                pending.remove(file)
                self.context.supervisor.given_up(file, error)
                continue
            channel.add(transfers[-1])
            lines.append(command("ESTO", "A", 0, name) if file.arrived_bytes else command("STOR", name))
        session.send(*lines)

    def _open(self, file: FileTransfer, channel: UploadDataChannel) -> Transfer:
        """Open a source; raises SourceError."""
        try:
            fd = file.open(file.source, os.O_RDONLY)
        except OSError as error:
            raise local_error(error, file.source, writing=False) from None
        try:
            return Transfer(file, fd, lambda: channel.is_closed or self.context.failure.cancel.is_set())
        except BaseException:
            file.close()
            raise

    def _complete(self, session: Session, channel: UploadDataChannel, transfer: Transfer) -> MpxError | None:
        """See a transfer to its end; return what kept it from that."""
        reply = self._await(session, channel, transfer)
        file, broken = transfer.file, channel.broken_in(transfer)
        if reply.is_ok and transfer.ends.announced and not broken and transfer.is_complete:
            channel.forget(transfer)
            file.all_landed()
            self._size.succeeded()
            return None
        self._size.failed()
        refusal = self._refusal(session, reply, file)
        self._drop()
        if broken and (refusal.may_retry or not broken.may_retry):
            return broken  # the server's word counts only where it says more than that
        return refusal

    def _refusal(self, session: Session, reply: Reply, file: FileTransfer) -> MpxError:
        if reply.is_ok:
            return ConnectionLost(f"{session.peer} ended the transfer of {file.final} before its end")
        return cannot_store(reply, session.peer, file.final, file.partial)

    def _await(self, session: Session, channel: UploadDataChannel, transfer: Transfer) -> Reply:
        """Keep the right number of streams until the server says that the file is complete."""
        watch = UploadWatch(self.context.options.timeout_s, session.rtt_s or 0.0)
        broken_s: float | None = None
        was_accepted = False
        # The first transfer begins with its first connection. Later ones begin with those that there are;
        # until then a stock server (globus_ftp_control_data.c) loses its listener to a new connection.
        has_begun = transfer.number == 0
        if has_begun and not channel.broken:
            channel.adjust(transfer, self.target)
        while True:
            if self.context.failure.cancel.is_set():
                raise Interrupted("stopped")
            reply = session.poll_reply(TICK_S)
            if reply is not None and not reply.is_preliminary:
                return reply
            if reply is not None and reply.code == 111:
                if marked(transfer.file, reply):
                    watch.heard()
            elif reply is not None:
                has_begun = True
                if not reply.is_marker and not was_accepted:
                    was_accepted = True
                    watch.heard()
            # What follows is not left to silence: a server can send preliminary replies without end.
            if channel.broken:
                broken = channel.broken_in(transfer)
                broken_s = broken_s or time.monotonic()
                is_late = time.monotonic() - broken_s > VERDICT_S
                if broken and not broken.may_retry and (reply is None or is_late):
                    return Reply(426, (str(broken),))
                if is_late:
                    raise broken or ConnectionLost(str(channel.broken))
            elif channel.refused and channel.refusals >= CONNECT_FAILURES and not transfer.ends.taking_part:
                raise channel.refused
            else:
                if has_begun:
                    channel.adjust(transfer, self.target)
                watch.look(channel, transfer)

    # --- the session ---------------------------------------------------------------------------------

    def _open_session(self) -> Session:
        if self._session is None:
            self._session = session = open_session(self.location, self._options)
            setup = [command("MODE", "E"), command("TREV", "RESTART", 1), command("TREV", "PERF", 1)]
            mode = session.pipeline(setup)[0]
            if not mode.is_ok:
                raise ConnectionLost(f"{session.peer} refuses MODE E: {mode.reason}")
            self._ever_opened = True
            self.context.events.admitted.set()
        self._was_open = True
        return self._session

    def _drop(self, *, politely: bool = False) -> None:
        """Give up the session and its streams."""
        self._leave_port(politely=politely and not self.context.failure.cancel.is_set())
        if self._session:
            self._session.close()
        self._session = None

    def _leave_port(self, *, politely: bool) -> None:
        channel = self._channel
        if channel is None:
            return
        if politely:
            channel.leave()
        else:
            channel.cut()
        with self._counting:
            ended = {path: each.none_open() for path, each in channel.totals().items()}
            self._past = summed(self._past, ended)
            self._channel = None


def _arrived(files: Sequence[FileTransfer]) -> int:
    """Return how many bytes of these files have arrived, as far as it is known."""
    return sum(file.arrived_bytes for file in files)
