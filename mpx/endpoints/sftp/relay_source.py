"""The source of a relay: pieces of files are read over SFTP."""

from collections.abc import Callable

from mpx.endpoints.sftp.lane_pool import LaneOptions, LanePool
from mpx.endpoints.sftp.read_in_order import ReadInOrder
from mpx.endpoints.sftp.refusals import cannot_send
from mpx.endpoints.sftp.relay_end import WINDOW_BYTES, SftpRelayEnd
from mpx.endpoints.sftp.wire import Open
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Put, Relayed


class SftpRelaySource(SftpRelayEnd):
    """See RelaySource."""

    def __init__(self, pool: LanePool, options: LaneOptions, context: CarrierContext) -> None:
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
