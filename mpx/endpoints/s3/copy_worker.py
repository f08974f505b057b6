"""Copies within one server of S3, one worker: the server moves the data, a whole object or parts of one."""

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.answer import S3Answer, S3AnswerError
from mpx.endpoints.s3.beginning import continued_copy
from mpx.endpoints.s3.part_scheduler import PartScheduler, SendFile, SendPart
from mpx.endpoints.s3.parts import PartedFile, part_bytes_of
from mpx.endpoints.s3.refusals import LARGEST_ERROR_BYTES, S3Error, is_not_met
from mpx.endpoints.s3.upload_worker import S3UploadWorker
from mpx.endpoints.s3.uploads import StoredPart
from mpx.endpoints.web.file_put import STORED_BPS
from mpx.endpoints.web.names import encoded
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import AGAIN
from mpx.errors import ConnectionLost, IntegrityError, IsThere, MpxError

MOST_COPIED_BYTES = 5 << 30  # of one request; S3 permits no more
COPIED_PART_BYTES = 512 << 20


class S3CopyWorker(S3UploadWorker):
    """Asks the server for copies; `bucket`: of the sources."""

    def __init__(
        self,
        number: int,
        path: str,
        access: S3Access,
        context: CarrierContext,
        scheduler: PartScheduler,
        bucket: str,
    ) -> None:
        super().__init__(number, path, access, context, scheduler)
        self._bucket = bucket

    def do(self, work: SendFile | SendPart) -> None:
        """See S3UploadWorker."""
        file = work.file
        if isinstance(work, SendPart):
            self._copy_part(work.parted, work.number)
        elif file.size_bytes <= MOST_COPIED_BYTES:
            self._copy(file)
        else:
            part_bytes = max(COPIED_PART_BYTES, part_bytes_of(file.size_bytes))
            self.was_tried = True
            resumes = self.context.options.resume
            parted = continued_copy(self.questions, file, part_bytes) if resumes else None
            self.hand_out(parted or self.begin_anew(file, part_bytes, source=file.tag or ""))

    def _source_of(self, file: FileTransfer) -> dict[str, str]:
        """Return the headers that name the source: as it was when it was listed, or not at all."""
        source = {"x-amz-copy-source": f"/{self._bucket}{encoded(file.source)}"}
        return {**source, "x-amz-copy-source-if-match": file.tag} if file.tag else source

    def refusal(self, reply: HttpReply, body: bytes, url: WebUrl) -> MpxError:
        """See S3UploadWorker. The source is to be what was listed, and perhaps an object is to be new."""
        error = super().refusal(reply, body, url)
        if not is_not_met(reply, body) or (isinstance(error, IsThere) and self._is_there(url)):
            return error
        said = f"{url.origin}{url.path}: a condition is not met" if isinstance(error, IsThere) else error
        return IntegrityError(f"{said}; the source changed while it was copied; {AGAIN}")

    def _is_there(self, url: WebUrl) -> HttpReply | None:
        """Return what describes the object of a URL; None where there is none, as far as we may know."""
        with self.asking_over_lane():
            (reply,) = self.questions.heads_of([url])
        return reply if reply and is_success(reply) else None

    def _copy(self, file: FileTransfer) -> None:
        url, had_condition = self.access.url_of(file.final), self.s3.takes_conditions
        there = self._is_there(url) if self.s3.looks_before else None
        if not there:
            reply, body = self._ask(url, self._source_of(file), file.size_bytes)
            if not S3Error(body).code and is_success(reply):
                _etag_in(body, url)  # a status comes before the server knows
            else:
                error = self.refusal(reply, body, url)
                if self.s3.is_to_ask_without(error, had_condition=had_condition):
                    self._copy(file)  # having looked
                    return
                there = self._is_there(url) if isinstance(error, IsThere) else None
                if not there:
                    raise error
        # It may be a copy by an attempt before, whose answer was lost.
        if there and (there.told_bytes != file.size_bytes or there.header("ETag") != file.tag):
            raise IsThere(str(url))
        self.opened()
        if file.is_streamed:  # an empty one, whose end the server has seen
            file.ended(file.size_bytes)
        self.keep_stored(file, file.size_bytes)
        file.landed(0, file.size_bytes)

    def _copy_part(self, parted: PartedFile, number: int) -> None:
        start, end = parted.range_of(number)
        begun = parted.begun
        url = self.s3.asking(begun.name, {"partNumber": number, "uploadId": begun.upload_id})
        which = {"x-amz-copy-source-range": f"bytes={start}-{end - 1}"}
        reply, body = self._ask(url, {**self._source_of(parted.file), **which}, end - start)
        if self.is_stored(parted, reply, body, url):
            parted.stored(StoredPart(number, end - start, _etag_in(body, url), b"", 0), "")

    def _ask(self, url: WebUrl, headers: dict[str, str], size_bytes: int) -> tuple[HttpReply, bytes]:
        """Ask for a copy; return the answer and its body, for which the server has as long as it needs."""
        self.was_tried = True
        lane = self.lanes.to(url.origin)
        incoming, timeout_s = lane.http.incoming, self.context.options.timeout_s
        lane.http.send(self.access.request("PUT", url, {"Content-Length": "0", **headers}))
        incoming.timeout_s = timeout_s + size_bytes * 8 / STORED_BPS
        reply = lane.http.reply("PUT")
        body = reply.read(LARGEST_ERROR_BYTES)
        incoming.timeout_s = timeout_s
        lane.passed_bytes += size_bytes
        if not reply.is_reusable:
            self.lanes.drop(url.origin)
        return reply, body


def _etag_in(body: bytes, url: WebUrl) -> str:
    """Return the ETag of what was copied; raises ConnectionLost where none is told."""
    try:
        etag = S3Answer(body).fields.get("ETag", "")
    except S3AnswerError:
        etag = ""
    if not etag:
        raise ConnectionLost(f"{url}: the server does not say what it has copied")
    return etag
