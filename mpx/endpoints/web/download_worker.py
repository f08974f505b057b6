"""Downloads over HTTP, one worker: ranges of files, one after the other over a connection that is kept.

The next range is asked for before the last one has come, so that the server always has something to send.
What comes says which part of the file it is, and is believed only where that is what was asked for.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.answers import Answers
from mpx.endpoints.web.connection import BegunAnswer, HttpConnection
from mpx.endpoints.web.describe import info_of_head, is_shown_unchanged
from mpx.endpoints.web.fetch import FIRST_PIECE, WebFetch
from mpx.endpoints.web.lanes import ReceivingLane
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.receiving import Receiver
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import Reply
from mpx.endpoints.web.server_digests import NOT_COMPUTED, digests_told
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Pending, Piece, RangeScheduler, Taker
from mpx.engine.retry import ServerBusy
from mpx.engine.session_worker import Lost
from mpx.errors import ConnectionLost, MpxError, TransferTimeout
from mpx.files.local_error import local_error

PIECE_S = 1.0  # of the goodput: a piece lasts so long
LARGEST_PIECE = 64 << 20
AHEAD_S = 0.25  # of the goodput, and two round trips, are asked for ahead
MOST_AHEAD = 16  # requests
AT_FIRST = 1e6  # bytes/s that a worker is taken to bring as long as nothing is known
GOODPUT_S = 0.25  # over which it is measured
STARTS_S, STARTS_RTTS = 0.5, 10  # a connection grows for so long, and so many round trips
WORTH_DROPPING = 256 * 1024  # bytes that come in vain, where nothing else is to be done


class WebDownloadWorker(WebWorker):
    """Brings piece after piece."""

    def __init__(
        self,
        number: int,
        path: str,
        access: WebAccess,
        context: CarrierContext,
        scheduler: RangeScheduler,
        answers: Answers,
        pipelining: Pipelining,
        others: "Callable[[WebDownloadWorker], Sequence[WebDownloadWorker]]",
        *,
        whole_files: bool,
    ) -> None:
        """`others` returns the other workers; with `whole_files` no parts are asked for."""
        super().__init__(number, path, "sink", access, context)
        # This thread's own:
        self._scheduler, self._answers, self._pipelining, self._others = (
            scheduler,
            answers,
            pipelining,
            others,
        )
        self._whole_files = whole_files
        self._receiver = Receiver(self.control.limiter, scheduler, context.supervisor)
        self._fetches: list[WebFetch] = []  # asked for, in the order of their answers; others read it, too
        self._new_bytes = 0  # that had not arrived before
        self._before_bytes = 0  # the same, when progress was last noted
        self._goodput = 0.0  # bytes/s; 0: not known. Others read it, too
        self._measured = (0, 0.0)  # bytes received, and when
        self._received_bytes = 0
        self._was_asked = False  # something, over a connection that could be opened
        self._began_s, self._began_bytes = 0.0, 0  # when a connection was opened, and what it has brought

    # --- for other workers, from any thread ----------------------------------------------------------

    def under_way(self) -> list[Pending]:
        """Return what this worker has asked for, and when it will have come."""
        goodput, bytes_before, found = self._goodput or AT_FIRST, 0, []
        for fetch in list(self._fetches):
            if fetch.file.is_streamed:
                continue
            bytes_before += fetch.left_bytes
            found.append(Pending(fetch, bytes_before / goodput, goodput))
        return found

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """See SessionWorker."""
        if not self._fetches:
            self.is_busy = False
            self.renew_if_asked()
            return self._ask_next()
        fetch = self._fetches[0]
        if fetch.reply is None:
            self._begin_answer(fetch)
        elif not self._is_overtaken(fetch):
            self._receive(fetch)
            self._ask_ahead(fetch)
        if self._new_bytes > self._before_bytes:
            self._before_bytes = self._new_bytes
            self.retry.progressed()
        return True

    # --- asking --------------------------------------------------------------------------------------

    def _ask_next(self) -> bool:
        """Ask for one piece more; False where there is none."""
        if not self.target or (piece := self._next_piece()) is None:
            return False
        file = piece.file
        if piece.start == piece.end and not file.is_streamed:
            self._scheduler.make_empty(file)
            return True
        try:
            fd = file.open(file.partial, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if not file.is_claimed:  # else another worker has brought what this one was to take over
                self._scheduler.give_up(file, local_error(error, file.final, writing=True))
            return True
        is_all = file.is_streamed or (piece.start == 0 and piece.end == file.size_bytes)
        url = self.access.url_of(file.source)
        if begun := self.access.take_begun(url):
            self._take_begun(piece, begun)
            return True
        fetch = WebFetch(file, piece.start, piece.end, url, is_whole=is_all, fd=fd)
        fetch.at = self.access.leads_to(url)
        fetch.is_ahead = any(each.at.origin == fetch.at.origin for each in self._fetches)
        self._fetches.append(fetch)
        if not self.is_busy:
            self.is_busy, self.came_s = True, time.monotonic()
        if not self.lanes.has(fetch.at.origin):
            self._began_s, self._began_bytes = time.monotonic(), 0
        self.lanes.ask(fetch)
        self._was_asked = True
        return True

    def _take_begun(self, piece: Piece, begun: BegunAnswer) -> None:
        """Put a piece back, and take the answer that brings the beginning of its file.

        That is left where something else is to bring it.
        """
        file = piece.file
        self._scheduler.give_back(file, piece.start, piece.end)
        end = min(FIRST_PIECE, file.size_bytes)
        is_taken = not (self._whole_files or file.is_streamed or self.control.gate.is_used)
        first = file.take(end) if is_taken and self.lanes.is_free else None
        if first != (0, end):
            begun.connection.close()
            if first:
                self._scheduler.give_back(file, *first)
            file.close()
            return
        fetch = WebFetch(file, 0, end, begun.url, is_whole=False, fd=file.open(file.partial, os.O_RDWR))
        file.close()
        self._fetches.append(fetch)
        self.is_busy, self.came_s, self._was_asked = True, time.monotonic(), True
        self._began_s, self._began_bytes = self.came_s, 0
        self.lanes.adopt(begun.connection)
        self._judge(fetch, begun.reply)

    def _next_piece(self) -> Piece | None:
        if self._whole_files:
            return self._scheduler.take_file()
        gate = self.control.gate
        limit = int(min(max(self._goodput * PIECE_S, FIRST_PIECE), LARGEST_PIECE))
        allowed = gate.take(limit)
        if not allowed:
            return None
        piece = self._scheduler.take(allowed)
        if piece is None and not gate.is_shut:
            piece = self._take_over(allowed)
        gate.give_back(allowed - (piece.end - piece.start if piece else 0))
        return piece

    def _take_over(self, limit: int) -> Piece | None:
        """Return a part of what comes later at other workers than it would here; None if there is none."""
        goodput = self._goodput or AT_FIRST
        left_s = sum(fetch.left_bytes for fetch in self._fetches) / goodput
        if self._fetches and (left_s > AHEAD_S or not self.context.queue.is_listed):
            return None
        late = [each for other in self._others(self) for each in other.under_way()]
        taker = Taker(left_s + self.lanes.connected_s, goodput, not self._fetches)
        return self._scheduler.take_over(late, limit, taker)

    def _ask_ahead(self, fetch: WebFetch) -> None:
        """Ask for more as long as the rest of what was asked for comes, so that the server never waits."""
        while (
            self._fetches
            and len(self._fetches) < MOST_AHEAD
            and not self.is_to_renew
            and (fetch.reply is None or fetch.reply.may_have_followers)
            and self._pipelining.is_possible(fetch.at.origin)
        ):
            ahead_bytes = sum(each.left_bytes or WORTH_DROPPING for each in self._fetches)
            if ahead_bytes > self._wanted_ahead:
                return
            if not self._ask_next():
                self._ask_about(self._fetches[-1])
                return

    def _ask_about(self, fetch: WebFetch) -> None:
        """Ask what a file is behind its last range: it is answered once the server has read all of that.

        Nothing more of it is to be handed out, so that this often is the last that anybody reads of it.
        """
        file = fetch.file
        if not (fetch.is_checked or file.is_streamed or file.todo_bytes or self._whole_files):
            self.lanes.ask_about(fetch)

    @property
    def _wanted_ahead(self) -> float:
        """How many bytes are to be asked for ahead: what comes in two round trips, and somewhat more.

        A connection that has just begun carries twice as much in each round trip, which is all it has carried
        so far.
        """
        rtt_s = self.lanes.connected_s
        lasts_s = 2 * rtt_s + AHEAD_S
        wanted = (self._goodput or AT_FIRST) * lasts_s
        is_starting = time.monotonic() < self._began_s + STARTS_S + STARTS_RTTS * rtt_s
        return max(wanted, 2 * self._began_bytes) if is_starting else wanted

    # --- answers -------------------------------------------------------------------------------------

    def _begin_answer(self, fetch: WebFetch) -> None:
        """Read the head of an answer, and decide what it means."""
        lane = self.lanes.get(fetch.at.origin)
        if lane is None or not fetch.is_sent:  # the lane was dropped, with what was asked behind
            fetch.is_ahead = False
            self.lanes.ask(fetch)
            return
        was_used, http = lane.http.answered > 0, lane.http
        try:
            reply = self._reply(fetch, http)
            self._pipelining.heard(fetch.at.origin, reply)
        except ConnectionLost:
            if not was_used or http.incoming.has_some:
                raise
            self._ask_again(fetch)  # a connection that was kept had ended
            return
        self.came_s = time.monotonic()
        self._judge(fetch, reply)

    def _judge(self, fetch: WebFetch, reply: Reply) -> None:
        """Decide what an answer means, and act on it."""
        try:
            fate = self._answers.judge(fetch, reply)
        except ServerBusy as error:
            raise self.one_too_many(error) from None
        if fate is None:
            fetch.reply = reply
            self.opened()
            return
        self._fetches.remove(fetch)
        if not reply.is_ended:
            reply.read(WORTH_DROPPING)
        self._read_check(fetch, reply)
        if isinstance(fate, MpxError):
            fetch.file.close()
            self._scheduler.give_up(fetch.file, fate)
        else:
            fetch.at = fate
            self._fetches.append(fetch)
            self.lanes.ask(fetch)

    def _reply(self, fetch: WebFetch, http: HttpConnection) -> Reply:
        """Read the head of an answer; one that was asked for ahead may never come."""
        patience_s = self._pipelining.patience_s(fetch.at.origin) if fetch.is_ahead else None
        if patience_s is None:
            return http.reply("GET")
        http.be_patient(patience_s)
        try:
            reply = http.reply("GET")
        except TransferTimeout as error:
            self._pipelining.refuse(fetch.at.origin)
            raise ConnectionLost(f"{error}, as it takes no requests ahead") from None
        finally:
            http.be_patient(None)
        self._pipelining.prove(fetch.at.origin)
        return reply

    def _ask_again(self, fetch: WebFetch) -> None:
        """Ask anew for all that a connection was to answer which has ended."""
        self.lanes.drop(fetch.at.origin)
        self._ask_behind([each for each in self._fetches if each.at.origin == fetch.at.origin])

    def _ask_behind(self, fetches: Sequence[WebFetch]) -> None:
        """Ask anew for what a connection was to answer that has ended, all at once where the server can."""
        at_once = len(fetches) if fetches and self._pipelining.is_possible(fetches[0].at.origin) else 1
        for i, each in enumerate(fetches):
            each.is_sent, each.is_ahead = False, i > 0
            if i < at_once:
                self.lanes.ask(each)

    def _lost_lane(self, fetch: WebFetch) -> None:
        """Close a connection after its last answer; what was asked behind it is asked for anew."""
        lane = self.lanes.get(fetch.at.origin)
        behind = [each for each in self._fetches if each is not fetch and each.at.origin == fetch.at.origin]
        if lane is not None and behind:
            self._pipelining.ended(lane.http.origin, lane.http.answered)
        self.lanes.drop(fetch.at.origin)
        self._ask_behind(behind)

    # --- bodies --------------------------------------------------------------------------------------

    def _receive(self, fetch: WebFetch) -> None:
        lane = self.lanes.get(fetch.at.origin)
        assert isinstance(lane, ReceivingLane) and fetch.reply is not None
        size, new_bytes = self._receiver.receive(fetch)
        lane.passed_bytes += size
        lane.new_bytes += new_bytes
        self._received_bytes += size
        self._began_bytes += size
        self._new_bytes += new_bytes
        self.came_s = time.monotonic()
        self._measure()
        if fetch.reply.is_ended:
            self._end(fetch)

    def _end(self, fetch: WebFetch) -> None:
        """Settle what a fetch has brought; raises what its end means, where it came too soon."""
        assert fetch.reply is not None
        self._fetches.remove(fetch)
        now = self._read_check(fetch, fetch.reply)
        error = self._receiver.ended(fetch)
        if now is not None and fetch.file.is_whole and is_shown_unchanged(now, fetch.file):
            fetch.file.is_unchanged = True  # nobody has to ask again
        if error is not None:
            fetch.file.close()
            self._scheduler.give_up(fetch.file, error)
        elif not self._scheduler.let_go(fetch.file):
            self._scheduler.give_back(fetch.file, fetch.start, fetch.asked_end)

    def _read_check(self, fetch: WebFetch, reply: Reply) -> FileInfo | None:
        """Return what is told of a file behind a fetch; a connection that ends with its answer is left."""
        lane = self.lanes.get(fetch.at.origin)
        if lane is None or not reply.is_reusable:
            self._lost_lane(fetch)
            return None
        if not fetch.is_checked:
            return None
        try:
            about = lane.http.reply("HEAD")
        except (ConnectionLost, TransferTimeout):
            self._lost_lane(fetch)
            return None
        if not about.is_reusable:
            self._lost_lane(fetch)
        if not is_success(about):
            if about.status in NOT_COMPUTED:
                self.access.server.lacks(fetch.file.sums.algorithm)
            return None
        file, told = fetch.file, digests_told(about)
        if digest := told.get(file.sums.algorithm):
            file.far_digest = file.size_bytes, digest
        info = info_of_head(about, about.told_bytes)
        return replace(info, tag=about.header("ETag")) if fetch.at == fetch.url else info

    def _is_overtaken(self, fetch: WebFetch) -> bool:
        """Leave a connection that brings what others have brought, where nothing else is to be done."""
        if fetch.left_bytes < WORTH_DROPPING or fetch.file.is_streamed or len(self._fetches) > 1:
            return False
        if not fetch.file.is_claimed and fetch.file.missing_within(fetch.position, fetch.end).size:
            return False
        self._fetches.remove(fetch)
        self.lanes.drop(fetch.at.origin)
        self._scheduler.let_go(fetch.file)
        return True

    def _measure(self) -> None:
        before_bytes, since_s = self._measured
        now_s = time.monotonic()
        if now_s - since_s < GOODPUT_S:
            return
        if since_s and self._received_bytes > before_bytes and now_s - since_s < 10 * GOODPUT_S:
            self._goodput = (self._received_bytes - before_bytes) / (now_s - since_s)
        self._measured = self._received_bytes, now_s

    # --- what becomes of it when the connection is lost -----------------------------------------------

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker."""
        del error
        self.drop()
        self._goodput = 0.0
        was_asked, self._was_asked = self._was_asked, False
        files = list(dict.fromkeys(fetch.file for fetch in self._fetches)) if was_asked else []
        return Lost(files, self._new_bytes > self._before_bytes)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        for fetch in [each for each in self._fetches if each.file is file]:
            self._fetches.remove(fetch)
            file.close()
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A whole file is asked for again only as often as --retries allows."""
        fetches, self._fetches = self._fetches, []
        for fetch in fetches:
            file = fetch.file
            file.close()
            if file.is_claimed:
                continue
            if not self._whole_files and not file.is_streamed:
                self._scheduler.give_back(file, fetch.start, fetch.asked_end)
                continue
            file.failures += 1
            if file.failures > self.context.options.retries:
                self._scheduler.give_up(file, error)
            else:
                self.context.queue.put_again(file, last=file.failures > 1)
        self.wait_as_told(error)
