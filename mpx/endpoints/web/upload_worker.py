"""Uploads over HTTP, one worker: whole files in one PUT each, and parts of large ones beside other workers.

Parts only where a probe has shown that the server keeps the rest of a file (part_probe.py). A proxy that
loses the header of one part has it replace the file, and later ones give that its size: so some bytes are
read back at the end, where no checksum is known to come.
"""

import contextlib
import os
import posixpath
import time
from collections.abc import Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.body import FileBody
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.file_put import FilePut
from mpx.endpoints.web.goodput import Goodput
from mpx.endpoints.web.part_probe import CREATED
from mpx.endpoints.web.part_put import PartAnswer, PartPut
from mpx.endpoints.web.part_samples import SAMPLE_BYTES, are_stored, samples_of
from mpx.endpoints.web.refusals import REDIRECTS
from mpx.endpoints.web.storing_parts import StoringParts
from mpx.endpoints.web.upload_scheduler import UploadScheduler
from mpx.endpoints.web.url import WebUrl
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import SMALLEST_PIECE, Piece
from mpx.engine.ranges import Range, RangeSet
from mpx.engine.retry import ServerBusy
from mpx.engine.session_worker import Lost
from mpx.engine.source_stream import is_made_up
from mpx.errors import ConnectionLost, DestinationError, Interrupted, MpxError, NoSpace, TransferTimeout
from mpx.files.local_error import local_error

PIECE_S = 0.25  # a part lasts so long: what was not answered is lost with the connection
APART_BYTES = 2 * 1024 * 1024  # at least, of samples of what this run has stored
MOST_PIECES = 128  # smallest ones, in one
_NO_PARTS = (400, 405, 411, 416, 501, *REDIRECTS)  # answers of a server that takes no parts after all


