"""Copies from one web server to another, the workers: each has one file after the other copied."""

import contextlib
import time
from collections.abc import Mapping

from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.refusals import MISSING, NOT_MET, is_success
from mpx.endpoints.web.third_party.copying import MARKER_S, Copying, CopyRefusal
from mpx.endpoints.web.third_party.handed import Handed, Means
from mpx.endpoints.web.third_party.handing import Handing
from mpx.endpoints.web.third_party.way import CopyWay
from mpx.endpoints.web.url import WebUrl
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.marked_bytes import MarkedBytes
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.retry import ServerBusy
from mpx.engine.session_worker import Lost
from mpx.engine.stream import StreamTotals
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    IsThere,
    MpxError,
    NoSpace,
    ThirdPartyRefused,
    TransferTimeout,
)

SHORTEST_SPREAD_S = 0.2
_DENIED = (401, 403)  # as XRootD answers COPY where a folder may not be written in
_FULL = "no space left"  # in what a server says of its own disk, in lower case
REMOVE_S = 10.0  # that a server has to remove what is left, when nobody waits for more


class WebPairWorker(WebWorker):
    """Has whole files copied by the server that is told."""

    def __init__(
        self, number: int, way: CopyWay, handing: Handing, context: CarrierContext, scheduler: RangeScheduler
    ) -> None:
        super().__init__(number, DEFAULT_PATH, "sink", way.active, context)
        self.host = way.hosts
        # Guarded by `guard`:
        self._bytes = MarkedBytes(MARKER_S)
        # This thread's own:
        self._way, self._handing, self._scheduler = way, handing, scheduler
        stop = context.failure.cancel.is_set
        self._passive = WebDialogue(way.passive, stop, follows=False)  # asked for macaroons
        self._destination = WebDialogue(way.destination, stop)  # asked to remove
        self._copying = Copying(way, self.lanes, context.options.timeout_s, self._is_at)
        self._file: FileTransfer | None = None  # in hand
        self._was_tried = False  # ... and something of it may be stored
        self._left: FileTransfer | None = None  # the last of which an attempt may have left something
        self._told_bytes, self._told_s = 0, 0.0  # of it, and when

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker. The servers' word is all that there is."""
        shown_bytes = int(self._bytes.shown(time.monotonic()))
        return {DEFAULT_PATH: StreamTotals(streams=int(self.is_busy), bytes=shown_bytes)}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    # --- the loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """See SessionWorker. Where the copy ends before its end, what was under way is removed."""
        super().run()
        if self._left is not None and self.context.failure.cancel.is_set():
            dialogue = WebDialogue(self._way.destination, lambda: False)
            with contextlib.closing(dialogue), contextlib.suppress(MpxError), dialogue.patient(REMOVE_S):
                self._remove(dialogue, self._way.destination.url_of(self._left.partial), self._left)

    def step(self) -> bool:
        """See SessionWorker."""
        self.is_busy = False
        self.renew_if_asked()
        piece = self._scheduler.take_file() if self.target else None
        if piece is None:
            return False
        self._file, self._was_tried = piece.file, False
        self.is_busy = True
        try:
            self._carry(piece.file)
        except ServerBusy as error:
            raise self.one_too_many(error) from None
        self._file = None
        self.retry.progressed()
        return True

    def _carry(self, file: FileTransfer) -> None:
        if why := self._way.why_not_told(file):
            raise ThirdPartyRefused(why)
        self.open_session()
        if file.was_stored or file.was_begun:  # who was to copy it may do so still, into what has that name
            self._remove_partial(file)
        if self._way.is_only_new(file) and self._told_of_partial(file) is not None:
            self._scheduler.give_up(file, IsThere(str(self._way.destination.url_of(file.final))))
            return
        handed = self._handing.choose(file, self._passive)
        refusal = self._copy(file, handed)
        if refusal and refusal.is_about_credentials and (token := self._handing.instead_of(handed)):
            self._remove_partial(file)
            refusal, handed = self._copy(file, token), token
        if refusal is not None and self._is_put_off(refusal, file):
            return
        if refusal is not None:
            self._scheduler.give_up(file, self._what_means(refusal, file, handed))
            return
        self._left = None
        self._handing.proved(handed)
        # Of a file whose source tells no size, what is stored; other sizes are compared before it is renamed.
        size_bytes = file.size_bytes if file.listed_bytes is not None else self._stored_bytes(file)
        self._is_at(size_bytes)
        file.landed(0, size_bytes)
        if file.is_streamed:
            self._scheduler.ended(file, size_bytes)
        if file.claim_whole():
            self.context.supervisor.whole(file)

    def _copy(self, file: FileTransfer, handed: Handed) -> CopyRefusal | None:
        self._told_bytes, self._told_s = 0, time.monotonic()
        self._was_tried = file.was_stored = True
        self._left = file
        return self._copying.copy(file, handed)

    def _stored_bytes(self, file: FileTransfer) -> int:
        """Ask how much was stored of a file whose source tells no size that counts."""
        size_bytes = self._told_of_partial(file)
        if size_bytes is None:
            place = self._way.destination.origin
            raise ThirdPartyRefused(f"{place} does not tell how much of {file.source} it has stored")
        return size_bytes

    def _told_of_partial(self, file: FileTransfer) -> int | None:
        """Ask the destination how much it has of a file; None where it does not tell."""
        url = self._way.destination.url_of(file.partial)
        with self._destination.ask("HEAD", url) as (reply, _):
            return reply.told_bytes if is_success(reply) else None

    def _is_at(self, size_bytes: int) -> None:
        """Take how much of a file has been copied; what is told at once has come since it was told last."""
        now_s = time.monotonic()
        spread_s = min(max(now_s - self._told_s, SHORTEST_SPREAD_S), MARKER_S)
        with self.guard:
            self._bytes.add(now_s, size_bytes - self._told_bytes, spread_s)
        self._told_bytes, self._told_s = size_bytes, now_s
        self.context.events.inbound.set()  # this way of copying works

    # --- refusals ------------------------------------------------------------------------------------

    def _is_put_off(self, refusal: CopyRefusal, file: FileTransfer) -> bool:
        """Have others copied first, where it may be this file that is refused, not this way of copying."""
        is_first = not self.context.events.inbound.is_set()
        if not (is_first and refusal.may_be_of_file and self.context.queue.has_others):
            return False
        if not self._handing.may_put_off(file):
            return False
        self.context.queue.put_again(file, last=True)
        return True

    def _is_let_in(self, file: FileTransfer) -> bool:
        """Ask the server that refuses us a file with 401 something else, which it may answer all the same."""
        with (
            contextlib.closing(WebDialogue(self._way.active, self.context.failure.cancel.is_set)) as dialogue,
            dialogue.ask("HEAD", self._way.asked_at(file)) as (reply, _),
        ):
            return is_success(reply) or reply.status in MISSING

    def _what_means(self, refusal: CopyRefusal, file: FileTransfer, handed: Handed) -> MpxError:
        """Return what is wrong with a file; raises what concerns all, or may be tried again.

        Where no file was copied yet it is this way of copying that is refused.
        """
        if refusal.is_local_copy:
            self._remove_local_copy(file)
        error = refusal.error
        if refusal.own_status == NOT_MET and self._way.is_pull and self._way.is_only_new(file):
            return IsThere(str(self._way.destination.url_of(file.final)))
        if isinstance(error, (NoSpace, ServerBusy, TransferTimeout)):
            raise error
        if self._way.is_pull and refusal.status is None and _FULL in refusal.text.lower():
            raise NoSpace(f"{refusal.text}; free some and copy the same SRC to the same DST again")
        if not self.context.events.inbound.is_set():
            if denied := self._why_denied(refusal, file):
                return denied
            if refusal.is_unexplained and not file.failures and self._told_of_partial(file):
                raise ConnectionLost(refusal.text)  # after some of it: this way may work next time
            raise ThirdPartyRefused(refusal.text)
        if isinstance(error, AuthenticationError):
            if not self._is_let_in(file):
                raise error
            return self._way.kind_here(f"{refusal.text} for this file")
        if error is not None and not error.may_retry:
            return error
        if error is None and refusal.status is not None and 400 <= refusal.status < 500:
            may_go_through_us = handed.means is not Means.TOKEN  # which is what we would show
            if refusal.is_about_credentials and may_go_through_us:
                raise ThirdPartyRefused(refusal.text)
            return self._way.error_there(refusal.text)
        raise ConnectionLost(refusal.text)

    def _why_denied(self, refusal: CopyRefusal, file: FileTransfer) -> MpxError | None:
        """Return why the destination stores a file from nobody, so that no other way is tried; None: it may.

        Not of one that is there by its final name, which this might change.
        """
        is_of_destination = self._way.is_pull and refusal.own_status in _DENIED
        if not is_of_destination or file.partial == file.final:
            return None
        url, destination = self._way.destination.url_of(file.partial), self._way.destination
        with self._destination.ask("PUT", url) as (reply, asked):
            error = (
                None if is_success(reply) else destination.refused(reply, asked, "store", DestinationError)
            )
        if error is None:
            self._remove_partial(file)
        return error if isinstance(error, DestinationError) and not error.may_retry else None

    def _remove_local_copy(self, file: FileTransfer) -> None:
        """Remove what a server has made that knows no others: a copy within itself."""
        if file.partial != file.final:
            with contextlib.closing(WebDialogue(self._way.source)) as dialogue:
                self._remove(dialogue, self._way.source.url_of(file.partial), file)

    def _remove_partial(self, file: FileTransfer) -> None:
        """Remove what an attempt has left at the destination."""
        self._remove(self._destination, self._way.destination.url_of(file.partial), file)

    @staticmethod
    def _remove(dialogue: WebDialogue, url: WebUrl, file: FileTransfer) -> None:
        """Remove a file that is ours, as its name tells."""
        if file.partial != file.final:
            with dialogue.ask("DELETE", url):
                pass  # where it cannot be removed it is replaced

    # --- what becomes of it when the connection is lost -----------------------------------------------

    def drop(self) -> None:
        """See SessionWorker."""
        super().drop()
        self._passive.close()
        self._destination.close()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Raises ThirdPartyRefused: then the copy goes on another way."""
        if isinstance(error, ThirdPartyRefused):
            raise error
        self.drop()
        file = self._file
        if file is None or not self._was_tried:
            return Lost([], progressed=False)
        is_patience_over = isinstance(error, TransferTimeout) or file.failures > 0
        if is_patience_over and not self.context.events.inbound.is_set():
            raise ThirdPartyRefused(str(error))
        return Lost([file], progressed=False)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._file = None
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A file is copied again only as often as --retries allows."""
        file, self._file = self._file, None
        if file is not None:
            self.carry_again(file, error, was_tried=self._was_tried)
