"""The sink of a relay: whole objects. What fits in one part is one request, as from a file; the rest, parts.

An upload in parts is completed once its source is known to be unchanged, so that no mixture has a name. What
is one request is kept here until it is whole, as its checksums go before it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.beginning import discard, new_upload
from mpx.endpoints.s3.passed_parts import PassedParts, passed_part_bytes
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.refusals import S3Error
from mpx.endpoints.s3.sending import Bytes, PartSender, Sums
from mpx.endpoints.s3.stored_sums import md5_of
from mpx.endpoints.s3.uploads import ReadyUpload
from mpx.endpoints.s3.whole_put import PLAIN, put_whole
from mpx.endpoints.web.body import BodyCut
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.relay_sink import WebRelaySink
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece
from mpx.engine.rate_limiter import RateLimiter
from mpx.engine.relay import Pull, Relayed
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    Interrupted,
    MpxError,
    TransferTimeout,
)


class S3RelaySink(WebRelaySink):
    """See RelaySink."""

    def __init__(self, access: S3Access, context: CarrierContext, pipelining: Pipelining) -> None:
        super().__init__(access, context, pipelining)
        self._s3, self._uploads = access, access.uploads
        self.questions = S3Questions(access, DestinationError, context.failure.cancel.is_set)
        self._ready: ReadyUpload | None = None  # what was stored last, in parts
        self._passes = False  # parts are on their way
        stop = context.failure.cancel.is_set
        no_limit = RateLimiter(context.failure.cancel)  # what comes to be sent has waited for its rate
        self._sender = PartSender(access, self._lanes, no_limit, context.options.timeout_s, stop)
        self._has_stored = False

    @property
    def s3(self) -> S3Access:
        """See WholePutter."""
        return self._s3

    @property
    def _stores_ahead(self) -> bool:
        """See WebRelaySink. No PUT leads elsewhere, but the first file shows that it is let in."""
        return self._has_stored and self._pipelining.is_possible(self._s3.origin)

    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:  # noqa: ARG002  it always is
        """See RelaySink."""
        file, self._ready = piece.file, None
        if not file.is_streamed and file.size_bytes <= passed_part_bytes(file):
            return self._store_kept(file, pull)
        note = self._context.supervisor.note
        discard(self.questions, file.partial, note)
        begun = new_upload(self.questions, file, passed_part_bytes(file), note, has_sums=False).begun
        parts = PassedParts(self._s3, self._lanes, file, begun, self._context.options.timeout_s)
        came, self._passes = Relayed(0, is_ended=False), True
        try:
            came = pull(lambda _, data: parts.send(data))
            self._ready = parts.end()
        except BodyCut:
            self._lanes.drop_all()
            came = came._replace(is_stored=False)
        self._passes = False
        return came

    def _store_kept(self, file: FileTransfer, pull: Pull) -> Relayed:
        """Store a file that is kept here until it is whole; nothing where another number of bytes comes."""
        kept = bytearray()

        def keep(_: int, data: memoryview) -> None:
            kept.extend(data[: file.size_bytes - len(kept)])

        came = pull(keep)
        if came.size_bytes != file.size_bytes:
            return came._replace(is_stored=False)
        self._put_whole(file, memoryview(kept))
        return came

    def _put_whole(self, file: FileTransfer, content: memoryview) -> None:
        some = Bytes.kept(file.source, content)
        sums = self._sender.sums(some)
        sums.proof(put_whole(self, file, some, sums), file.named())
        self._has_stored = True
        self._keep(file, len(content))

    def put_bytes(self, url: WebUrl, some: Bytes, sums: Sums) -> HttpReply:
        """See WholePutter."""
        reply, body = self._sender.put(url, some, sums, PLAIN, has_crc32=True)
        if S3Error(body).code or not is_success(reply):
            raise self._s3.refused_with(reply, body, url, "store", DestinationError)
        return reply

    def asking_over_lane(self) -> AbstractContextManager[None]:
        """See WholePutter. What asks has a connection of its own."""
        return nullcontext()

    def finish(self, piece: Piece, *, is_whole: bool) -> None:  # noqa: ARG002  it always is
        """See RelaySink."""
        if self._ready is not None:
            self._uploads.ready(piece.file.partial, self._ready)

    def store_all(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """See RelaySink. What stays in hand is carried alone, and refused then where a name is taken."""
        found = self._found(contents) if self._s3.looks_before else {}
        rest = [each for each in contents if each[0].file not in found]
        stored = super().store_all(rest)
        found |= {piece.file: done for (piece, _), done in zip(rest, stored, strict=True)}
        if self._s3.options.only_new:  # the answer to an attempt before may have been lost
            found |= self._found([each for each in rest if not found[each[0].file]])
        for piece, content in contents:
            if found[piece.file]:
                self._keep(piece.file, len(content))
        return [found[piece.file] for piece, _ in contents]

    def _store_one(self, piece: Piece, content: bytes) -> bool:
        try:
            self._put_whole(piece.file, memoryview(content))
        except (AuthenticationError, ConnectionLost, TransferTimeout, Interrupted):
            raise
        except MpxError:
            return False
        return True

    def _proof_of(self, file: FileTransfer, content: bytes) -> Mapping[str, str]:
        return self._sender.sums(Bytes.kept(file.source, memoryview(content))).headers(has_crc32=True)

    def _found(self, contents: Sequence[tuple[Piece, bytes]]) -> dict[FileTransfer, bool]:
        """Tell of those whose names are taken, or may be, whether the object there is the same."""
        replies = self.questions.heads([piece.file.final for piece, _ in contents]) if contents else []
        return {
            piece.file: reply is not None and _is_of(reply, content)
            for (piece, content), reply in zip(contents, replies, strict=True)
            if reply is None or is_success(reply)
        }

    def settle(self) -> bool:
        """See RelayEnd."""
        if self._passes:
            self._passes = False
            self._lanes.drop_all()
        return super().settle()

    def close(self) -> None:
        """See RelayEnd."""
        super().close()
        self.questions.close()

    def _keep(self, file: FileTransfer, size_bytes: int) -> None:
        self._uploads.stored(file.partial, file.final, size_bytes)


def _is_of(reply: HttpReply, content: bytes) -> bool:
    return md5_of(reply) == hashlib.md5(content, usedforsecurity=False).hexdigest()
