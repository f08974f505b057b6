"""Uploads over HTTP, one worker: a file is one PUT, from its first byte; several workers send several files.

The head goes first with `Expect: 100-continue`, so that a server that refuses, or leads elsewhere, says so
before the data are sent. Short files are sent at once where the server has taken one before.
"""

import os
import time
from contextlib import suppress

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.body import BodySender
from mpx.endpoints.web.dialogue import MOST_REDIRECTS, redirected
from mpx.endpoints.web.lanes import WebLane
from mpx.endpoints.web.refusals import REDIRECTS, is_success, refused
from mpx.endpoints.web.reply import EXPECT_CONTINUE, Reply
from mpx.endpoints.web.url import WebUrl
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.retry import ServerBusy
from mpx.engine.session_worker import Lost
from mpx.engine.source_stream import is_made_up
from mpx.errors import ConnectionLost, DestinationError, Interrupted, MpxError, NoSpace, TransferTimeout
from mpx.files.local_error import local_error
from mpx.net import congestion_control, pacing

SHORT_BYTES = 64 * 1024  # what is sent at once; less than a connection takes that has just begun
CONTINUE_S = 1.0  # after which a server that says nothing gets the data all the same (RFC 9110, 10.1.1)
STORED_BPS = 160e6  # how fast a server stores what it has, at least: its answer has as much more time
UNSENT_BYTES = 512 * 1024  # that the kernel may hold, so that goodput counts what has arrived
_EXPECTATION_FAILED, _LENGTH_REQUIRED = 417, 411


