"""An upload in parts whose bytes come from another server, in their order: they are passed on as they come.

Only of what has no known size a part is kept until it is whole, as its length goes before it.
"""

import hashlib

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.parts import MOST_PARTS, WHOLE_BYTES, part_bytes_of
from mpx.endpoints.s3.questions import Query
from mpx.endpoints.s3.refusals import LARGEST_ERROR_BYTES, NO_UPLOAD, S3Error
from mpx.endpoints.s3.sending import Sums
from mpx.endpoints.s3.uploads import BegunUpload, ReadyUpload, StoredPart
from mpx.endpoints.web.body import BodyCut
from mpx.endpoints.web.file_put import STORED_BPS
from mpx.endpoints.web.lanes import LaneSet, WebLane
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine import checksum
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import ConnectionLost, DestinationError, MpxError
from mpx.units import format_size


def passed_part_bytes(file: FileTransfer) -> int:
    """Return how large the parts of a file are."""
    return WHOLE_BYTES if file.is_streamed else part_bytes_of(file.size_bytes)


class PassedParts:
    """The parts of one file, sent one after the other. For one worker's thread."""

    def __init__(
        self, access: S3Access, lanes: LaneSet, file: FileTransfer, begun: BegunUpload, timeout_s: float
    ) -> None:
        self._access, self._lanes, self._file, self._begun = access, lanes, file, begun
        self._timeout_s = timeout_s
        self._size_bytes = None if file.is_streamed else file.size_bytes
        self._came_bytes = 0
        self._kept = bytearray()  # of a part whose length is not known yet
        self._parts: list[StoredPart] = []
        self._all = hashlib.md5(usedforsecurity=False)
        self._is_proven = True  # the server has told a checksum of each part
        self._part: _OpenPart | None = None

    def send(self, data: memoryview) -> None:
        """Pass bytes on.

        Raises what a refusal means, ConnectionLost and the like, IntegrityError where the server has stored
        others, BodyCut where more come than the file has.
        """
        self._came_bytes += len(data)
        self._all.update(data)
        if self._size_bytes is not None:
            if self._came_bytes > self._size_bytes:
                raise BodyCut(f"{self._came_bytes} bytes came where {self._size_bytes} were to be sent")
            self._pass_on(data)
            return
        self._kept += data
        while len(self._kept) > self._begun.part_bytes:
            self._send_kept(self._begun.part_bytes)

    def end(self) -> ReadyUpload:
        """Return what is stored; raises as `send`, and BodyCut where fewer bytes came."""
        if self._size_bytes is None:
            self._send_kept(len(self._kept))
        elif self._came_bytes != self._size_bytes:
            raise BodyCut(f"{self._came_bytes} bytes came where {self._size_bytes} were to be sent")
        md5 = self._all.hexdigest() if self._is_proven else ""
        return ReadyUpload(self._begun, tuple(self._parts), has_crc32=False, md5=md5)

    def _send_kept(self, size_bytes: int) -> None:
        data = bytes(self._kept[:size_bytes])
        del self._kept[:size_bytes]
        self._part = self._open(size_bytes)
        self._pass_on(memoryview(data))
        if not data:  # the only part, of an empty file
            self._close(self._part)

    def _pass_on(self, data: memoryview) -> None:
        while data:
            if self._part is None:
                start = len(self._parts) * self._begun.part_bytes
                assert self._size_bytes is not None
                self._part = self._open(min(self._begun.part_bytes, self._size_bytes - start))
            part = self._part
            some = data[: part.left_bytes]
            try:
                part.send(some)
            except ConnectionLost as lost:
                raise self._why_refused(part, lost) from None
            data = data[len(some) :]
            if not part.left_bytes:
                self._close(part)

    def _open(self, size_bytes: int) -> "_OpenPart":
        number = len(self._parts) + 1
        if number > MOST_PARTS:
            most = format_size(MOST_PARTS * self._begun.part_bytes)
            raise DestinationError(f"{self._file.named()} has more than {most}: copy it to a file first")
        query: Query = {"partNumber": number, "uploadId": self._begun.upload_id}
        url = self._access.asking(self._begun.name, query)
        lane = self._lanes.open_to(url.origin)
        lane.http.send(self._access.request("PUT", url, {"Content-Length": str(size_bytes)}))
        return _OpenPart(lane, url, number, size_bytes)

    def _close(self, part: "_OpenPart") -> None:
        """Read the answer to a part, which is the end of it."""
        self._part = None
        incoming = part.lane.http.incoming
        incoming.timeout_s = self._timeout_s + part.size_bytes * 8 / STORED_BPS
        reply = part.lane.http.reply("PUT")
        body = reply.read(LARGEST_ERROR_BYTES)
        incoming.timeout_s = self._timeout_s
        if not reply.is_reusable:
            self._lanes.drop(part.url.origin)
        if S3Error(body).code or not is_success(reply):
            raise self._refusal(part, reply, body)
        sums = part.sums()
        self._is_proven &= bool(sums.proof(reply, self._file.named()))
        self._parts.append(
            StoredPart(part.number, part.size_bytes, reply.header("ETag"), sums.md5, sums.crc32)
        )

    def _refusal(self, part: "_OpenPart", reply: HttpReply, body: bytes) -> MpxError:
        if S3Error(body).code == NO_UPLOAD:
            self._access.uploads.ended(self._file.partial)
            return ConnectionLost(f"{part.url.origin} has forgotten the upload that was begun")
        return self._access.refused_with(reply, body, part.url, "store", DestinationError)

    def _why_refused(self, part: "_OpenPart", lost: ConnectionLost) -> MpxError:
        """Return what a server says that takes no more data; `lost` where it says nothing."""
        try:
            reply = part.lane.http.reply("PUT")
            body = reply.read(LARGEST_ERROR_BYTES)
        except MpxError:
            return lost
        self._lanes.drop(part.url.origin)
        return lost if is_success(reply) else self._refusal(part, reply, body)


class _OpenPart:
    """A part whose bytes are being sent."""

    def __init__(self, lane: WebLane, url: WebUrl, number: int, size_bytes: int) -> None:
        self.lane, self.url, self.number, self.size_bytes = lane, url, number, size_bytes
        self.left_bytes = size_bytes
        self._md5, self._crc32 = hashlib.md5(usedforsecurity=False), checksum.new("crc32")

    def send(self, data: memoryview) -> None:
        """Send some of its bytes; raises ConnectionLost, TransferTimeout, Interrupted."""
        self._md5.update(data)
        self._crc32.update(data)
        self.lane.offered_bytes += len(data)
        self.lane.http.send_all(data)
        self.lane.passed_bytes += len(data)
        self.left_bytes -= len(data)

    def sums(self) -> Sums:
        """Return the checksums of what was sent."""
        return Sums(self._md5.digest(), int.from_bytes(self._crc32.digest(), "big"), "")
