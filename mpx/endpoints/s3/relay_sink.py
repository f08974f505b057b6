"""The sink of a relay: whole objects; those that are kept here in one request each, others in parts.

An upload in parts is completed once its source is known to be unchanged, so that no mixture has a name. A
small file is whole before it is sent.
"""

import hashlib
from collections.abc import Sequence

from mpx.endpoints.s3.access import ConditionUnknown, S3Access
from mpx.endpoints.s3.beginning import discard, new_upload
from mpx.endpoints.s3.passed_parts import PassedParts, passed_part_bytes
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.stored_sums import md5_of
from mpx.endpoints.s3.uploads import ReadyUpload
from mpx.endpoints.web.body import BodyCut
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.relay_sink import WebRelaySink
from mpx.endpoints.web.reply import HttpReply
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Relayed
from mpx.errors import DestinationError


class S3RelaySink(WebRelaySink):
    """See RelaySink."""

    def __init__(self, access: S3Access, context: CarrierContext, pipelining: Pipelining) -> None:
        super().__init__(access, context, pipelining)
        self._s3, self._uploads = access, access.uploads
        self._questions = S3Questions(access, DestinationError, context.failure.cancel.is_set)
        self._ready: ReadyUpload | None = None  # what was stored last, in parts
        self._passes = False  # parts are on their way

    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:
        """See RelaySink."""
        file, self._ready = piece.file, None
        if not (file.is_streamed or file.size_bytes):
            return super().store(piece, pull, is_whole=is_whole)
        note = self._context.supervisor.note
        discard(self._questions, file.partial, note)
        begun = new_upload(self._questions, file, passed_part_bytes(file), note, has_sums=False).begun
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

    def finish(self, piece: Piece, *, is_whole: bool) -> None:
        """See RelaySink."""
        if self._ready is not None:
            self._uploads.ready(piece.file.partial, self._ready)
            return
        super().finish(piece, is_whole=is_whole)
        self._keep(piece.file, piece.file.size_bytes)

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
            return super()._store_one(piece, content)
        except ConditionUnknown:
            found = self._found([(piece, content)])
            return found[piece.file] if found else super()._store_one(piece, content)

    def _found(self, contents: Sequence[tuple[Piece, bytes]]) -> dict[FileTransfer, bool]:
        """Tell of those whose names are taken, or may be, whether the object there is the same."""
        replies = self._questions.heads([piece.file.final for piece, _ in contents]) if contents else []
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
        self._questions.close()

    def _keep(self, file: FileTransfer, size_bytes: int) -> None:
        self._uploads.stored(file.partial, file.final, size_bytes)


def _is_of(reply: HttpReply, content: bytes) -> bool:
    return md5_of(reply) == hashlib.md5(content, usedforsecurity=False).hexdigest()
