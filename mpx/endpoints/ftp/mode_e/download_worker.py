"""Downloads in MODE E, the workers: each has the next partial retrieve queued before the last one ends.

The server cannot add connections to a running retrieve, so the number of streams changes by sessions:
a further one is opened beside the others, an unneeded one is not fed any more. Only when there are as
many sessions as allowed does each get more connections, at most half of them at a time.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mpx.endpoints.ftp.mode_e.certain_parts import are_in_vain
from mpx.endpoints.ftp.mode_e.contradictions import Contradictions
from mpx.endpoints.ftp.mode_e.download_session import DownloadSession
from mpx.endpoints.ftp.mode_e.download_watch import DownloadWatch, Needless
from mpx.endpoints.ftp.mode_e.mode_e_worker import ModeEWorker
from mpx.endpoints.ftp.mode_e.read_ahead import AT_FIRST, FIRST_PIECE, PIECE_S, ReadAhead
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve, RetrieveRefused, SentTooMuch
from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.session_pool import is_session_wanted
from mpx.engine.carrier import SHORT_BYTES, CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Pending, Piece, RangeScheduler, Taker
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.source_change import end_proof
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, InboundBlocked, MpxError, OffsetsUnproven, UsageError
from mpx.files.local_error import local_error
from mpx.location import Location

MOST_AHEAD = 64  # retrieves
TICK_S = 0.02
LEAVE_S, LOGINS = 1.0, 2  # and that many logins: what takes longer is asked for again, elsewhere
MOST_FRUITLESS = 2
QUIET_S = 0.2  # and a round trip: who brings nothing new for so long is not waited for, if not needed, ...
SILENT_S = 1.0  # ... nor for so long, if some of what it brought is to be brought again


class DownloadWorker(ModeEWorker):
    """Retrieves pieces of files."""

    retried = (*SessionWorker.retried, UsageError)  # one for want of a port to listen on may be one too many

    def __init__(
        self,
        number: int,
        location: Location,
        options: SessionOptions,
        context: CarrierContext,
        scheduler: RangeScheduler,
        path: str,
        others: Callable[["DownloadWorker"], Sequence["DownloadWorker"]],
        may_switch: Callable[[bool], bool],
    ) -> None:
        """`path`: which its connections take. `others`: all workers but this one.

        `may_switch`: whether this session may change its connections now, as not all do at once; told True:
        by another session.
        """
        super().__init__("download", number, location.host, context)
        self.path = path
        # The carrier's decisions (see SessionWorker):
        self.target = 0  # connections; 0: do not take anything
        self.congestion = context.streams.congestion_of(path) or ""  # of the server; empty: as it likes
        self._renewals = 0  # how often new connections were asked for; counted by the control loop's thread
        # Replaced by this thread, with `guard` held where counters change hands; others may use it.
        self.session: DownloadSession | None = None
        # This thread's own:
        self._location = location
        self._options = replace(options, waits_for_turn=number == 0)  # one worker is enough
        self._scheduler = scheduler
        self._others = others
        self._may_switch = may_switch
        self._contradictions = Contradictions(context, scheduler, self._describe)
        self._watch = DownloadWatch(
            self.host, options.timeout_s, self._brought_by_others, context.events.inbound.is_set
        )
        self._ahead = ReadAhead(SHORT_BYTES if context.streams.is_short else FIRST_PIECE)
        self._is_between = False  # it has left a session, and the next has no connections yet
        self._login_s = 0.0  # how long it took to open the session
        self._renewed = 0  # `_renewals` when the connections that there are were asked for
        self._most_ahead = MOST_AHEAD
        self._fruitless = 0  # sessions in a row that were lost once they had proven themselves

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker."""
        return {self.path: self.session.totals()} if self.session else {}

    def silent_s(self, path: str) -> float | None:
        """See SessionWorker."""
        session = self.session
        is_waiting = path == self.path and session is not None and session.is_busy
        return self._watch.silent_s() if is_waiting else None

    def renew(self, path: str) -> None:
        """See SessionWorker. They serve from the next retrieve on."""
        self._renewals += path == self.path

    @property
    def has_begun(self) -> bool:
        """Whether it has asked for connections; from any thread."""
        return self._ahead.connections > 0

    @property
    def is_changing(self) -> bool:
        """Whether other connections than those that carry data are wanted, or none; from any thread."""
        session, target = self.session, self.target
        if session is None:
            return False
        if not target:
            return session.is_busy  # it brings what it was asked for, and has no more then
        return session.is_changing or 0 != session.connections != target

    @property
    def is_switching(self) -> bool:
        """Whether nothing has come yet over its newest connections; from any thread."""
        session = self.session
        return self._is_between if session is None or not session.connections else session.is_switching

    def under_way(self) -> list[Pending]:
        """Return the retrieves that this session still has to bring, and when it will have."""
        session = self.session
        return session.pending(self._ahead.goodput or AT_FIRST) if session else []

    def cut(self) -> None:
        """See SessionWorker."""
        session = self.session
        if session:
            session.cut()

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Feed the session and take what it brings: see SessionWorker."""
        try:
            if self.session:
                self.session.check()
            self._feed()
            session = self.session
            if session and not session.retrieves:
                self.pause()
            if session is None or session is not self.session:
                return False
            session.hear(TICK_S)
            self._reap(session)
            if session is self.session and self._watch.is_due(session):
                self._watch.look(session, self._totals())
                if self._is_overtaken(session):
                    self.drop()
                    return False  # others may be quicker to bring what was lost
        except Needless:
            self.drop()
        return True

    @property
    def has_part(self) -> bool:
        """See ModeEWorker."""
        return self.target > 0

    def connect_early(self) -> None:
        """See ModeEWorker."""
        if self.session is not None and self.session.has_ticket and self.target == 1:
            self._connect(self.session, 1)

    def pause(self) -> None:
        """See SessionWorker."""
        if is_session_wanted(self._options):
            self.drop()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Raises InboundBlocked and OffsetsUnproven: then the copy goes on another way."""
        if isinstance(error, InboundBlocked):
            raise error
        session, is_settled = self.session, isinstance(error, RetrieveRefused)
        if isinstance(error, RetrieveRefused):
            if error.may_be_exact:  # of other sessions, too, until each of them has been told
                self._scheduler.try_exactly(error.file)
            else:
                self._scheduler.give_up(error.file, error.why)
        if isinstance(error, SentTooMuch) and session:
            is_settled = self._contradictions.sent_too_much(session, error)
        files = session.files if session else ()
        self.drop()
        if not is_settled:
            self._refuse_fruitless(session, error)
        return Lost(files, is_settled or (session is not None and session.believed_bytes > 0))

    def isolate(self) -> None:
        """See SessionWorker."""
        self._most_ahead = 1

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._scheduler.give_up(file, error)

    def _refuse_fruitless(self, session: DownloadSession | None, error: MpxError) -> None:
        """Raise OffsetsUnproven after several sessions that were lost once proven, before more arrived.

        Servers that open connections for one retrieve only do so.
        """
        fruitless = session is not None and session.brought_only_ends
        self._fruitless = self._fruitless + 1 if fruitless else 0
        if self._fruitless >= MOST_FRUITLESS:
            raise OffsetsUnproven(f"the server ends sessions before any partial retrieve completes: {error}")

    # --- feeding -------------------------------------------------------------------------------------

    @property
    def _retrieves(self) -> Sequence[PartialRetrieve]:
        return self.session.retrieves if self.session else ()

    def _brought_by_others(self) -> int:
        return sum(each.new_bytes for other in self._others(self) for each in other.totals().values())

    def _totals(self) -> StreamTotals:
        return self.totals().get(self.path, StreamTotals())

    def _feed(self) -> None:
        """Queue retrieves until enough is ahead."""
        target = self.target  # others change it meanwhile
        self._leave_early(target)
        room = self._ahead.most_bytes - self._waiting_bytes()
        while target and room > 0 and len(self._retrieves) < self._most_ahead:
            piece = self._next_piece()
            if piece is None:
                break
            if piece.start == piece.end and not piece.file.is_streamed:
                self._scheduler.make_empty(piece.file)
            elif self._retrieve(piece, target):
                room -= piece.end - piece.start
        if self.session:
            self.session.flush()

    def _waiting_bytes(self) -> int:
        """Return how many bytes are to come, as far as it matters: the first retrieve comes, others wait."""
        undone = [retrieve for retrieve in self._retrieves if not retrieve.is_done]
        return sum(each.size_bytes for each in undone[1:]) + sum(each.left_bytes for each in undone[:1])

    def _leave_early(self, target: int) -> None:
        """Drop a session that is to send otherwise, if its retrieves take long beside a login.

        Where it is to have fewer connections, those that there are do no harm meanwhile. Where sessions are
        few others would take its place.
        """
        session = self.session
        if session is None or not 0 < session.connections <= target or is_session_wanted(self._options):
            return
        if not self._is_due(session, target) and session.congestion == self.congestion:
            return
        left_s = self._ahead.takes_s(session.left_bytes)
        if left_s > LEAVE_S + LOGINS * self._login_s and self._may_switch(True):
            self.drop()
            self._is_between = True

    def _is_due(self, session: DownloadSession, connections: int) -> bool:
        return session.connections != connections or self._renewals != self._renewed or session.is_worn

    def _next_piece(self) -> Piece | None:
        gate, scheduler = self.context.controls[self.path].gate, self._scheduler
        allowed = gate.take(self._ahead.piece_bytes)
        if not allowed:
            return None
        piece = scheduler.take(allowed)
        if piece is None:
            gate.give_back(allowed)
            return None if gate.is_shut else self._take_over(allowed)
        gate.give_back(allowed - (piece.end - piece.start))
        return piece

    def _take_over(self, limit: int) -> Piece | None:
        """Return a part of what comes later at other workers than it would here; None if there is none.

        So much ahead that the server always has something to send, and no more: the others send theirs, too.
        """
        ahead, is_idle = self._ahead, not self._retrieves
        waits_s = ahead.takes_s(self._waiting_bytes())
        is_enough = not ahead.goodput or waits_s >= max(PIECE_S, 2 * ahead.rtt_s)
        if not is_idle and (is_enough or not self.context.queue.is_listed):
            return None
        if self.session is None:
            waits_s += self._login_s * LOGINS  # one, and as much until connections carry data
        late = [each for other in self._others(self) for each in other.under_way()]
        taker = Taker(waits_s, ahead.goodput or AT_FIRST, is_idle)
        return self._scheduler.take_over(late, limit, taker)

    def _is_overtaken(self, session: DownloadSession) -> bool:
        """Whether nothing is left to do but to wait for what a session sends in vain.

        Where some of what it brought would be lost, it must be silent, and that less than what it sends.
        """
        if self._scheduler.has_more or not are_in_vain(session.retrieves):
            return False
        left_bytes, silent_s = session.left_bytes, self._watch.silent_s()
        if lost := session.lost_bytes:
            return silent_s > SILENT_S and lost < left_bytes
        soon_s = max(TICK_S, self._ahead.rtt_s)
        return left_bytes / (self._ahead.goodput or AT_FIRST) > soon_s or silent_s > QUIET_S + soon_s

    def _retrieve(self, piece: Piece, connections: int) -> bool:
        """Queue a piece, on this number of connections; False when it is not needed any more."""
        file = piece.file
        try:
            session = self.open_session()
            self._connect(session, connections)
            if session.congestion != self.congestion:
                session.congest(self.congestion)
        except BaseException:
            self._scheduler.give_back(file, piece.start, piece.end)
            raise
        exact, size_bytes = self._scheduler.asks_exactly(file), file.size_bytes
        parts = [(piece.start, piece.end)]
        if not exact and not file.is_streamed:
            proof = end_proof(piece.start, size_bytes), size_bytes
            needed = session.proofs_needed(piece.start, is_last=piece.end == size_bytes)
            parts = [proof] * needed + parts
        for start, end in parts:
            try:
                fd = file.open(file.partial, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                if not file.is_claimed:  # else another session has brought what this one was to take over
                    self._scheduler.give_up(file, local_error(error, file.final, writing=True))
                return False
            session.retrieve(file, start, end, fd, exact=exact)
        return True

    def _connect(self, session: DownloadSession, connections: int) -> None:
        """Change the number of connections, if another is wanted and it is this session's turn.

        Where no port is free to listen on, the connections stay; raises UsageError if there are none yet
        in all the copy, ConnectionLost if there are elsewhere.
        """
        before, renewals = session.connections, self._renewals  # more may be asked for meanwhile
        if before and not (self._is_due(session, connections) and self._may_switch(False)):
            return
        try:
            session.connect(connections)
        except UsageError as error:
            if before:
                self.context.supervisor.note(f"the connections to {self.host} stay as they are: {error}")
            elif self.context.events.inbound.is_set():
                raise ConnectionLost(str(error)) from None  # others use them, and will give them back
            else:
                raise
            return
        self._ahead.connected(connections)
        self._renewed = renewals
        self.opened()

    # --- reaping -------------------------------------------------------------------------------------

    def _reap(self, session: DownloadSession) -> None:
        retrieve = None
        for retrieve in session.reap():
            file = retrieve.file
            if session.believed_bytes:  # proofs alone are no progress, and what is isolated stays so
                self._most_ahead = min(2 * self._most_ahead, MOST_AHEAD)
            if not self._contradictions.settle(session, retrieve):
                file.close()
            elif not self._scheduler.let_go(file):
                # Some of it may have come damaged, and is to come again, or twice in place of the rest.
                self._scheduler.give_back(file, retrieve.start, retrieve.end)
        if retrieve is not None and self._ahead.is_due:
            self._ahead.passed(self._totals().bytes)

    # --- the session ---------------------------------------------------------------------------------

    def open_session(self) -> DownloadSession:
        """See SessionWorker."""
        if self.session is None:
            began_s = time.monotonic()
            self.session = DownloadSession(self._location, self._options, self.context, self.path)
            self.session.open()
            self._login_s = time.monotonic() - began_s
            self._ahead.rtt_s = self.session.rtt_s
            self._watch.begin()
        return self.session

    def _describe(self, name: str) -> FileInfo | None:
        """As Supervisor.describe; no other session may be admitted beside this one."""
        self.drop()
        return self.context.supervisor.describe(name)

    def drop(self) -> None:
        """See SessionWorker. What the session was to bring goes back to the scheduler."""
        self._is_between = False
        session = self.session
        if session is None:
            return
        left = session.close()
        with self.guard:
            self.retire(self.live_totals())
            self.session = None
        for retrieve in left:
            self._scheduler.give_back(retrieve.file, retrieve.start, retrieve.end)
            self._scheduler.let_go(retrieve.file)
