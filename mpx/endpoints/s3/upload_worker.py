"""Uploads to S3, one worker: small files in one request each, parts of large ones beside other workers.

Checksums are computed before bytes are sent, and go with them, so that a server stores nothing that changed
on its way; what it answers shows what it has stored.
"""

import contextlib
import os
import time
from collections.abc import Iterator

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.beginning import continued, discard, new_upload
from mpx.endpoints.s3.part_scheduler import PartScheduler, SendFile, SendPart
from mpx.endpoints.s3.parts import WHOLE_BYTES, PartedFile, part_bytes_of
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.refusals import NO_UPLOAD, S3Error
from mpx.endpoints.s3.sending import Bytes, PartSender, Sums
from mpx.endpoints.s3.streaming import send_stream
from mpx.endpoints.s3.uploads import StoredPart
from mpx.endpoints.s3.whole_put import PLAIN, put_whole
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import ServerBusy
from mpx.engine.session_worker import Lost
from mpx.engine.source_change import AGAIN
from mpx.engine.source_stream import is_made_up
from mpx.errors import (
    ConnectionLost,
    DestinationError,
    IntegrityError,
    Interrupted,
    MpxError,
    NoSpace,
    TransferTimeout,
)
from mpx.files.local_error import local_error


class S3UploadWorker(WebWorker):
    """Sends what the scheduler hands out."""

    def __init__(
        self, number: int, path: str, access: S3Access, context: CarrierContext, scheduler: PartScheduler
    ) -> None:
        super().__init__(number, path, "source", access, context)
        self.s3 = access
        # This thread's own:
        self._scheduler = scheduler
        self._work: SendFile | SendPart | None = None  # in hand
        self.was_tried = False
        stop = context.failure.cancel.is_set
        self.questions = S3Questions(access, DestinationError, stop)
        timeout_s = context.options.timeout_s
        self.sender = PartSender(access, self.lanes, self.control.limiter, timeout_s, stop)

    # --- the loop ------------------------------------------------------------------------------------

    def step(self) -> bool:
        """See SessionWorker."""
        self.is_busy = False
        self.renew_if_asked()
        work = self._scheduler.take_work() if self.target else None
        if work is None:
            if self.target and self._scheduler.is_beginning:
                self.lanes.to(self.s3.origin)  # connected by the time that there are parts
            return False
        self._work, self.was_tried = work, False
        self.is_busy, self.came_s = True, time.monotonic()
        self._carry(work)
        self._work = None
        self.retry.progressed()
        return True

    def _carry(self, work: SendFile | SendPart) -> None:
        file = work.file
        try:
            if not file.is_claimed:
                self.do(work)
        except (Interrupted, NoSpace):
            raise
        except MpxError as error:
            is_stored = isinstance(work, SendPart) and work.parted.has(work.number)  # by another worker
            is_lost = isinstance(error, (ConnectionLost, TransferTimeout))
            if error.exit_code == MpxError.exit_code or (is_lost and not is_stored):
                raise
            self.drop()
            if not is_stored:
                self._scheduler.give_up(file, error)
                return
        finally:
            if isinstance(work, SendPart):
                self._scheduler.part_ended(work)
        if file.claim_whole():
            self.context.supervisor.whole(file)

    def do(self, work: SendFile | SendPart) -> None:
        """Do what the scheduler has handed out; raises what it fails by."""
        file = work.file
        try:
            fd = file.open(file.source, os.O_RDONLY)
        except OSError as error:
            raise local_error(error, file.source, writing=False) from None
        try:
            if isinstance(work, SendPart):
                self._send_part(work, fd)
            else:
                self._send_file(file, fd)
        finally:
            file.close()

    def _send_file(self, file: FileTransfer, fd: int) -> None:
        if is_made_up(os.fstat(fd)):
            file.stream()
        note = self.context.supervisor.note
        if file.is_streamed:
            discard(self.questions, file.partial, note)
            file.take_all()
            send_stream(self, self.questions, file, fd)
        elif file.size_bytes <= WHOLE_BYTES:
            self._put(file, Bytes(file.source, fd, 0, file.size_bytes))
        else:
            self._begin(file, fd)

    # --- in one request ------------------------------------------------------------------------------

    def _put(self, file: FileTransfer, some: Bytes) -> None:
        before = os.fstat(some.fd)
        sums = self.sender.sums(some)
        after = os.fstat(some.fd)
        if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
            raise IntegrityError(f"{file.named()} changed while it was copied; {AGAIN}")
        self.put_whole(file, some, sums)
        file.landed(0, file.size_bytes)

    def put_whole(self, file: FileTransfer, some: Bytes, sums: Sums) -> None:
        """Store an object in one request; raises what a refusal means."""
        reply = put_whole(self, file, some, sums)
        if self.verifies(file) and (proof := sums.proof(reply, file.named())):
            file.found_same(some.start, some.end, proof)
        self.keep_stored(file, some.size_bytes)

    def keep_stored(self, file: FileTransfer, size_bytes: int) -> None:
        """Note that an object is stored under its final name."""
        self.s3.uploads.stored(file.partial, file.final, size_bytes)

    def verifies(self, file: FileTransfer) -> bool:
        """Tell whether a file is to be compared by checksum."""
        return file.sums.algorithm != "none"

    def put_bytes(self, url: WebUrl, some: Bytes, sums: Sums) -> HttpReply:
        """See WholePutter."""
        self.was_tried = True
        reply, body = self.sender.put(url, some, sums, PLAIN, has_crc32=True)
        if S3Error(body).code or not is_success(reply):
            raise self.refusal(reply, body, url)
        self.opened()
        return reply

    def refusal(self, reply: HttpReply, body: bytes, url: WebUrl) -> MpxError:
        """Return the error for an answer that is no success."""
        error = self.s3.refused_with(reply, body, url, "store", DestinationError)
        return self.one_too_many(error) if isinstance(error, ServerBusy) else error

    # --- in parts ------------------------------------------------------------------------------------

    def _begin(self, file: FileTransfer, fd: int) -> None:
        """Begin an upload, or go on with one, and have its parts handed out."""
        self.was_tried = True
        stop = self.context.failure.cancel.is_set
        parted = None
        if self.context.options.resume:
            verifies = self.verifies(file)
            parted = continued(self.questions, file, self.sender, fd, stop, verifies=verifies)
        if parted is None:
            parted = self.begin_anew(file, part_bytes_of(file.size_bytes))
        self.hand_out(parted)

    def begin_anew(self, file: FileTransfer, part_bytes: int, source: str | None = None) -> PartedFile:
        """Begin an upload; one that an earlier run has begun is aborted.

        `source`: the ETag of what the server copies, empty where it tells none; None: bytes are sent.
        """
        self.was_tried = True
        note = self.context.supervisor.note
        with self._scheduler.beginning(), self.asking_over_lane():
            discard(self.questions, file.partial, note)
            self._forget(file)
            return new_upload(
                self.questions, file, part_bytes, note, has_sums=source is None, source=source or ""
            )

    @contextlib.contextmanager
    def asking_over_lane(self) -> Iterator[None]:
        """Ask, within, over the connection that parts will be sent over."""
        origin, dialogue = self.s3.origin, self.questions.dialogue
        http = self.lanes.to(origin).http
        dialogue.keep(http)
        try:
            yield
        finally:
            left = dialogue.let_go(origin)
            if left is not http:  # it has ended, or is not fit to be kept
                self.lanes.drop(origin)
                if left is not None:
                    self.s3.give_back(left)

    def hand_out(self, parted: PartedFile) -> None:
        """Have the parts of a file handed out to all workers."""
        self._scheduler.put(parted)

    def _forget(self, file: FileTransfer) -> None:
        if file.arrived_bytes:
            file.forget_arrived()
            self.context.supervisor.forgot(file)

    def _send_part(self, work: SendPart, fd: int) -> None:
        parted, number = work.parted, work.number
        start, end = parted.range_of(number)
        some = Bytes(work.file.source, fd, start, end)
        self.send_part(parted, number, some)

    def send_part(self, parted: PartedFile, number: int, some: Bytes) -> None:
        """Store a part; raises what a refusal means. An upload that the server has forgotten begins anew."""
        file, begun = parted.file, parted.begun
        sums = self.sender.sums(some)
        url = self.s3.asking(begun.name, {"partNumber": number, "uploadId": begun.upload_id})
        self.was_tried = True
        reply, body = self.sender.put(url, some, sums, {}, has_crc32=parted.has_crc32)
        if not self.is_stored(parted, reply, body, url):
            return
        proof = sums.proof(reply, file.named())
        etag = reply.header("ETag")
        part = StoredPart(number, some.size_bytes, etag, sums.md5, sums.crc32)
        parted.stored(part, proof if self.verifies(file) else "")

    def is_stored(self, parted: PartedFile, reply: HttpReply, body: bytes, url: WebUrl) -> bool:
        """Tell whether an answer says that a part is stored; False where the upload begins anew.

        Raises what a refusal means.
        """
        code = S3Error(body).code
        if code == NO_UPLOAD:
            self._start_over(parted)
            return False
        if code or not is_success(reply):
            raise self.refusal(reply, body, url)
        self.opened()
        return True

    def _start_over(self, parted: PartedFile) -> None:
        file = parted.file
        if not parted.die():
            return
        self.s3.uploads.ended(file.partial)
        self.context.supervisor.note(
            f"{file.named()}: the server has forgotten the upload that was begun; starting over"
        )
        self._forget(file)
        file.failures += 1
        if file.failures > self.context.options.retries:
            gone = f"{self.s3.url_of(file.final)}: the server forgets uploads before they are complete"
            raise DestinationError(gone)
        self.context.queue.put_again(file)

    # --- what becomes of it when the connection is lost -----------------------------------------------

    def drop(self) -> None:
        """See SessionWorker."""
        super().drop()
        self.questions.close()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Parts that were stored stay; nothing of one that was not is of use."""
        del error
        self.drop()
        return Lost([self._work.file] if self._work and self.was_tried else [], progressed=False)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._work = None
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A file is sent again only as often as --retries allows."""
        work, self._work = self._work, None
        if isinstance(work, SendPart):
            work.parted.give_back(work.number)
            self._scheduler.put(work.parted)
        elif work is not None:
            self.carry_again(work.file, error, was_tried=self.was_tried)