class WebUploadWorker(WebWorker):
    """Sends part after part, and file after file."""

    def __init__(
        self, number: int, path: str, access: WebAccess, context: CarrierContext, scheduler: UploadScheduler
    ) -> None:
        super().__init__(number, path, "source", access, context)
        # This thread's own:
        self._scheduler = scheduler
        self._file: FileTransfer | None = None  # in hand, whole
        timeout_s = context.options.timeout_s
        self._bodies = FileBody(self.control.limiter, context.failure.cancel.is_set)
        self._put = FilePut(access, self.lanes, timeout_s)
        self._parts = PartPut(access, self.lanes, self._bodies, timeout_s)
        self._goodput = Goodput()
        origin, stop = access.origin, context.failure.cancel.is_set
        self._storing = StoringParts(
            access, lambda: self.lanes.to(origin).http, lambda: self.lanes.drop(origin), stop
        )

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """See SessionWorker."""
        if not self._parts.pieces:
            self.is_busy = False
            self.renew_if_asked()
        may_send = (
            self.target and not self.is_to_renew and self._parts.may_send and not self._parts.has_answer
        )
        piece = self._scheduler.take_part(self._piece_bytes) if may_send else None
        if piece is not None:
            self._begin()
            self._send_part(piece)
        elif self._parts.pieces:
            self._settle(self._parts.answer())
            if self._parts.is_cut_off:
                self._give_back_parts()
        elif self.target and (file := self._scheduler.take_next()) is not None:
            self._begin()
            self._file, self._put.was_tried = file, False
            self._carry(file)
            self._file = None
            self.retry.progressed()
        else:
            return False
        return True

    def _begin(self) -> None:
        self.is_busy, self.came_s = True, time.monotonic()

    @property
    def _piece_bytes(self) -> int:
        pieces = int(self._goodput.guess * PIECE_S) // SMALLEST_PIECE
        return min(max(pieces, 1), MOST_PIECES) * SMALLEST_PIECE

    # --- files ---------------------------------------------------------------------------------------

    def _carry(self, file: FileTransfer) -> None:
        """Store a file whole, or have all workers store its parts."""
        fd = self._open(file)
        if fd is None:
            return
        try:
            if is_made_up(os.fstat(fd)):
                file.stream()
            if file.is_whole and file.size_bytes:  # in parts, by an earlier run or by this one
                self._put.was_tried = True
                self._check_arrived(file, fd)
            if not (file.is_whole and file.size_bytes):
                if self._goes_in_parts(file) and self._begins_parts(file, fd):
                    self.opened()
                    self._scheduler.put_back(file)
                    return
                self._scheduler.take_whole(file)
                self._put.store(file, lambda body: self._bodies.send(file, fd, body), is_repeatable=True)
                self.opened()
                file.landed(0, file.size_bytes)
        except ServerBusy as error:
            raise self.one_too_many(error) from None
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

    def _open(self, file: FileTransfer) -> int | None:
        """Open a source; None for one that cannot be, which is given up."""
        try:
            return file.open(file.source, os.O_RDONLY)
        except OSError as error:
            self._scheduler.give_up(file, local_error(error, file.source, writing=False))
            return None

    def _goes_in_parts(self, file: FileTransfer) -> bool:
        is_fit = not (file.is_streamed or file.is_small or file.partial == file.final)
        if not is_fit or self.access.has_queries or not self._scheduler.may_divide(file):
            return False
        return self._storing.is_proven(posixpath.dirname(file.partial))

    def _begins_parts(self, file: FileTransfer, fd: int) -> bool:
        """Have its partial file there; False where its parts cannot be stored after all."""
        self._put.was_tried = True
        if file.arrived_bytes:
            self._check_arrived(file, fd)
        if not self._scheduler.may_divide(file):
            return False
        if file.arrived_bytes or self._parts.make(file):
            return True
        self.access.part_stores.refused(posixpath.dirname(file.partial), "the server leads elsewhere")
        return False

    def _check_arrived(self, file: FileTransfer, fd: int) -> None:
        """Forget what has been stored where some bytes that are read back are not there any more."""
        size_bytes = file.size_bytes
        first = self._scheduler.first_parts(file)
        arrived = RangeSet([(0, size_bytes)]).without(file.missing_within(0, size_bytes))
        samples = samples_of(arrived, APART_BYTES if first else SAMPLE_BYTES)
        samples = [(max(start, end - SAMPLE_BYTES), end) for start, end in first] + samples
        found = self._are_stored(self.access.stored_as(file), fd, samples)
        if found or (found is None and first):  # what this run has sent was answered for
            return
        file.forget_arrived()
        self.context.supervisor.forgot(file)
        if not first:
            self.context.supervisor.note(f"{file.partial} is another than was recorded; starting over")
            return
        self._scheduler.only_whole(file, is_in_hand=True)
        why = "parts that were stored are not there any more"
        self.access.part_stores.refused(posixpath.dirname(file.partial), why)
        self.context.supervisor.note(f"{file.source} is sent again, in one stream: {why}")

    def _are_stored(self, url: WebUrl, fd: int, samples: Sequence[Range]) -> bool | None:
        """Ask over this worker's connection, on which nothing is under way."""
        origin, http = self.access.origin, self.lanes.to(self.access.origin).http
        stop = self.context.failure.cancel.is_set
        with contextlib.closing(
            WebDialogue(self.access, stop, kind=DestinationError, follows=False)
        ) as dialogue:
            dialogue.keep(http)
            try:
                return are_stored(dialogue, url, fd, samples)
            finally:
                if dialogue.has(http):
                    dialogue.let_go(origin)
                else:
                    self.lanes.drop(origin)

    # --- parts ---------------------------------------------------------------------------------------

    def _send_part(self, piece: Piece) -> None:
        file = piece.file
        fd = self._open(file)
        if fd is None:
            return
        try:
            self._parts.send(piece, fd)
        except (ConnectionLost, TransferTimeout) as lost:
            self._settle_all(lost)
        except Interrupted:
            raise
        except MpxError as error:
            self._refuse(file, error)
        finally:
            file.close()

    def _settle_all(self, lost: MpxError) -> None:
        """Take the answers that came before a connection was lost; raises what the first refusal means."""
        while self._parts.pieces:
            try:
                answer = self._parts.answer()
            except MpxError:
                raise lost from None
            self._settle(answer)
        raise lost

    def _settle(self, answer: PartAnswer) -> None:
        """Take the answer to a part."""
        piece, error = answer.piece, answer.error
        file = piece.file
        self.came_s = time.monotonic()
        if answer.status == CREATED:
            self._store_whole(file, "its partial file was removed while it was stored")
        elif answer.status in _NO_PARTS:
            folder = posixpath.dirname(file.partial)
            self.access.part_stores.refused(folder, f"the server answers {answer.status} to a part of a file")
            self._store_whole(file, str(error))
        elif error is not None:
            self._scheduler.give_back(file, piece.start, piece.end)
            self._refuse(file, error)
        else:
            self.opened()
            file.landed(piece.start, piece.end)
            self._goodput.add(piece.end - piece.start)
            self.retry.progressed()
            self._scheduler.stored(piece)
            if not file.is_whole:
                return
            if not self._will_be_verified:
                self._scheduler.look_at(file)
            elif file.claim_whole():
                self.context.supervisor.whole(file)

    @property
    def _will_be_verified(self) -> bool:
        """Whether a checksum of all that is stored will be compared, as far as that is known."""
        return self.access.server.is_known_to_compute or bool(self.access.options.asked_checksum)

    def _store_whole(self, file: FileTransfer, why: str) -> None:
        """Have a file stored in one stream, from its first byte."""
        if self._scheduler.only_whole(file):
            self.context.supervisor.note(f"{file.source} is sent again, in one stream: {why}")

    def _refuse(self, file: FileTransfer, error: MpxError) -> None:
        """Give a file up that cannot be stored; raises what is tried again, or ends the copy."""
        if isinstance(error, ServerBusy):
            raise self.one_too_many(error)
        if error.may_retry or isinstance(error, NoSpace) or error.exit_code == MpxError.exit_code:
            raise error
        self._give_back_parts()
        self._scheduler.give_up(file, error)

    def _give_back_parts(self) -> None:
        """Leave what is under way to others, or to a later attempt; the connection is closed."""
        self.drop()
        for piece in self._parts.take_pieces():
            self._scheduler.give_back(piece.file, piece.start, piece.end)

    # --- what becomes of it when the connection is lost -----------------------------------------------

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Nothing of a file, or part, that was not stored whole is of use."""
        del error
        self._parts.lost()
        self.drop()
        if pieces := self._parts.pieces:
            return Lost([pieces[0].file], progressed=False)
        return Lost([self._file] if self._file and self._put.was_tried else [], progressed=False)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._file = None
        self._scheduler.give_up(file, error)
        self._give_back_parts()

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A whole file is sent again only as often as --retries allows."""
        self._give_back_parts()
        file, self._file = self._file, None
        if file is not None:
            self.carry_again(file, error, was_tried=self._put.was_tried)
