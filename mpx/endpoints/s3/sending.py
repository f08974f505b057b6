"""One PUT of bytes of a file, whose checksums are known before they are sent."""

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mpx.endpoints.s3 import refusals
from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.aws_session import HASH, UNSIGNED_BODY
from mpx.endpoints.s3.stored_sums import crc32_of, crc32_text, md5_of
from mpx.endpoints.web.file_put import STORED_BPS
from mpx.endpoints.web.lanes import UNSENT_BYTES, LaneSet, WebLane
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine import checksum
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.source_change import AGAIN
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import ConnectionLost, IntegrityError, Interrupted, MpxError
from mpx.files.local_error import local_error


@dataclass(frozen=True, slots=True)
class Bytes:
    """Some bytes: of a file, or in memory (`data`)."""

    name: str  # of the file, for people
    fd: int
    start: int
    end: int
    data: memoryview | None = None

    @classmethod
    def kept(cls, name: str, data: memoryview) -> "Bytes":
        """Return all bytes of a file that are in memory."""
        return cls(name, -1, 0, len(data), data)

    @property
    def size_bytes(self) -> int:
        """How many."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Sums:
    """Their checksums."""

    md5: bytes
    crc32: int
    sha256: str  # in hex; empty where none is needed

    def headers(self, *, has_crc32: bool) -> dict[str, str]:
        """Return the headers by which a server refuses bytes that changed on their way.

        `has_crc32`: a server that has been told of none refuses that of a part.
        """
        md5 = {
            HASH: self.sha256 or UNSIGNED_BODY,
            "Content-MD5": base64.b64encode(self.md5).decode("ascii"),
        }
        return {**md5, "x-amz-checksum-crc32": crc32_text(self.crc32)} if has_crc32 else md5

    def are_of(self, reply: HttpReply) -> bool:
        """Tell whether an answer shows that these bytes are stored; not every ETag is an MD5."""
        return md5_of(reply) == self.md5.hex() or crc32_of(reply) == f"{self.crc32:08x}"

    def proof(self, reply: HttpReply, name: str) -> str:
        """Return by which checksum an answer shows that these bytes are stored; empty where it shows none.

        Raises IntegrityError where it shows that others are.
        """
        for algorithm, told, ours in (
            ("md5", md5_of(reply), self.md5.hex()),
            ("crc32", crc32_of(reply), f"{self.crc32:08x}"),
        ):
            if told is not None and told != ours:
                raise IntegrityError(
                    f"{name}: the server says that it has stored other bytes than were sent, by their "
                    f"{algorithm}: {told}, not {ours}; {AGAIN}"
                )
            if told is not None:
                return algorithm
        return ""


class PartSender:
    """For one worker's thread."""

    def __init__(
        self,
        access: S3Access,
        lanes: LaneSet,
        limiter: RateLimiter,
        timeout_s: float,
        stop: Callable[[], bool],
    ) -> None:
        self._access, self._lanes, self._limiter = access, lanes, limiter
        self._timeout_s, self._stop = timeout_s, stop
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def sums(self, some: Bytes) -> Sums:
        """Return the checksums of bytes, which are read for that; raises as `put`."""
        md5, crc32 = hashlib.md5(usedforsecurity=False), checksum.new("crc32")
        sha256 = hashlib.sha256() if self._signs_bodies else None
        position = some.start
        while position < some.end and not self._stop():
            piece = self._read(some, position, BUFFER_BYTES)
            for digest in (md5, crc32, sha256):
                if digest is not None:
                    digest.update(piece)
            position += len(piece)
        if position < some.end:
            raise Interrupted
        return Sums(md5.digest(), int.from_bytes(crc32.digest(), "big"), sha256.hexdigest() if sha256 else "")

    @property
    def _signs_bodies(self) -> bool:
        """Whether others could change a body unseen, as it is not within TLS."""
        origin = self._access.origin
        return not origin.is_secure and self._access.has_credentials(origin)

    def put(
        self, url: WebUrl, some: Bytes, sums: Sums, headers: Mapping[str, str], *, has_crc32: bool
    ) -> tuple[HttpReply, bytes]:
        """Send bytes; return the answer and its body. Once more where a connection that was kept had ended.

        Raises ConnectionLost, TransferTimeout, Interrupted, SourceError, and IntegrityError where the file
        has become shorter.
        """
        given = {**sums.headers(has_crc32=has_crc32), **headers}
        lane = self._lanes.open_to(url.origin)
        was_used, before_bytes = lane.http.answered > 0, lane.passed_bytes
        try:
            return self._put_over(lane, url, some, given)
        except ConnectionLost:
            if not was_used or lane.http.incoming.has_some or lane.passed_bytes - before_bytes > UNSENT_BYTES:
                raise
        self._lanes.drop(url.origin)
        return self._put_over(self._lanes.to(url.origin), url, some, given)

    def _put_over(
        self, lane: WebLane, url: WebUrl, some: Bytes, headers: Mapping[str, str]
    ) -> tuple[HttpReply, bytes]:
        http = lane.http
        length = {"Content-Length": str(some.size_bytes)}
        http.send(self._access.request("PUT", url, {**length, **headers}))
        try:
            self._send(lane, some)
        except ConnectionLost as lost:
            return self._why_refused(lane, lost)
        http.incoming.timeout_s = self._timeout_s + some.size_bytes * 8 / STORED_BPS
        reply = http.reply("PUT")
        body = reply.read(refusals.LARGEST_ERROR_BYTES)
        http.incoming.timeout_s = self._timeout_s
        if not reply.is_reusable:
            self._lanes.drop(url.origin)
        return reply, body

    def _send(self, lane: WebLane, some: Bytes) -> None:
        position = some.start
        while position < some.end:
            piece = self._read(some, position, self._limiter.piece(BUFFER_BYTES))
            self._limiter.wait(len(piece))
            lane.offered_bytes += len(piece)
            lane.http.send_all(piece)
            lane.passed_bytes += len(piece)
            position += len(piece)

    def _read(self, some: Bytes, position: int, most_bytes: int) -> memoryview:
        size = min(some.end - position, most_bytes)
        if some.data is not None:
            return some.data[position - some.start : position - some.start + size]
        try:
            got = os.preadv(some.fd, [self._buffer[:size]], position)
        except OSError as error:
            raise local_error(error, some.name, writing=False) from None
        if not got:
            raise IntegrityError(f"{some.name} became shorter while it was copied; {AGAIN}")
        return self._buffer[:got]

    def _why_refused(self, lane: WebLane, lost: ConnectionLost) -> tuple[HttpReply, bytes]:
        """Return the answer that a server gave before it stopped to take data; raises `lost` without one."""
        try:
            reply = lane.http.reply("PUT")
            body = reply.read(refusals.LARGEST_ERROR_BYTES)
        except MpxError:
            raise lost from None
        self._lanes.drop(lane.http.origin)
        if is_success(reply):  # of what it has not got
            raise lost
        return reply, body