class WebUploadWorker(WebWorker):
    """Sends file after file."""

    def __init__(
        self, number: int, path: str, access: WebAccess, context: CarrierContext, scheduler: RangeScheduler
    ) -> None:
        super().__init__(number, path, "source", access, context)
        # This thread's own:
        self._scheduler = scheduler
        self._piece: Piece | None = None  # in hand
        self._sender = BodySender(context, self.control.limiter)
        self._leads_on = True  # whether PUT may lead to another server, as far as that is known
        self._was_tried = False
        self._before_bytes = 0  # that its connection had carried before the file in hand

    # --- for the carrier, from any thread ------------------------------------------------------------

    def switch_congestion(self, name: str) -> None:
        """Switch open connections and all later ones; raises UsageError where that is not permitted."""
        self.lanes.congestion = name
        for connection in self.connections():
            with suppress(OSError):  # it has ended
                congestion_control.set_congestion(connection, name)

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """See SessionWorker."""
        self.is_busy = False
        self.renew_if_asked()
        piece = self._scheduler.take_file() if self.target else None
        if piece is None:
            return False
        self._piece, self._was_tried = piece, False
        self.is_busy, self.came_s = True, time.monotonic()
        self._carry(piece.file)
        self._piece = None
        self.retry.progressed()
        return True

    def _carry(self, file: FileTransfer) -> None:
        try:
            fd = file.open(file.source, os.O_RDONLY)
        except OSError as error:
            self._scheduler.give_up(file, local_error(error, file.source, writing=False))
            return
        try:
            if is_made_up(os.fstat(fd)):
                file.stream()
            self._store(file, fd)
        except (ConnectionLost, TransferTimeout, Interrupted, NoSpace):
            raise
        except MpxError as error:
            if error.exit_code == MpxError.exit_code:
                raise
            self.drop()
            self._scheduler.give_up(file, error)
            return
        finally:
            file.close()
        if file.claim_whole():
            self.context.supervisor.whole(file)

    # --- one file ------------------------------------------------------------------------------------

    def _store(self, file: FileTransfer, fd: int) -> None:
        """Send a file to where the server leads; raises what a refusal means, ConnectionLost and the like."""
        url, expects = self.access.url_of(file.partial), True
        for _ in range(MOST_REDIRECTS + 1):
            asks_first = expects and (self._leads_on or file.is_streamed or file.size_bytes > SHORT_BYTES)
            reply = self._put(file, fd, url, asks_first=asks_first)
            if reply.status == _EXPECTATION_FAILED and asks_first:
                expects = False
                continue
            if reply.status not in REDIRECTS:
                break
            to = redirected(reply, url)
            assert to is not None
            url = to
        else:
            raise DestinationError(f"{file.final}: the server leads from one URL to the next without end")
        self._leads_on = url.origin != self.access.origin
        if not is_success(reply):
            raise self._refusal(reply, url, file)
        self.opened()
        file.landed(0, file.size_bytes)

    def _refusal(self, reply: Reply, url: WebUrl, file: FileTransfer) -> MpxError:
        access = self.access
        error = refused(
            reply,
            url,
            "store",
            DestinationError,
            has_credentials=access.has_credentials(url.origin),
            help_text=access.how_to_log_in(url.origin),
        )
        if reply.status == _LENGTH_REQUIRED and file.is_streamed:
            return DestinationError(
                f"{error}; it takes nothing of unknown length: copy {file.source} from a file"
            )
        return self.one_too_many(error) if isinstance(error, ServerBusy) else error

    def _put(self, file: FileTransfer, fd: int, url: WebUrl, *, asks_first: bool) -> Reply:
        """Do one PUT; return the answer. Once more where a connection that was kept had ended."""
        lane = self.lanes.to(url.origin)
        was_used, self._was_tried = lane.http.answered > 0, True
        try:
            return self._put_over(lane, file, fd, url, asks_first=asks_first)
        except ConnectionLost:
            sent_bytes = lane.passed_bytes - self._before_bytes
            if not was_used or lane.http.incoming.has_some or sent_bytes > SHORT_BYTES or file.is_read_once:
                raise
        self.lanes.drop(url.origin)
        return self._put_over(self.lanes.to(url.origin), file, fd, url, asks_first=asks_first)

    def _put_over(
        self, lane: WebLane, file: FileTransfer, fd: int, url: WebUrl, *, asks_first: bool
    ) -> Reply:
        http, is_streamed = lane.http, file.is_streamed
        self._before_bytes = lane.passed_bytes
        if not lane.http.answered:
            pacing.limit_unsent(http.socket, UNSENT_BYTES)
        length = {"Transfer-Encoding": "chunked"} if is_streamed else {"Content-Length": str(file.size_bytes)}
        expect = {"Expect": "100-continue"} if asks_first else {}
        headers = {**length, **expect, "Content-Type": "application/octet-stream"}
        http.send(self.access.request("PUT", url, headers))
        if asks_first and (early := self._early(lane)):
            self.lanes.drop(url.origin)  # it may wait for the data still
            return early
        try:
            self._sender.send(lane, file, fd, is_chunked=is_streamed)
        except (ConnectionLost, TransferTimeout) as lost:
            return self._why_refused(lane, lost)
        http.incoming.timeout_s = self.context.options.timeout_s + file.size_bytes * 8 / STORED_BPS
        reply = http.reply("PUT")
        reply.read(SHORT_BYTES)
        http.incoming.timeout_s = self.context.options.timeout_s
        if not reply.is_reusable:
            self.lanes.drop(url.origin)
        return reply

    def _early(self, lane: WebLane) -> Reply | None:
        """Return the answer of a server that wants no data; None where they are to be sent."""
        incoming = lane.http.incoming
        incoming.timeout_s = CONTINUE_S
        try:
            reply = lane.http.reply("PUT", wants_continue=True)
        except TransferTimeout:
            return None
        finally:
            incoming.timeout_s = self.context.options.timeout_s
        if reply.status == EXPECT_CONTINUE:
            return None
        reply.read(SHORT_BYTES)
        return reply

    def _why_refused(self, lane: WebLane, lost: ConnectionLost | TransferTimeout) -> Reply:
        """Return the answer that a server gave before it stopped to take data; raises `lost` without one."""
        try:
            reply = lane.http.reply("PUT")
            reply.read(SHORT_BYTES)
        except MpxError:
            raise lost from None
        self.lanes.drop(lane.http.origin)
        if is_success(reply):  # of what it has not got
            raise lost
        return reply

    # --- what becomes of it when the connection is lost -----------------------------------------------

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Nothing of a file that was not stored whole is of use."""
        del error
        self.drop()
        return Lost([self._piece.file] if self._piece and self._was_tried else [], progressed=False)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._piece = None
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A file is sent again only as often as --retries allows."""
        piece, self._piece = self._piece, None
        if piece is not None:
            file = piece.file
            file.failures += self._was_tried and self.is_due_to_file(error)
            if file.failures > self.context.options.retries:
                self._scheduler.give_up(file, error)
            else:
                self.context.queue.put_again(file, last=file.failures > 1)
