"""Transfers between two servers, the workers: each keeps transfers queued at a pair of sessions."""

import math
import time
from collections.abc import Callable, Mapping, Sequence

from mpx.endpoints.ftp.refusals import cannot_send, cannot_store
from mpx.endpoints.ftp.session_pool import give_back_session
from mpx.endpoints.ftp.stored_size import stored_sizes
from mpx.endpoints.ftp.two_servers.pair_ahead import PairAhead
from mpx.endpoints.ftp.two_servers.pair_watch import PairWatch
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.two_servers.server_pair import ServerPair
from mpx.endpoints.ftp.two_servers.session_pair import SessionPair
from mpx.endpoints.ftp.two_servers.stored_observer import StoredObserver
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.marked_bytes import SPREAD_S, MarkedBytes
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.server_pieces import take_piece
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.source_change import why_changed
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, MpxError, NoSpace, SourceError, ThirdPartyRefused

NO_CONNECTION = 425  # says a sender that has not reached the receiver, which waits for it still
VERDICT_S = 3.0  # wait for the other server's word where one did not do its part
TICK_S, MOST_AHEAD = 0.1, 64  # transfers that are queued at once
LATE_S = 0.4  # what takes longer is left to other workers, if they have nothing to do, ...
MUCH_FASTER, MOST_LEFT_EARLY = 2.0, 3  # ... and carry so much more; so often in a row
STANDS_BACK_S = 0.5  # so that they take it
SHOWS = 2  # times that, until what is told is all of the streams that there are now


