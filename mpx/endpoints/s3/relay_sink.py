"""The sink of a relay: whole objects, each in one request, as nobody has all of a part before it is sent."""

from collections.abc import Sequence

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.relay_sink import WebRelaySink
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece


class S3RelaySink(WebRelaySink):
    """See RelaySink."""

    def __init__(self, access: S3Access, context: CarrierContext, pipelining: Pipelining) -> None:
        super().__init__(access, context, pipelining)
        self._uploads = access.uploads

    def finish(self, piece: Piece, *, is_whole: bool) -> None:
        """See RelaySink."""
        super().finish(piece, is_whole=is_whole)
        self._keep(piece.file, piece.file.size_bytes)

    def store_all(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """See RelaySink."""
        stored = super().store_all(contents)
        for is_stored, (piece, content) in zip(stored, contents, strict=False):
            if is_stored:
                self._keep(piece.file, len(content))
        return stored

    def _keep(self, file: FileTransfer, size_bytes: int) -> None:
        self._uploads.stored(file.partial, file.final, size_bytes)
