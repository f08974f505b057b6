"""A thread that has one file after the other copied by gfal2, in a process of its own."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace

from mpx.choices import NEVER
from mpx.endpoints.gfal.lanes import GfalLanes
from mpx.endpoints.gfal.meaning import Trouble, trouble
from mpx.endpoints.gfal.places import GfalPlaces
from mpx.endpoints.gfal.process import GfalProcess
from mpx.endpoints.gfal.settings import JobState, dumped
from mpx.endpoints.gfal.watched_job import WatchedJob, error_of
from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.session import SftpSession, request
from mpx.endpoints.sftp.wire import PacketKind
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, Interrupted, IsThere, MpxError, UsageError
from mpx.text import shown

REMOVE_S = 10.0  # that a server has to remove what is left, when nobody waits for more


class GfalWorker(SessionWorker):
    """Carries whole files."""

    def __init__(
        self,
        number: int,
        lanes: GfalLanes,
        places: GfalPlaces,
        options: LaneOptions,
        context: CarrierContext,
        scheduler: RangeScheduler,
    ) -> None:
        """`lanes`: of the destination, where that is a server, else of the source."""
        super().__init__("gfal", number, places.hosts, context)
        self.target = 0  # 1: take files; the carrier's decision (see SessionWorker)
        self._lanes, self._places, self._options, self._scheduler = lanes, places, options, scheduler
        self._session: SftpSession | None = None
        self._file: FileTransfer | None = None  # in hand
        self._left: FileTransfer | None = None  # the last of which an attempt may have left something
        # Guarded by `guard`:
        self._before_bytes = 0  # of files before
        self._file_bytes = 0

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker."""
        streams = int(self._file is not None)
        return {DEFAULT_PATH: StreamTotals(streams=streams, bytes=self._before_bytes + self._file_bytes)}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. The connections are gfal2's."""

    def cut(self) -> None:
        """See SessionWorker. It looks at the failure twice a second, and has gfal2 end what it does."""

    # --- the loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """See SessionWorker. Where the copy ends before its end, what was under way is removed."""
        super().run()
        if self._left is not None and self.context.failure.cancel.is_set():
            self._remove(self._left)

    def step(self) -> bool:
        """See SessionWorker."""
        piece = self._scheduler.take_file() if self.target else None
        if piece is None:
            return False
        self._file = piece.file
        self._carry(piece.file)
        self._file = None
        self.retry.progressed()
        return True

    def _carry(self, file: FileTransfer) -> None:
        session = self.open_session()
        assert isinstance(session.process, GfalProcess)
        watched = WatchedJob(session, self.context.options.timeout_s, self.context.failure.cancel.is_set)
        self._left = file
        try:
            with self._places.opened(file, session.process) as (told, fd):
                order = replace(told, is_new=self._is_new(file))
                state = watched.run(
                    "copy",
                    dumped(order),
                    lambda state: self._moved(file, state, fd),
                    on_stop=lambda: self._remove_here(file),
                )
                stored_bytes = file.size_bytes if fd is None else os.fstat(fd).st_size
            names = file.source, file.partial, file.final
            if order.is_new and trouble(state.code, state.message, names) is Trouble.THERE:
                raise IsThere(file.final)
            if state.code:
                what, default = f"copy {shown(file.source)}", self._places.default_error
                raise error_of(state, self.host, what, names=names, default=default)
        except MpxError as error:
            if error.may_retry or isinstance(error, Interrupted):
                raise
            self.drop()  # it may be under way still
            self._remove(file)
            self._scheduler.give_up(file, error)
            return
        self._left = None
        if state.how and self._places.is_between:
            self.context.supervisor.note(f"gfal2 has copied by {state.how!r} (in its words)")
        self._is_stored(file, stored_bytes)

    def _is_new(self, file: FileTransfer) -> bool:
        """Tell whether what has its final name now is to stay, as no attempt of ours has put it there."""
        was_stored, file.was_stored = file.was_stored or file.was_begun, True
        keeps = self.context.options.overwrite == NEVER and self._places.destination is not None
        return keeps and file.partial == file.final and not was_stored

    def _is_stored(self, file: FileTransfer, stored_bytes: int) -> None:
        """Take a file that gfal2 says is stored; others compare it."""
        listed = file.listed_bytes
        if listed is not None and stored_bytes != listed and not file.is_streamed:
            raise ConnectionLost(
                f"{self.host}: {stored_bytes} of {listed} bytes of {shown(file.source)} came"
            )
        file.landed(0, stored_bytes)
        with self.guard:
            self._before_bytes, self._file_bytes = self._before_bytes + stored_bytes, 0
        if file.is_streamed:
            self._scheduler.ended(file, stored_bytes)
        if file.claim_whole():
            self.context.supervisor.whole(file)

    def _moved(self, file: FileTransfer, state: JobState, fd: int | None) -> int:
        """Take how far a copy is; return what grows while anything moves."""
        if why := self._places.why_not_by(state.how):
            raise UsageError(why)
        passed = state.sent + state.received
        if fd is not None:
            there = os.fstat(fd).st_size
        elif self._places.is_between:
            there = max(state.size_bytes, state.received)
        else:
            there = max(state.size_bytes, state.sent)  # gfal2 tells nothing of most uploads
        with self.guard:
            self._file_bytes = min(max(self._file_bytes, there), file.listed_bytes or there)
        return there + passed + state.steps

    def _remove(self, file: FileTransfer) -> None:
        """Remove what is stored of a file, which cannot be continued, as far as it has a name of its own."""
        if self._places.destination is None:
            self._remove_here(file)
            return
        if file.partial == file.final:
            return
        options = LaneOptions(REMOVE_S, REMOVE_S, lambda: False)
        with contextlib.suppress(MpxError):
            session = self._lanes.open(options)
            try:
                session.ask([request(PacketKind.REMOVE, wire.name(file.partial))])
            finally:
                session.close()

    def _remove_here(self, file: FileTransfer) -> None:
        """Remove it where this host has it, which takes no time."""
        if self._places.destination is None and file.partial != file.final:
            with contextlib.suppress(OSError):
                file.written.remove()

    # --- the session ---------------------------------------------------------------------------------

    def open_session(self) -> SftpSession:
        """See SessionWorker."""
        if self._session is not None and self._session.has_ended:
            self.drop()
        if self._session is None:
            self._session = self._lanes.open(self._options)
            self.opened()
        return self._session

    def pause(self) -> None:
        """See SessionWorker. Nobody waits for its process."""

    def drop(self) -> None:
        """See SessionWorker."""
        session, self._session = self._session, None
        if session:
            session.close()

    def lost(self, error: MpxError, /) -> Lost:  # noqa: ARG002  all is lost with it
        """See SessionWorker."""
        was_open = self._session is not None
        self.drop()
        with self.guard:
            self._file_bytes = 0
        return Lost([self._file] if self._file and was_open else [], progressed=False)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._file = None
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A file is copied again only as often as --retries allows."""
        file, self._file = self._file, None
        if file is not None:
            self.carry_again(file, error, was_tried=True)
