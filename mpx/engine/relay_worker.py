"""Transfers from one server to another through this host, the workers: each passes piece after piece on.

What comes is sent on at once: no more than one buffer is kept here, and what the kernel holds. Only small
files are fetched and stored several at a time, where a protocol can do that: each would cost round trips.
"""

import time
from collections.abc import Mapping, Sequence

from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.passed_sums import PassedPiece, PassedSums
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.relay import Pull, Put, Relayed, RelaySink, RelaySource
from mpx.engine.retry import ServerBusy, SessionsFull
from mpx.engine.server_pieces import is_stored_anew, take_piece
from mpx.engine.session_turns import check_admits_both
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.source_change import why_elsewhere, why_too_short
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, Interrupted, MpxError, NoSpace, OffsetsUnproven, TransferTimeout

PIECE_S = 5.0  # duration of a piece, as each has a new connection, or an open file, at the source
FIRST_PIECE, SMALLEST_PIECE = 16 << 20, 4 << 20
AGAIN_S = 0.1
SMALL_BYTES, TOGETHER_BYTES, MOST_FILES = 1 << 20, 8 << 20, 256  # that are under way together
FEW_FILES = 4  # of a source that sends one after the other: other sessions have something to do, too


class RelayWorker(SessionWorker):
    """Passes pieces of files on, one after the other."""

    def __init__(
        self,
        number: int,
        source: RelaySource,
        sink: RelaySink,
        context: CarrierContext,
        scheduler: RangeScheduler,
        *,
        parts: bool,
    ) -> None:
        """`parts`: of files can be sent and stored."""
        super().__init__("relay", number, f"{source.host} and {sink.host}", context)
        self.target = 0  # 1: take pieces; the carrier's decision (see SessionWorker)
        self._source, self._sink = source, sink
        # This thread's own:
        self._scheduler, self._parts = scheduler, parts
        self._waits = number == 0  # for its turn, as one worker is enough
        self._pieces: list[Piece] = []  # in hand
        self._taken: list[Piece] = []  # those, and others that were in hand with them and are settled
        self._before_bytes = 0  # of their files that had arrived, when they were taken
        self._most_files = MOST_FILES
        self._goodput = 0.0  # bytes/s, of the last large piece; 0: not known
        self._is_open = False  # both sessions
        self._was_open = False  # ... for what is in hand

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker. What has gone on counts, and the connections that it goes over."""
        sums = self._sink.totals()
        return {DEFAULT_PATH: sums if self._pieces else sums.none_open()}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. A connection lasts as long as its session."""

    def cut(self) -> None:
        """See SessionWorker."""
        self._source.cut()
        self._sink.cut()

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Pass a piece on, or several small files: see SessionWorker."""
        self._taken = self._take() if self.target else []
        if not self._taken:
            return False
        self._pieces, self._was_open = list(self._taken), False
        self._before_bytes = self._arrived_bytes
        try:
            self._carry_all()
        except ServerBusy as error:
            raise self.one_too_many(error) from None
        self._most_files = MOST_FILES
        self.retry.progressed()
        return True

    def _carry_all(self) -> None:
        if len(self._pieces) > 1:
            self._carry_together([piece for piece in self._pieces if _is_small(piece)])
        while self._pieces:
            self._carry(self._pieces[0])
            del self._pieces[:1]

    def _take(self) -> list[Piece]:
        """Take a piece, and more where they are small files that can be under way together."""
        size = max(self._goodput * PIECE_S, SMALLEST_PIECE) if self._goodput else FIRST_PIECE
        several = [each.files_at_once for each in (self._source, self._sink) if each.files_at_once > 1]
        most = min(self._most_files, *several) if several else 1
        if self._source.files_at_once == 1:
            most = min(most, FEW_FILES)
        taken: list[Piece] = []
        while not taken or (len(taken) < most and _is_small(taken[-1]) and _sum(taken) < TOGETHER_BYTES):
            piece = take_piece(self._scheduler, int(size), parts=self._parts)
            if piece is None:
                break
            taken.append(piece)
        return taken

    @property
    def _arrived_bytes(self) -> int:
        return sum(file.arrived_bytes for file in {piece.file for piece in self._taken})

    def pause(self) -> None:
        """See SessionWorker."""
        if self._source.is_wanted or self._sink.is_wanted:
            self._is_open = False
            self._sink.give_back()
            self._source.give_back()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker."""
        del error
        self.drop()
        self._goodput = 0.0
        if not self._was_open:
            return Lost([], progressed=False)
        files = list(dict.fromkeys(piece.file for piece in self._pieces))
        return Lost(files, self._arrived_bytes > self._before_bytes)

    def isolate(self) -> None:
        """See SessionWorker."""
        self._most_files = 1

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._pieces = [piece for piece in self._pieces if piece.file is not file]
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A whole file is passed on again only as often as --retries allows."""
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            file = piece.file
            if self._parts and not file.is_streamed:
                self._scheduler.give_back(file, piece.start, piece.end)
            else:
                self.carry_again(file, error, was_tried=self._was_open)

    # --- small files ---------------------------------------------------------------------------------

    def _carry_together(self, pieces: Sequence[Piece]) -> None:
        """Pass small files on together, which are kept here meanwhile; what is not settled stays in hand."""
        self.open_session()
        contents = [
            (piece, content)
            for piece, content in zip(pieces, self._source.fetch(pieces), strict=True)
            if content is not None and len(content) == piece.end
        ]
        self._hold_to_rate(sum(len(content) for _, content in contents))
        self._is_open = False  # one of them may have ended its session
        self.open_session()
        for (piece, content), is_stored in zip(contents, self._sink.store_all(contents), strict=True):
            if is_stored:
                if passed := _sums_of(piece):
                    passed.add(memoryview(content))
                    passed.stored()
                piece.file.landed(0, piece.end)
                self._settle(piece.file)
                self._pieces.remove(piece)
        self._is_open = False

    def _hold_to_rate(self, size_bytes: int) -> None:
        """Wait until so much may pass, a piece of the limiter's at a time: it charges no more for each."""
        while size_bytes > 0:
            piece = self.context.limiter.piece(size_bytes)
            self.context.limiter.wait(piece)
            size_bytes -= piece

    # --- one piece -----------------------------------------------------------------------------------

    def _carry(self, piece: Piece) -> None:
        """Pass one piece on; raises ConnectionLost and TransferTimeout, gives the file up for the rest."""
        file = piece.file
        try:
            if piece.start < piece.end or file.is_streamed or not file.is_whole:
                began_s = time.monotonic()
                self._pass_on(piece)
                if piece.end > piece.start:
                    self._goodput = (piece.end - piece.start) / max(time.monotonic() - began_s, 1e-3)
        except (ConnectionLost, TransferTimeout, Interrupted, NoSpace, OffsetsUnproven):
            raise
        except MpxError as error:
            self._settle_ends()
            self._scheduler.give_up(file, error)
            return
        self._settle(file)

    def _settle_ends(self) -> None:
        """Keep the sessions that can be used for another piece, after a refusal."""
        if not self._source.settle():
            self.drop()
        elif not self._sink.settle():
            self._is_open = False
            self._sink.close()

    def _settle(self, file: FileTransfer) -> None:
        if file.claim_whole():
            self.context.supervisor.whole(file)
        elif self._parts:
            self._scheduler.put_back(file)  # where something of it was found to be damaged meanwhile

    def _pass_on(self, piece: Piece) -> None:
        self.open_session()
        is_whole, limiter = is_stored_anew(piece, parts=self._parts), self.context.limiter
        passed = _sums_of(piece)

        def store(pull: Pull) -> Relayed:
            def checked(put: Put) -> Relayed:
                def put_on(at: int, data: memoryview) -> None:
                    if not is_whole and at + len(data) > piece.end:
                        raise self._elsewhere(piece.file, "more came than it has")
                    limiter.wait(len(data))
                    if passed:
                        passed.add(data)
                    put(at, data)

                return pull(put_on)

            return self._sink.store(piece, checked, is_whole=is_whole)

        came = self._source.receive(piece, store, is_whole=is_whole)
        self._sink.finish(piece, is_whole=is_whole)
        self._source.finish(piece, came)
        self._check_size(piece, came.size_bytes, is_whole=is_whole)
        if not came.is_stored:  # now that it is known how many there are
            raise ConnectionLost(f"{self._sink.host} takes no other number of bytes than it was told")
        if passed:
            passed.stored()
        piece.file.landed(piece.start, piece.start + came.size_bytes)

    def _check_size(self, piece: Piece, size_bytes: int, *, is_whole: bool) -> None:
        """Take the end of the data for that of the file where it is; raises what else they mean."""
        file = piece.file
        if not is_whole:
            if size_bytes != piece.end - piece.start:
                what = f"{size_bytes} bytes came from {piece.start} on, of {file.size_bytes} in all"
                raise self._elsewhere(file, what)
            return
        if size_bytes < (file.listed_bytes or 0) and (
            why := why_too_short(self._describe(file.source), file, size_bytes)
        ):
            raise why
        if file.is_streamed or size_bytes != file.size_bytes:
            self._scheduler.ended(file, size_bytes)

    def _elsewhere(self, file: FileTransfer, what: str) -> MpxError:
        return why_elsewhere(self._describe(file.source), file, what)

    def _describe(self, name: str) -> FileInfo | None:
        self.drop()  # there may be no other session
        return self.context.supervisor.describe(name)

    # --- the sessions --------------------------------------------------------------------------------

    def open_session(self) -> None:
        """See SessionWorker. The source's is opened first, as whoever needs both does."""
        since_s = time.monotonic()
        while not self._is_open:
            self._source.open(waits=self._waits)
            try:
                self._sink.open(waits=False)
                self._is_open = True
            except SessionsFull:
                self._source.give_back()  # who waits for it may have the other
                if not self._waits:
                    raise
                # Who has one and does not use it learns that it is wanted only from who waits for it.
                self._sink.open(waits=True)
                self._sink.give_back()
                source, patience_s = self._source, self.context.options.timeout_s
                check_admits_both(source.pool, self._sink.pool, source.host, since_s, patience_s)
                self._wait()
            else:
                self.opened()
        self._was_open = True

    def _wait(self) -> None:
        """Wait some time before both sessions are asked for again; raises Interrupted when stopped.

        By the clock: that a server admits a session again is told by nobody.
        """
        if self.context.failure.cancel.wait(AGAIN_S):
            raise Interrupted

    def drop(self) -> None:
        """See SessionWorker."""
        self._is_open = False
        self._sink.close()
        self._source.close()


def _sums_of(piece: Piece) -> PassedPiece | None:
    """Return what takes the checksum of a piece as it passes; None where none is taken."""
    sums = piece.file.sums
    return sums.begin(piece.start) if isinstance(sums, PassedSums) else None


def _is_small(piece: Piece) -> bool:
    """Tell whether a piece is a whole file that may be kept here."""
    file = piece.file
    is_all = not piece.start and piece.end == file.size_bytes
    return is_all and 0 < piece.end <= SMALL_BYTES and not file.is_streamed


def _sum(pieces: Sequence[Piece]) -> int:
    return sum(piece.end - piece.start for piece in pieces)
