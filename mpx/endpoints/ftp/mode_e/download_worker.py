"""Downloads in MODE E, the lanes: each feeds its session with partial retrieves, half a second ahead.

The server cannot add connections to a running retrieve, so the number of streams changes by sessions:
a further one is opened beside the others, an unneeded one is not fed any more. Only when there are as
many sessions as allowed does each get more connections, one session at a time.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from mpx.endpoints.ftp.mode_e.contradictions import Contradictions
from mpx.endpoints.ftp.mode_e.download_session import DownloadSession, RetrieveRefused
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve, SentTooMuch
from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.session_pool import SessionsFull, is_session_wanted
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.range_scheduler import SMALLEST_PIECE, Pending, Piece, RangeScheduler
from mpx.engine.retry import Retry
from mpx.engine.source_change import end_proof
from mpx.engine.stream import StreamTotals
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    InboundBlocked,
    Interrupted,
    MpxError,
    OffsetsUnproven,
    TransferTimeout,
    UsageError,
)
from mpx.files.local_error import local_error
from mpx.location import Location

AHEAD_S = 0.5  # queued at the server, or 3 RTT: a retrieve that is queued cannot be called back
PIECE_S = 0.2  # one retrieve lasts about so long, or 1 RTT
FIRST_PIECE = 512 * 1024
FIRST_AHEAD = 4 * 1024 * 1024  # at least, as streams that begin are soon faster than they were, ...
RAMP_S, RAMP_RTT = 2.0, 10.0  # ... but no more than lasts so long: another number of streams waits for it
LARGEST_PIECE = 256 * 1024 * 1024
MOST_AHEAD = 64  # retrieves
TICK_S = 0.02
MOST_FRUITLESS = 2
STALL_S = 5.0
SYNS_S = 8.0  # a connection beside others that is lost four times over: at 0, 1, 3 and 7 s
INBOUND_S = 10.0  # a server that has not connected to us by then never will


class _Needless(Exception):
    """All that the session was to bring has come another way; it is opened anew for what is next."""


class DownloadWorker(threading.Thread):
    """Retrieves pieces of files over one session, and over another when that is lost."""

    def __init__(
        self,
        number: int,
        location: Location,
        options: SessionOptions,
        context: CarrierContext,
        scheduler: RangeScheduler,
        path: str,
        others: Callable[["DownloadWorker"], list[Pending]],
        may_switch: Callable[[], bool],
    ) -> None:
        super().__init__(name=f"mpx-download-{number}", daemon=True)
        self.location = location
        self.context = context
        self.path = path  # that its connections take
        self.target = 0  # connections; 0: do not take anything
        self.gone = False  # the server lets no further session in, so others are to have its share
        self.goodput = 0.0  # bytes/s, smoothed
        self.congestion = (
            context.streams.congestion or ""
        )  # what the server is to send with; empty: as it likes
        self._number = number
        self._options = replace(options, waits_for_turn=number == 0)  # one lane is enough
        self._scheduler = scheduler
        self._others = others
        self._may_switch = may_switch  # so that not all sessions change their connections at once
        self._contradictions = Contradictions(context, scheduler, self._describe)
        self._session: DownloadSession | None = None
        self._renew = False
        self._most_ahead = MOST_AHEAD
        self._fruitless = 0  # sessions in a row that were lost once they had proven themselves
        self._past = StreamTotals()
        self._counting = threading.Lock()  # nothing is counted twice, or not at all, while it changes hands
        self._ever_opened = False
        self._measured = (time.monotonic(), 0)
        self._progress = (time.monotonic(), -1)
        self._rtt_s = 0.0

    # --- for the carrier -----------------------------------------------------------------------------

    def totals(self) -> dict[str, StreamTotals]:
        """Return the counters of all streams that there are and were, by path."""
        return {self.path: self._totals()}

    def _totals(self) -> StreamTotals:
        sums = StreamTotals()
        with self._counting:
            sums.add(self._past)
            if self._session:
                sums.add(self._session.totals())
        return sums

    def silent_s(self, path: str) -> float | None:
        """Return for how long nothing has come of what is under way; None where nothing is."""
        since, _ = self._progress
        return time.monotonic() - since if path == self.path and self._retrieves else None

    def renew(self) -> None:
        """Replace the connections, from the next retrieve on."""
        self._renew = True

    @property
    def is_switching(self) -> bool:
        """Whether new connections replace old ones and nothing has come over them yet."""
        session = self._session
        return session is not None and session.is_switching

    @property
    def is_changing(self) -> bool:
        """Whether what is under way comes over connections that further data will not use."""
        session = self._session
        return session is not None and session.is_changing

    def connections(self) -> list[socket.socket]:
        """Return those that are open."""
        session = self._session
        return session.open_connections() if session else []

    def under_way(self) -> list[Pending]:
        """Return the retrieves that this session still has to bring, and when it will have."""
        before, pending = 0, []
        for retrieve in list(self._retrieves):
            before += retrieve.missing().size
            pending.append(Pending(retrieve, before / max(self.goodput, 1.0)))
        return pending

    def cut(self) -> None:
        """Reset everything; the lane's thread ends soon."""
        session = self._session
        if session:
            session.cut()

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Retrieve until the pool is settled or the copy stops."""
        context = self.context
        retry = Retry(context.options.retries, context.failure.cancel)
        with context.failure.guard():
            while not context.queue.is_settled:
                if context.failure.cancel.is_set():
                    break
                try:
                    self._serve()
                except InboundBlocked:
                    raise
                except _Needless:
                    self._drop()
                except (AuthenticationError, ConnectionLost, TransferTimeout, UsageError) as error:
                    if isinstance(error, RetrieveRefused) and not (
                        error.may_be_exact and self._scheduler.try_exactly(error.file)
                    ):
                        self._scheduler.give_up(error.file, error.why)
                    session = self._session
                    settled = isinstance(error, RetrieveRefused)
                    if isinstance(error, SentTooMuch) and session:
                        settled = self._contradictions.sent_too_much(session, error)
                    files = session.files if session else []
                    self._drop()
                    if isinstance(error, SessionsFull):
                        self.gone = True
                        break
                    if not self._ever_opened and (self._number > 0 or context.events.admitted.is_set()):
                        context.supervisor.note(f"no further session with {self.location.host}: {error}")
                        self.gone = True
                        break
                    if not settled:
                        self._refuse_fruitless(session, error)
                    if settled or (session and session.believed_bytes):
                        retry.progressed()
                    elif len(files) > 1:
                        retry.begin()  # one file after the other, to see which one it is due to
                        self._most_ahead = 1
                    if len(files) == 1 and context.queue.listed_files > 1 and retry.may_give_up(error):
                        self._scheduler.give_up(files[0], error)
                    else:
                        retry.again(error)
                        context.supervisor.note(f"trying again after: {error}")
        self._drop()

    def _refuse_fruitless(self, session: DownloadSession | None, error: MpxError) -> None:
        """Raise OffsetsUnproven where sessions prove themselves again and again, and are lost before a part.

        So it is with servers that open connections for one retrieve only.
        """
        fruitless = session is not None and session.brought_only_ends
        self._fruitless = self._fruitless + 1 if fruitless else 0
        if self._fruitless >= MOST_FRUITLESS:
            raise OffsetsUnproven(f"no session brings more than the end of a file: {error}")

    def _serve(self) -> None:
        """Feed the session and reap what it brings; returns when there is nothing left for it."""
        context = self.context
        while not context.queue.is_settled:
            if context.failure.cancel.is_set():
                raise Interrupted("stopped")
            if self._session:
                self._session.check()
            self._feed()
            if self._session and not self._session.retrieves and is_session_wanted(self._options):
                self._drop()
            if session := self._session:
                session.hear(TICK_S)
                self._reap(session)
                if session is self._session:
                    self._watch(session)
            else:
                context.failure.cancel.wait(TICK_S)

    # --- feeding -------------------------------------------------------------------------------------

    @property
    def _retrieves(self) -> Sequence[PartialRetrieve]:
        return self._session.retrieves if self._session else ()

    def _feed(self) -> None:
        """Queue retrieves until half a second's worth, or three round trips', is ahead."""
        waiting = sum(retrieve.size_bytes for retrieve in self._retrieves if not retrieve.is_done)
        first = min(FIRST_AHEAD, self.goodput * max(RAMP_S, RAMP_RTT * self._rtt_s) or FIRST_AHEAD)
        room = max(self.goodput * max(AHEAD_S, 3 * self._rtt_s), first) - waiting
        target = self.target  # others change it meanwhile
        while target and room > 0 and len(self._retrieves) < self._most_ahead:
            piece = self._next_piece()
            if piece is None:
                break
            if piece.start == piece.end and not piece.file.is_streamed:
                self._scheduler.make_empty(piece.file)
            elif self._retrieve(piece, target):
                room -= piece.end - piece.start
        if self._session:
            self._session.flush()

    def _next_piece(self) -> Piece | None:
        context, scheduler = self.context, self._scheduler
        size = self.goodput * max(PIECE_S, self._rtt_s) if self.goodput else FIRST_PIECE
        size = int(min(max(size, SMALLEST_PIECE), LARGEST_PIECE))
        allowed = context.gate.take(size)
        if not allowed:
            return None
        piece = scheduler.take(allowed)
        if piece is None:
            context.gate.give_back(allowed)
            return (
                None if self._retrieves or context.gate.is_shut else scheduler.take_over(self._others(self))
            )
        context.gate.give_back(allowed - (piece.end - piece.start))
        return piece

    def _retrieve(self, piece: Piece, connections: int) -> bool:
        """Queue a piece on so many connections; False when there is no use for it any more."""
        file = piece.file
        try:
            session = self._open_session()
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
        """Have so many connections, if others than there are are wanted and it is this session's turn.

        Where no port is free to listen on, the connections stay; raises UsageError if there are none yet
        in all the copy, ConnectionLost if there are elsewhere.
        """
        before = session.connections
        if before and not ((self._renew or before != connections) and self._may_switch()):
            return
        try:
            session.connect(connections)
        except UsageError as error:
            if before:
                self.context.supervisor.note(
                    f"the connections to {self.location.host} stay as they are: {error}"
                )
            elif self.context.events.inbound.is_set():
                raise ConnectionLost(str(error)) from None  # others use them, and will give them back
            else:
                raise
            return
        if before:
            self.goodput *= connections / before
        self._renew = False
        self._ever_opened = True
        self.context.events.admitted.set()

    # --- reaping -------------------------------------------------------------------------------------

    def _reap(self, session: DownloadSession) -> None:
        for retrieve in session.reap():
            file = retrieve.file
            if session.believed_bytes:  # proofs alone are no progress, and what is isolated stays so
                self._most_ahead = min(2 * self._most_ahead, MOST_AHEAD)
            self._measure()
            if not self._contradictions.settle(session, retrieve):
                file.close()
            elif not self._scheduler.let_go(file):
                # Some of it may have come damaged, and is to come again, or twice in place of the rest.
                self._scheduler.give_back(file, retrieve.start, retrieve.end)

    def _measure(self) -> None:
        now, passed = time.monotonic(), self._totals().bytes
        since, before = self._measured
        if now - since > 0.1:
            rate = (passed - before) / (now - since)
            self.goodput = rate if not self.goodput else 0.5 * self.goodput + 0.5 * rate
            self._measured = now, passed

    def _watch(self, session: DownloadSession) -> None:
        """Raise TransferTimeout when what is under way does not move; drop what others have brought.

        Only bytes that arrive for the first time count: repeats and empty blocks can be sent without end.
        """
        now, passed = time.monotonic(), self._totals().new_bytes
        if not session.retrieves:
            self._progress = now, -1
            return
        since, before = self._progress
        if passed != before:
            self._progress = now, passed
            return
        silent_s = now - since
        needless = all(
            retrieve.file.has_arrived(retrieve.start, retrieve.end) for retrieve in session.retrieves
        )
        if needless and silent_s > 1.0:
            raise _Needless
        limit = self._options.timeout_s
        if silent_s < min(STALL_S, limit):
            return
        if not session.has_connected:
            limit = min(limit, INBOUND_S + 3 * self._rtt_s)
        if self._others(self):
            limit = min(limit, STALL_S if session.has_connected else SYNS_S)
        if silent_s > limit:
            if not self.context.events.inbound.is_set():
                raise InboundBlocked(f"{self.location.host} cannot connect to our data port")
            reaches = session.has_connected or self._others(self)
            raise TransferTimeout(
                f"nothing has come from {self.location.host} for {limit:g} s while fetching "
                f"{session.retrieves[0].file.source}"
                + ("" if reaches else f"; can it reach our data port {session.data_port}?")
            )

    # --- the session ---------------------------------------------------------------------------------

    def _open_session(self) -> DownloadSession:
        if self._session is None:
            self._session = DownloadSession(self.location, self._options, self.context, self.path)
            self._session.open()
            self._rtt_s = self._session.rtt_s
            self._progress = time.monotonic(), -1  # its time to bring something begins now
        return self._session

    def _describe(self, name: str) -> FileInfo | None:
        """As Supervisor.describe; no other session may be admitted beside this one."""
        self._drop()
        return self.context.supervisor.describe(name)

    def _drop(self) -> None:
        """Give up the session; what it was to bring goes back."""
        session = self._session
        if session is None:
            return
        left = session.close()
        with self._counting:
            self._past.add(session.totals())
            self._past.streams = 0
            self._session = None
        for retrieve in left:
            self._scheduler.give_back(retrieve.file, retrieve.start, retrieve.end)
            self._scheduler.let_go(retrieve.file)
