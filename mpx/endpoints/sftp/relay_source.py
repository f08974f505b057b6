"""The source of a relay: pieces of files are read over SFTP."""

from collections.abc import Callable, Sequence
from functools import partial

from mpx.endpoints.sftp.lanes import LaneOptions, SftpLanes
from mpx.endpoints.sftp.read_in_order import ReadInOrder
from mpx.endpoints.sftp.refusals import cannot_send
from mpx.endpoints.sftp.relay_end import WINDOW_BYTES, SftpRelayEnd
from mpx.endpoints.sftp.session import request
from mpx.endpoints.sftp.wire import Open, PacketKind
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Put, Relayed


class SftpRelaySource(SftpRelayEnd):
    """See RelaySource."""

    def __init__(self, pool: SftpLanes, options: LaneOptions, context: CarrierContext) -> None:
        super().__init__(pool, options)
        self._context = context

    def receive(self, piece: Piece, store: Callable[[Pull], Relayed], *, is_whole: bool) -> Relayed:
        """See RelaySource."""
        name, session = piece.file.source, self.session
        if (refusal := self.open_file(name, Open.READ)) is not None:
            raise cannot_send(refusal, self.host, name)
        handle = self._handle
        is_last = piece.end >= piece.file.size_bytes

        def pull(put: Put) -> Relayed:
            reading = ReadInOrder(
                session,
                handle,
                name,
                start=piece.start,
                end=piece.end,
                behind_bytes=None if is_whole else int(is_last),
                window_bytes=WINDOW_BYTES,
                put=put,
            )
            return reading.run(self._context.limiter.piece)

        came = store(pull)
        self._close_file()
        return came

    def finish(self, piece: Piece, came: Relayed) -> None:
        """See RelaySource. What was refused has been told."""

    def fetch(self, pieces: Sequence[Piece]) -> list[bytes | None]:
        """See RelaySource. All are opened, read and closed together."""
        session = self.session
        names = [piece.file.source for piece in pieces]
        handles = self.open_files(names, Open.READ)
        contents = [bytearray() for _ in pieces]
        readings = [
            ReadInOrder(
                session,
                handle,
                name,
                start=0,
                end=piece.end,
                behind_bytes=1,
                window_bytes=WINDOW_BYTES,
                put=partial(_put, content),
            )
            for piece, name, handle, content in zip(pieces, names, handles, contents, strict=True)
            if isinstance(handle, bytes)
        ]
        under_way = readings
        while under_way := [each for each in under_way if not each.advance(self._context.limiter.piece)]:
            session.pump()
        found: list[bytes | None] = []
        left = iter(readings)
        for handle, content in zip(handles, contents, strict=True):
            if isinstance(handle, bytes):
                session.submit(request(PacketKind.CLOSE, handle), lambda _: None)
                found.append(bytes(content) if next(left).error is None else None)
            else:
                found.append(None)
        return found


def _put(content: bytearray, _at: int, data: memoryview) -> None:
    content += data
