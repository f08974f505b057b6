"""One SFTP session that moves files: parts of a large one, many small ones at once."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mpx.endpoints.sftp.download import Download
from mpx.endpoints.sftp.jobs import Job, Mover, Moving, close_handle
from mpx.endpoints.sftp.lanes import LaneOptions, SftpLanes
from mpx.endpoints.sftp.program_sending import ProgramSending
from mpx.endpoints.sftp.request_window import GOODPUT_S, RequestWindow
from mpx.endpoints.sftp.session import (
    HANDLES_LEFT,
    MOST_UNTOLD,
    STOP_INTERVAL_S,
    SftpSession,
)
from mpx.endpoints.sftp.upload import Upload
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.errors import MpxError, TransferTimeout

SMALLEST_PIECE = 4 * 1024 * 1024  # no file is cut smaller: it would be opened by many
PIECE_S = 2.0  # a piece lasts so long
LARGEST_PIECE = 64 * 1024 * 1024
MOST_FILES = 256  # open at once, for one session
KEPT_S = 0.25  # of what was given, once nothing else is to be had, so that all end together
LEAST_LEFT = 256 * 1024  # that is worth being moved by another session


class SftpWorker(SessionWorker):
    """Carries piece after piece, in one direction."""

    def __init__(
        self,
        number: int,
        pool: SftpLanes,
        options: LaneOptions,
        context: CarrierContext,
        scheduler: RangeScheduler,
        *,
        upload: bool,
        whole_files: bool,
    ) -> None:
        super().__init__("sftp", number, pool.name, context)
        self.target = 0  # 1: take pieces; the carrier's decision (see SessionWorker)
        # That connections which send are to have, in place of what they began with; the carrier's decision:
        self.congestion: str | None = None
        self._session: SftpSession | None = None  # replaced by this thread; others only cut it
        # This thread's own:
        self._pool, self._whole_files = pool, whole_files
        self._options = LaneOptions(
            options.connect_timeout_s,
            options.timeout_s,
            options.stop,
            waits_for_turn=number == 0,
            moves_data=number > 0,  # the first begins at once, in the connection that is there
        )
        self._window = RequestWindow(pool.least_window_bytes, shares_files=not whole_files)
        self._moving = Moving(context, scheduler, pool.name, self._window)
        self._mover: Mover = (
            Upload(self._moving, self._tend, whole_files=whole_files) if upload else Download(self._moving)
        )
        self._sending = ProgramSending(context) if upload else None  # where a program of ours sends
        self._jobs: list[Job] = []
        self._most_files = MOST_FILES
        self._most_open = MOST_FILES  # as far as the server has shown how many it admits
        self._before_bytes = 0  # that had arrived when the session was opened, or brought something last
        self._takes_from_s = 0.0  # more, so that others take first what it has given back

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker."""
        streams, moved_bytes = int(self._session is not None), self._moving.moved_bytes
        told = self._sending.totals if self._sending else StreamTotals()
        return {DEFAULT_PATH: replace(told, streams=streams, bytes=moved_bytes)}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. The connections are those of ssh."""

    def cut(self) -> None:
        """See SessionWorker."""
        if session := self._session:
            session.abort()

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """See SessionWorker."""
        if not self._jobs and not (self.target and self._has_work):
            return False
        session = self.open_session()
        self._take(session)
        if self._jobs:
            self._tend(session)
        if not self._jobs and not session.outstanding:
            return False
        ready, self._moving.touched = list(self._moving.touched), {}
        has_room = self._mover.advance(session, ready)
        self._moving.touched.update(
            dict.fromkeys(job for job in ready if not job.is_left and (job.todo or job.has_failed))
        )
        session.pump(0.0 if has_room else STOP_INTERVAL_S)
        self._settle(session)
        if self._window.measure(time.monotonic(), self._moving.moved_bytes, session.rtt_s or 0.0):
            self._share_rest()
        if self._moving.new_bytes > self._before_bytes:
            self._before_bytes = self._moving.new_bytes
            self.retry.progressed()
        return True

    @property
    def _has_work(self) -> bool:
        return self._moving.scheduler.has_more and self.context.queue.wait_begun(0.0)

    def _take(self, session: SftpSession) -> None:
        """Take what keeps the session busy for some time."""
        handles = (session.limits.handles or MOST_UNTOLD + HANDLES_LEFT) - HANDLES_LEFT
        most = max(1, min(self._most_files, self._most_open, handles))
        if len(self._jobs) >= most or session.is_outdated:
            return
        if self._jobs and time.monotonic() < self._takes_from_s:
            return
        todo_bytes = sum(job.todo_bytes for job in self._jobs if job.todo)
        while self.target and todo_bytes < self._window.bytes and len(self._jobs) < most:
            pieces = self._pieces()
            if not pieces:
                return
            for piece in pieces:
                self._give(session, piece)
                todo_bytes += piece.end - piece.start

    def _pieces(self) -> Sequence[Piece]:
        scheduler = self._moving.scheduler
        if self._whole_files:
            return scheduler.take_rest()
        piece = scheduler.take(self._piece_bytes)
        return [] if piece is None else [piece]

    @property
    def _piece_bytes(self) -> int:
        least = LEAST_LEFT if self._window.goodput else SMALLEST_PIECE  # a slow one takes less
        return int(min(max(self._window.goodput * PIECE_S, least), LARGEST_PIECE))

    def _give(self, session: SftpSession, piece: Piece) -> None:
        """Have a piece moved, with others of its file where that is open."""
        for job in () if piece.file.is_small else self._jobs:  # small ones are not divided
            if job.file is piece.file and not (job.is_closing or job.has_failed):
                job.give(piece.start, piece.end)
                self._moving.touched[job] = None
                return
        begun = self._mover.begin(session, piece.file)
        if begun is not None:
            begun.give(piece.start, piece.end)
            begun.is_alone = not self._jobs
            self._jobs.append(begun)

    def _settle(self, session: SftpSession) -> None:
        """End what is done, or cannot be."""
        for job in list(self._moving.touched):
            if job.is_left:  # and something of it was still to be answered
                continue
            if self._mover.is_done(job) and not job.has_failed:
                self._mover.finish(session, job)
                if not job.has_failed:
                    self._leave(job)
                    self._most_files = MOST_FILES
                    self._mover.let_go(job)
                    self.retry.progressed()
                    continue
            if job.was_one_too_many and not job.is_alone:
                self._most_open = max(1, sum(each.handle is not None for each in self._jobs))
                self._leave(job)
                self._give_back(job)
            elif job.has_failed:
                error = self._mover.failure(session, job)
                self._end(session, job)
                self._moving.scheduler.give_up(job.file, error)
            elif job.file.is_claimed and job.file.is_given_up:  # by another session
                self._end(session, job)

    def _end(self, session: SftpSession, job: Job) -> None:
        self._leave(job)
        close_handle(session, job)
        job.file.close()

    def _leave(self, job: Job) -> None:
        """Do nothing more with a file in this session."""
        job.is_left = True
        self._jobs.remove(job)
        self._moving.touched.pop(job, None)

    def _share_rest(self) -> None:
        """Leave to others what this session would bring late: it has become slower, or they have nothing."""
        if self._whole_files or not self._window.goodput:
            return
        kept_s = PIECE_S if self._moving.scheduler.has_more else KEPT_S
        more = sum(job.todo_bytes for job in self._jobs) - int(self._window.goodput * kept_s)
        for job in reversed(self._jobs):
            if more < LEAST_LEFT:
                return
            if job.todo and not (job.file.is_small or job.is_stream):
                start, end = job.cut_off(more)
                more -= end - start
                self._moving.scheduler.give_back(job.file, start, end)
                self._takes_from_s = time.monotonic() + GOODPUT_S

    # --- what becomes of it when the session is lost --------------------------------------------------

    def pause(self) -> None:
        """See SessionWorker."""
        if self._pool.is_wanted and not self._jobs:
            self._let_go()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker."""
        was_open = self._session is not None
        self.drop()
        self._window.goodput = 0.0 if isinstance(error, TransferTimeout) else self._window.goodput
        if not was_open:
            return Lost([], progressed=False)
        progressed = self._moving.new_bytes > self._before_bytes
        return Lost(list(dict.fromkeys(job.file for job in self._jobs)), progressed)

    def isolate(self) -> None:
        """See SessionWorker."""
        self._most_files = 1

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        for job in [job for job in self._jobs if job.file is file]:
            self._leave(job)
            file.close()
        self._moving.scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:  # noqa: ARG002  all is tried again
        """See SessionWorker."""
        jobs, self._jobs, self._moving.touched = self._jobs, [], {}
        for job in jobs:
            if job.file.is_whole and job.file.size_bytes:  # all was acknowledged; only its end was not
                self._mover.let_go(job)
            else:
                self._give_back(job)

    def _give_back(self, job: Job) -> None:
        """Have a file moved later, or by others, as far as it has not arrived."""
        file, scheduler = job.file, self._moving.scheduler
        file.close()
        if file.is_claimed:
            return
        if self._whole_files:
            for start, end in job.taken:
                file.give_back(start, end)
            self.context.queue.put_again(file)
        elif file.is_whole and not file.is_streamed:  # an empty one, that may not have been made
            self.context.queue.put_again(file)
        elif file.is_streamed:
            scheduler.give_back(file, 0, 0)
        else:
            for start, end in job.taken:
                scheduler.give_back(file, start, end)

    # --- the session ---------------------------------------------------------------------------------

    def open_session(self) -> SftpSession:
        """See SessionWorker."""
        if self._session is not None and self._session.is_outdated and not self._jobs:
            self.drop()
        if self._session is None:
            session = self._pool.open(self._options)
            self._moving.asked = self._moving.asked_bytes = 0
            self._window.restart()
            self._before_bytes = self._moving.new_bytes
            self._session = session
            if session.rtt_s is None:
                session.measure_rtt()
            self._tend(session)  # what is lost counts from here
            self.opened()
        return self._session

    def _tend(self, session: SftpSession) -> None:
        """Have what sends do so as the carrier decides, and watch it."""
        if self._sending:
            congestion = self.congestion or self.context.streams.congestion_of(DEFAULT_PATH)
            self._sending.use(session, congestion)
            self._sending.watch(session, self._moving.moved_bytes)

    def _let_go(self) -> None:
        """Give the session to others; no request of it is unanswered."""
        session = self._session
        if session is None:
            return
        session.drain()
        self._session = None
        self._forget_sending()
        self._pool.give_back(session)

    def drop(self) -> None:
        """See SessionWorker."""
        session, self._session = self._session, None
        self._forget_sending()
        if session:
            session.close()

    def _forget_sending(self) -> None:
        if self._sending:
            self._sending.lost()