class PairWorker(SessionWorker):
    """Has pieces of files carried, one after the other."""

    def __init__(
        self,
        number: int,
        servers: ServerPair,
        context: CarrierContext,
        scheduler: RangeScheduler,
        idle_goodput: Callable[[], float],
    ) -> None:
        """`idle_goodput`: of the fastest worker that has nothing to do, bytes/s; 0: all have."""
        super().__init__("pair", number, servers.hosts, context)
        # The carrier's decisions (see SessionWorker):
        self.target = 0  # streams
        self.ahead = PairAhead(context.queue, shares_blocks=servers.shares_blocks)
        # Written by this thread, read by others:
        self.idle_since_s: float | None = None  # it has a pair, and nothing to do
        self._pair: SessionPair | None = None  # replaced by this thread; others only cut it
        self._spread_s = min(SPREAD_S, servers.marker_s)
        self._bytes = MarkedBytes(self._spread_s)  # guarded by `guard`
        self._shown_streams = 0  # those that `_bytes` is of; written by this thread, read by others
        self.is_changing = False  # others are to come, or what is told is not of these yet; likewise
        # This thread's own:
        self._servers = servers.for_worker(number)
        self._scheduler = scheduler
        self._idle_goodput = idle_goodput
        self._left_early = 0  # how often what was under way was left to others, since a transfer has ended
        self._next_s = 0.0  # when it may take something again
        self._watch = PairWatch(context.options.timeout_s, context.options.connect_timeout_s)
        self._most_ahead = MOST_AHEAD if servers.mode_e else 1
        self._flows_s: float | None = None  # since when the present streams carry data
        self._landed_bytes = 0  # for the first time
        self._before_bytes = 0  # ... until the session was opened or lost
        self._observer = StoredObserver(servers.destination, servers.destination_options)

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker. The servers' word is all that there is."""
        pair, now_s = self._pair, time.monotonic()
        is_idle = pair is None or not pair.transfers
        arrived = self._bytes.told if is_idle else int(self._bytes.shown(now_s))
        return {DEFAULT_PATH: StreamTotals(streams=0 if is_idle else self._shown_streams, bytes=arrived)}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. No connection is ours."""

    def cut(self) -> None:
        """See SessionWorker."""
        if pair := self._pair:
            pair.abort()
        self._observer.cut()

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Queue what there is room for, and take what both servers say: see SessionWorker."""
        self._feed()
        pair = self._pair
        is_idle = pair is not None and not pair.transfers and self.target > 0
        self.idle_since_s = (self.idle_since_s or time.monotonic()) if is_idle else None
        if pair is None or not pair.transfers:
            return False
        pair.hear(TICK_S)
        self._show_streams(pair)
        while pair.transfers and (pair.transfers[0].is_over or pair.transfers[0].refusal):
            if not self._end(pair, pair.transfers[0]):
                return True
        if pair.transfers:
            self._look(pair)
        return True

    def pause(self) -> None:
        """See SessionWorker."""
        if self._servers.is_session_wanted:
            self._let_go()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Raises ThirdPartyRefused: then the copy goes on another way."""
        if isinstance(error, ThirdPartyRefused):
            raise error
        files = list(dict.fromkeys(each.file for each in self._transfers))
        progressed = self._landed_bytes > self._before_bytes
        self._before_bytes = self._landed_bytes
        self.ahead.goodput = 0.0
        self._drop_and_return()
        return Lost(files, progressed)

    def isolate(self) -> None:
        """See SessionWorker."""
        self._most_ahead = 1

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._scheduler.give_up(file, error)

    @property
    def _transfers(self) -> Sequence[PairedTransfer]:
        return list(self._pair.transfers) if self._pair else ()

    def _return(self, transfers: Sequence[PairedTransfer], trusted: int = 0) -> None:
        """Have others carry what did not arrive of these; of the first `trusted` markers count.

        Behind one that fails what a receiver has stored may be what was sent for another one.
        """
        for i, each in reversed(list(enumerate(transfers))):
            file = each.file
            if each.marked and i >= trusted and not file.is_streamed:
                file.redo(each.start, each.end)
            if self._servers.parts or file.is_claimed:
                self._scheduler.give_back(file, each.start, each.end)
            else:
                self.context.queue.put_again(file)

    def _drop_and_return(self) -> None:
        """Have others carry what is under way, once the receiver of this pair stores no more of it."""
        transfers = self._transfers
        self.drop()
        self._return(transfers, trusted=1)

    # --- feeding -------------------------------------------------------------------------------------

    def _feed(self) -> None:
        """Queue transfers until enough is ahead; those that are to use other connections wait for these."""
        target, under_way = self.target, self._transfers
        if not target or (under_way and not self._servers.mode_e) or time.monotonic() < self._next_s:
            return
        if under_way and self._pair and not self._pair.takes(target):
            self.is_changing = self._servers.mode_e
            return
        if any(each.file.listed_bytes is None for each in under_way):
            return  # its size is asked for behind it
        self.ahead.queued = sum(each.size_bytes - each.told_bytes for each in under_way)
        room = self.ahead.most_bytes(self._rtt_s, target) - self.ahead.queued
        fresh: list[PairedTransfer] = []
        while room > 0 and len(under_way) + len(fresh) < self._most_ahead:
            piece = take_piece(self._scheduler, self.ahead.piece_bytes(target), parts=self._servers.parts)
            if piece is None:
                break
            self.ahead.took_of(piece.file)
            if piece.start == piece.end and not piece.file.is_streamed:
                self._let_whole(piece.file)  # all of it is there
                continue
            fresh.append(PairedTransfer(piece, parts=self._servers.parts))
            room -= piece.end - piece.start
            if piece.file.listed_bytes is None:
                break
        if fresh:
            self._queue(fresh, target)

    def _queue(self, fresh: Sequence[PairedTransfer], target: int) -> None:
        queued = False
        try:
            pair = self.open_session()
            if pair.has_to_rest_for(fresh):
                return  # they come again
            if pair.connections != target or not pair.takes(target):
                self.is_changing, self._flows_s = True, None
            if not pair.transfers and not pair.takes(target):
                pair.connect(target if self._servers.mode_e else 1)
            if not pair.transfers:
                self._watch.begin()
                self.ahead.ended_s = 0.0
            pair.queue(fresh, target)
            queued = True
        finally:
            if not queued:
                self._return(fresh)

    @property
    def _rtt_s(self) -> float:
        pair = self._pair
        return max(pair.sender.rtt_s or 0.0, pair.receiver.rtt_s or 0.0) if pair else 0.0

    # --- what the servers have done ------------------------------------------------------------------

    def _marked(self, transfer: PairedTransfer, new_bytes: int) -> None:
        """Take what a marker tells."""
        if not new_bytes:
            return
        self._watch.moved(new_bytes)
        with self.guard:
            self._bytes.add(time.monotonic(), new_bytes)
        if not transfer.file.is_streamed and not transfer.is_whole:
            for start, end in transfer.certain:
                self._landed_bytes += transfer.file.landed(start, end)

    def _show_streams(self, pair: SessionPair) -> None:
        """Count the streams of a pair once what is told of them is of them alone."""
        now_s = time.monotonic()
        oldest = pair.transfers[0]
        if oldest.has_begun:
            self._watch.connected()
            self.context.events.inbound.set()
            if oldest.connections == pair.connections:
                self._flows_s = self._flows_s or now_s
            self.ahead.flows()
        if self._flows_s is not None and now_s - self._flows_s > SHOWS * self._spread_s:
            self._shown_streams = pair.connections
            self.is_changing = pair.connections != self.target and self.target > 0

    def _end(self, pair: SessionPair, transfer: PairedTransfer) -> bool:
        """Take the end of the oldest transfer; False where the pair is given up. Raises what loses it."""
        if transfer.refusal:
            self._failed(pair, transfer)
            return False
        file = transfer.file
        arrived = max(transfer.marked.size, transfer.told_bytes if pair.are_kept else 0)
        # Servers of ours always tell of all; of others nothing may be known.
        if not file.is_streamed and arrived < transfer.size_bytes and (arrived or pair.are_kept):
            self._drop_and_return()  # there may be no other session
            if error := self._change_of(file):
                self._scheduler.give_up(file, error)
            raise ConnectionLost(
                f"{pair.sender.peer} sent {arrived} bytes of {file.source} in place of {transfer.size_bytes}"
            )
        if file.is_streamed:
            self._streamed(pair, transfer)
        else:
            self._landed_bytes += file.landed(transfer.start, transfer.end)
        self._measured(transfer)
        pair.transfers.popleft()
        self._watch.ended()
        self._left_early = 0
        self._most_ahead = min(2 * self._most_ahead, MOST_AHEAD) if self._servers.mode_e else 1
        self.retry.progressed()
        self._let_whole(file)
        return True

    def _change_of(self, file: FileTransfer) -> MpxError | None:
        """Return how the source of a file is not what it was when it was listed; None: it is."""
        try:
            return why_changed(self.context.supervisor.describe(file.source), file, file.size_bytes)
        except MpxError:  # what is known already is told
            return None

    def _streamed(self, pair: SessionPair, transfer: PairedTransfer) -> None:
        """Take the size of a file from what was stored of it, as its source tells none that counts."""
        file, size_bytes = transfer.file, transfer.marked.size
        if file.listed_bytes is None:
            (stored,) = stored_sizes(pair.receiver, [pair.receiver.name(file.partial)])
            size_bytes = size_bytes if stored is None else stored
        file.landed(0, size_bytes)
        self._scheduler.ended(file, size_bytes)

    def _measured(self, transfer: PairedTransfer) -> None:
        now_s, size_bytes = time.monotonic(), max(transfer.size_bytes, transfer.told_bytes)
        with self.guard:
            self._bytes.add(now_s, size_bytes - transfer.told_bytes)
        self.ahead.ended(size_bytes)

    def _let_whole(self, file: FileTransfer) -> None:
        if file.claim_whole():
            self.context.supervisor.whole(file)
        elif self._servers.parts:
            self._scheduler.put_back(file)  # where something of it was found to be damaged meanwhile

    def _failed(self, pair: SessionPair, transfer: PairedTransfer) -> None:
        """Give a file up that a server refuses; raises what may be tried again, and NoSpace.

        Both servers are out of step then, so what was queued behind it is carried over another pair.
        """
        error = self._why(pair, transfer)
        if error.may_retry and not self.context.events.inbound.is_set():
            raise ThirdPartyRefused(str(error))
        if error.may_retry or isinstance(error, NoSpace):
            raise error
        others = [each for each in pair.transfers if each is not transfer]
        self.drop()  # there may be no other session
        if isinstance(error, SourceError):
            error = self._change_of(transfer.file) or error
        self._scheduler.give_up(transfer.file, error)
        self._return(others)
        self._most_ahead = 1

    def _why(self, pair: SessionPair, transfer: PairedTransfer) -> MpxError:
        """Return why a transfer failed: the word of the server that says more than that the other is gone."""
        is_clear = bool(transfer.sent and transfer.sent.code == NO_CONNECTION and not transfer.has_begun)
        until_s = time.monotonic() + (0.0 if is_clear else VERDICT_S)
        while not transfer.is_over and (left_s := until_s - time.monotonic()) > 0:
            try:
                pair.hear(min(TICK_S, left_s))
            except ConnectionLost:
                break
            if self.context.failure.cancel.is_set():
                break
        file, errors = transfer.file, []
        if transfer.stored and not transfer.stored.is_ok:
            errors.append(cannot_store(transfer.stored, pair.receiver.peer, file.final, file.partial))
        if transfer.sent and not transfer.sent.is_ok:
            errors.append(cannot_send(transfer.sent, pair.sender.peer, file.source))
        return next((error for error in errors if not error.may_retry), errors[0])

    def _look(self, pair: SessionPair) -> None:
        """Raise TransferTimeout where nothing moves, ThirdPartyRefused where it never did."""
        transfer = pair.transfers[0]
        if self._is_late(pair):
            self._next_s, self._left_early = time.monotonic() + STANDS_BACK_S, self._left_early + 1
            self._drop_and_return()
            return
        if not self._servers.mode_e and self._watch.is_to_be_observed:
            self._observe(transfer)
        self._watch.look(
            f"{self._servers.source.host} to {self._servers.destination.host}",
            transfer.file.source,
            has_ever_connected=self.context.events.inbound.is_set(),
        )

    def _is_late(self, pair: SessionPair) -> bool:
        """Tell whether others would bring much sooner what is under way: as the last, when they are idle."""
        if not self._servers.parts or self._scheduler.has_more or self._left_early >= MOST_LEFT_EARLY:
            return False
        took_s = time.monotonic() - max(self.ahead.ended_s, self._flows_s or math.inf)
        if took_s < LATE_S:
            return False
        goodput = self.ahead.goodput or math.inf
        if took_s > self._servers.marker_s + LATE_S:  # else no marker may have told of it yet
            goodput = min(goodput, pair.transfers[0].told_bytes / took_s)
        left_bytes = sum(each.size_bytes - each.told_bytes for each in pair.transfers)
        return left_bytes > goodput * LATE_S and self._idle_goodput() > MUCH_FASTER * goodput

    def _observe(self, transfer: PairedTransfer) -> None:
        """Ask how much is stored; best effort."""
        stored = self._observer.stored_bytes(transfer.file.partial)
        if stored is None:
            self._watch.cannot_be_observed()
        elif stored > transfer.told_bytes and not transfer.file.is_streamed:
            more = min(stored, transfer.size_bytes) - transfer.told_bytes
            transfer.told_bytes += more
            self._marked(transfer, more)

    # --- the session ---------------------------------------------------------------------------------

    def open_session(self) -> SessionPair:
        """See SessionWorker."""
        if self._pair is None:
            self._pair = SessionPair(
                *self._servers.open_sessions(),
                mode_e=self._servers.mode_e,
                marked=self._marked,
                congestion=self.context.streams.congestion_of(DEFAULT_PATH),
            )
            self._before_bytes, self.ahead.ended_s, self._shown_streams = self._landed_bytes, 0.0, 0
            self.opened()
        return self._pair

    def _let_go(self) -> None:
        """Give both sessions to others; nothing is under way."""
        pair, self._pair = self._pair, None
        self._observer.close()
        if pair:
            give_back_session(pair.sender)
            give_back_session(pair.receiver)

    def drop(self) -> None:
        """See SessionWorker."""
        pair, self._pair = self._pair, None
        self._observer.close()
        if pair:
            pair.close()
