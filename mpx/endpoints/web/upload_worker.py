"""Uploads over HTTP, one worker: each file is one PUT; several workers send several files."""

import os
import time

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.body import FileBody
from mpx.endpoints.web.file_put import FilePut
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.engine.retry import ServerBusy
from mpx.engine.session_worker import Lost
from mpx.engine.source_stream import is_made_up
from mpx.errors import ConnectionLost, Interrupted, MpxError, NoSpace, TransferTimeout
from mpx.files.local_error import local_error


class WebUploadWorker(WebWorker):
    """Sends file after file."""

    def __init__(
        self, number: int, path: str, access: WebAccess, context: CarrierContext, scheduler: RangeScheduler
    ) -> None:
        super().__init__(number, path, "source", access, context)
        # This thread's own:
        self._scheduler = scheduler
        self._piece: Piece | None = None  # in hand
        self._bodies = FileBody(self.control.limiter, context.failure.cancel.is_set)
        self._put = FilePut(access, self.lanes, context.options.timeout_s)

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """See SessionWorker."""
        self.is_busy = False
        self.renew_if_asked()
        piece = self._scheduler.take_file() if self.target else None
        if piece is None:
            return False
        self._piece, self._put.was_tried = piece, False
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

    # --- what becomes of it when the connection is lost -----------------------------------------------

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Nothing of a file that was not stored whole is of use."""
        del error
        self.drop()
        return Lost([self._piece.file] if self._piece and self._put.was_tried else [], progressed=False)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._piece = None
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A file is sent again only as often as --retries allows."""
        piece, self._piece = self._piece, None
        if piece is not None:
            self.carry_again(piece.file, error, was_tried=self._put.was_tried)
