"""Downloads over HTTP, one worker: ranges of files, one after the other over a connection that is kept.

The next range is asked for before the last one has come, so that the server always has something to send.
What comes says which part of the file it is, and is believed only where that is what was asked for.
"""

import os
import time
from collections.abc import Callable, Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.answers import Answers
from mpx.endpoints.web.connection import BegunAnswer
from mpx.endpoints.web.describe import is_shown_unchanged
from mpx.endpoints.web.fetch import FIRST_PIECE, WebFetch
from mpx.endpoints.web.goodput import AHEAD_S, Goodput
from mpx.endpoints.web.lanes import ReceivingLane
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.receiving import Receiver
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.request_cost import RequestCost
from mpx.endpoints.web.request_order import ask_anew, ask_when_due, beside
from mpx.endpoints.web.url import Origin
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Pending, Piece, RangeScheduler, Taker, stuck_s
from mpx.engine.retry import ServerBusy
from mpx.engine.session_worker import Lost
from mpx.errors import ConnectionLost, MpxError, TransferTimeout
from mpx.files.local_error import local_error

MOST_AHEAD = 16  # requests
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
        cost: RequestCost,
        others: "Callable[[WebDownloadWorker], Sequence[WebDownloadWorker]]",
        *,
        whole_files: bool,
    ) -> None:
        """`others` returns the other workers; with `whole_files` no parts are asked for."""
        super().__init__(number, path, "sink", access, context)
        # This thread's own:
        self._scheduler, self._answers = scheduler, answers
        self._pipelining, self._others = pipelining, others
        self._whole_files = whole_files
        self._receiver = Receiver(self.control.limiter, scheduler, context.supervisor)
        self._fetches: list[WebFetch] = []  # asked for, in the order of their answers; others read it, too
        self._new_bytes = 0  # that had not arrived before
        self._before_bytes = 0  # the same, when progress was last noted
        self._goodput = Goodput(cost)
        self._was_asked = False  # something, over a connection that could be opened
        self.lanes.is_needed = self._is_needed

    # --- for other workers, from any thread ----------------------------------------------------------

    def under_way(self) -> list[Pending]:
        """Return what this worker has asked for, and when it will have come."""
        goodput = self._goodput.guess_after(time.monotonic() - self.came_s)
        bytes_before, found = 0, []
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
            if self._can_adopt(piece):
                self._take_begun(piece, begun)
                return True
            begun.connection.close()
        fetch = WebFetch(file, piece.start, piece.end, url, is_whole=is_all, fd=fd)
        fetch.at = self.access.leads_to(url)
        self._fetches.append(fetch)
        if not self.is_busy:
            self.is_busy, self.came_s = True, time.monotonic()
        if not self.lanes.has(fetch.at.origin):
            self._goodput.begin()
        ask_when_due(self._fetches, self.lanes, self._pipelining)
        self._was_asked = True
        return True

    def _is_needed(self, origin: Origin) -> bool:
        """Tell whether a server is to answer something still."""
        return any(each.is_sent and each.at.origin == origin for each in self._fetches)

    def _can_adopt(self, piece: Piece) -> bool:
        """Tell whether parts of a file may come over a connection that others have opened."""
        is_bound = self._whole_files or piece.file.is_streamed or self.control.gate.is_used
        return not (is_bound or self._fetches) and self.lanes.is_free

    def _take_begun(self, piece: Piece, begun: BegunAnswer) -> None:
        """Put a piece back, and take the answer that brings the beginning of its file.

        That is left where another worker brings it already.
        """
        file = piece.file
        self._scheduler.give_back(file, piece.start, piece.end)
        end = min(FIRST_PIECE, file.size_bytes)
        first = file.take(end)
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
        self._goodput.begin()
        self.lanes.adopt(begun.connection)
        self._judge(fetch, begun.reply)

    def _next_piece(self) -> Piece | None:
        if self._whole_files:
            return self._scheduler.take_file()
        gate = self.control.gate
        allowed = gate.take(self._goodput.piece_bytes)
        if not allowed:
            return None
        piece = self._scheduler.take(allowed, self._goodput.cost.least_bytes)
        if piece is None and not gate.is_shut:
            piece = self._take_over(allowed)
        gate.give_back(allowed - (piece.end - piece.start if piece else 0))
        return piece

    def _take_over(self, limit: int) -> Piece | None:
        """Return a part of what comes later at other workers than it would here; None if there is none."""
        goodput = self._goodput.guess
        left_s = sum(fetch.left_bytes for fetch in self._fetches) / goodput
        if self._fetches and (left_s > AHEAD_S or not self.context.queue.is_listed):
            return None
        late = [each for other in self._others(self) for each in other.under_way()]
        waits_s, cost = left_s + self.lanes.connected_s, self._goodput.cost
        taker = Taker(waits_s, goodput, not self._fetches, cost.wait_s, cost.least_bytes)
        return self._scheduler.take_over(late, limit, taker)

    def _ask_ahead(self, fetch: WebFetch) -> None:
        """Ask for more as long as the rest of what was asked for comes, so that the server never waits."""
        while (
            self._fetches
            and len(self._fetches) < MOST_AHEAD
            and self._fetches[-1].is_sent
            and not self.is_to_renew
            and (fetch.reply is None or fetch.reply.may_have_followers)
            and self._pipelining.is_possible(fetch.at.origin)
        ):
            ahead_bytes = sum(each.left_bytes or WORTH_DROPPING for each in self._fetches)
            if ahead_bytes > self._goodput.wanted_ahead(self.lanes.connected_s):
                return
            if not (self._may_ask_ahead(fetch) and self._ask_next()):
                self._ask_about(self._fetches[-1])
                return

    def _may_ask_ahead(self, fetch: WebFetch) -> bool:
        """Tell whether more may be asked for behind a fetch, of a server that refusals in between harm.

        Then only more of the same file, which it has just agreed to send.
        """
        quirks = self.access.quirks
        return quirks is None or not quirks.ends_at_errors or fetch.file.todo_bytes > 0

    def _ask_about(self, fetch: WebFetch) -> None:
        """Ask what a file is behind its last range: it is answered once the server has read all of that.

        Nothing more of it is to be handed out, so that this often is the last that anybody reads of it.
        """
        file = fetch.file
        is_last = not (fetch.is_checked or file.is_streamed or file.todo_bytes or self._whole_files)
        if is_last and fetch.is_sent and self._pipelining.is_possible(fetch.at.origin):
            self.lanes.ask_about(fetch)

    def _begin_answer(self, fetch: WebFetch) -> None:
        """Read the head of an answer, and decide what it means."""
        lane = self.lanes.get(fetch.at.origin)
        if lane is None or not fetch.is_sent:  # the lane was dropped, with what was asked behind
            fetch.is_ahead = False
            self.lanes.ask(fetch)
            return
        was_used, http = lane.http.answered > 0, lane.http
        try:
            # One that was asked for ahead may never come.
            reply = self._pipelining.reply(http, "GET") if fetch.is_ahead else http.reply("GET")
        except ConnectionLost:
            if not was_used or http.incoming.has_some:
                raise
            self._ask_again(fetch)  # a connection that was kept had ended
            return
        if was_used or not reply.may_have_followers:  # else it was opened meanwhile, and is kept
            self._goodput.answered(time.monotonic() - self.came_s)
        self.came_s = time.monotonic()
        behind = beside(fetch, self._fetches)
        if behind and self._answers.is_of_another(fetch, reply):
            self._ask_in_turn(fetch, behind)
        else:
            self._judge(fetch, reply)

    def _ask_in_turn(self, fetch: WebFetch, behind: Sequence[WebFetch]) -> None:
        """Ask anew where answers come in another order than requests: one after the other from now on."""
        self._pipelining.refuse(fetch.at.origin)
        self._fetches = [each for each in self._fetches if each not in behind]
        for each in behind:
            each.file.close()
            self._put_back(each)
        self._ask_again(fetch)

    def _put_back(self, fetch: WebFetch) -> None:
        """Have what was asked for, and has not come, handed out once more."""
        if self._whole_files or fetch.file.is_streamed:
            self.context.queue.put_again(fetch.file, last=fetch.file.failures > 1)
        else:
            self._scheduler.give_back(fetch.file, fetch.start, fetch.asked_end)

    def _judge(self, fetch: WebFetch, reply: HttpReply) -> None:
        """Decide what an answer means, and act on it."""
        try:
            fate = self._answers.judge(fetch, reply)
        except ServerBusy as error:
            raise self.one_too_many(error) from None
        if fate is None:
            fetch.reply = reply
            self.opened()
            return
        if not reply.is_ended:
            reply.read(WORTH_DROPPING)
        self._read_check(fetch, reply)
        self._fetches.remove(fetch)
        if isinstance(fate, MpxError):
            fetch.file.close()
            self._scheduler.give_up(fetch.file, fate)
        else:
            fetch.at = fate
            self._fetches.append(fetch)
            ask_when_due(self._fetches, self.lanes, self._pipelining)

    def _ask_again(self, fetch: WebFetch) -> None:
        """Ask anew for all that a connection was to answer which has ended."""
        self.lanes.drop(fetch.at.origin)
        same = [each for each in self._fetches if each.at.origin == fetch.at.origin]
        ask_anew(same, self.lanes, self._pipelining)

    def _lost_lane(self, fetch: WebFetch) -> None:
        """Close a connection after its last answer; what was asked behind it is asked for anew."""
        lane = self.lanes.get(fetch.at.origin)
        behind = beside(fetch, self._fetches)
        if lane is not None and behind:
            self._pipelining.ended(lane.http.origin, lane.http.answered)
        self.lanes.drop(fetch.at.origin)
        ask_anew(behind, self.lanes, self._pipelining)

    def _receive(self, fetch: WebFetch) -> None:
        lane = self.lanes.get(fetch.at.origin)
        assert isinstance(lane, ReceivingLane) and fetch.reply is not None
        size, new_bytes = self._receiver.receive(fetch)
        lane.passed_bytes += size
        lane.new_bytes += new_bytes
        self._new_bytes += new_bytes
        self.came_s = time.monotonic()
        self._goodput.add(size)
        if fetch.reply.is_ended:
            self._end(fetch)

    def _end(self, fetch: WebFetch) -> None:
        """Settle what a fetch has brought; raises what its end means, where it came too soon."""
        assert fetch.reply is not None
        self._goodput.ended(fetch.position - fetch.start)
        error = self._receiver.ended(fetch)
        now = self._read_check(fetch, fetch.reply)
        self._fetches.remove(fetch)
        if now is not None and fetch.file.is_whole and is_shown_unchanged(now, fetch.file):
            fetch.file.is_unchanged = True  # nobody has to ask again
        if error is not None:
            fetch.file.close()
            self._scheduler.give_up(fetch.file, error)
        elif not self._scheduler.let_go(fetch.file):
            self._scheduler.give_back(fetch.file, fetch.start, fetch.asked_end)

    def _read_check(self, fetch: WebFetch, reply: HttpReply) -> FileInfo | None:
        """Return what is told of a file behind a fetch; a connection that ends with its answer is left."""
        lane = self.lanes.get(fetch.at.origin)
        if lane is None or not reply.is_reusable:
            self._lost_lane(fetch)
            return None
        if not fetch.is_checked:
            return None
        lane.http.be_patient(min(self.context.options.timeout_s, stuck_s(self._goodput.cost.wait_s)))
        try:
            about = lane.http.reply("HEAD")
        except (ConnectionLost, TransferTimeout):  # another may be asked: the data are here
            self._lost_lane(fetch)
            return None
        lane.http.be_patient(None)
        if not about.is_reusable:
            self._lost_lane(fetch)
        return self._answers.told_behind(fetch, about)

    def _is_overtaken(self, fetch: WebFetch) -> bool:
        """Leave a connection that brings what others have brought, where nothing else is to be done."""
        if fetch.left_bytes < WORTH_DROPPING or fetch.file.is_streamed or len(self._fetches) > 1:
            return False
        if not fetch.file.is_claimed and fetch.file.missing_within(fetch.position, fetch.end).size:
            return False
        self._fetches.remove(fetch)
        self.lanes.drop(fetch.at.origin)
        if not self._scheduler.let_go(fetch.file):
            # The server may have sent less at once than it was asked for.
            self._scheduler.give_back(fetch.file, fetch.start, fetch.asked_end)
        return True

    # --- what becomes of it when the connection is lost -----------------------------------------------

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker."""
        if self._fetches and isinstance(error, ConnectionLost):
            self._note_lost(self._fetches[0])
        self.drop()
        self._goodput.forget()
        was_asked, self._was_asked = self._was_asked, False
        files = list(dict.fromkeys(fetch.file for fetch in self._fetches)) if was_asked else []
        return Lost(files, self._new_bytes > self._before_bytes)

    def _note_lost(self, fetch: WebFetch) -> None:
        """Note what may have been the cause: where a redirect led to, or requests that were sent ahead."""
        if fetch.at != fetch.url:
            self.access.forget_moved(fetch.url, fetch.at)
        lane = self.lanes.get(fetch.at.origin)
        if lane and beside(fetch, self._fetches):
            self._pipelining.ended(fetch.at.origin, lane.http.answered)

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
            if self._scheduler.let_go(file) or file.is_claimed:
                continue
            if self._whole_files or file.is_streamed:
                file.failures += self.is_due_to_file(error)
            if file.failures > self.context.options.retries:
                self._scheduler.give_up(file, error)
            else:
                self._put_back(fetch)
