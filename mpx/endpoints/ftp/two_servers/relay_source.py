"""The source of a relay: pieces of files are received in MODE S, which every server has.

Only small files come in MODE E, several at a time, from servers that have it and that reach us.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mpx.endpoints.ftp.mode_s.connections import DataConnections
from mpx.endpoints.ftp.refusals import cannot_send
from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.two_servers.block_fetch import BlockFetch
from mpx.endpoints.ftp.two_servers.relay_end import FtpRelayEnd
from mpx.endpoints.ftp.two_servers.server_pair import MODES, turn_to
from mpx.endpoints.ftp.why_mode_s import why_mode_s
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Put, Relayed
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import ConnectionLost, InboundBlocked, Interrupted, MpxError, TransferTimeout, UsageError
from mpx.location import Location

MOST_FILES, FEW_FILES = 48, 4  # small ones that are asked for together; before it is known that they can be


@dataclass(slots=True)
class SmallFiles:
    """Whether a server sends small files together, as far as any source of a copy knows; for any thread."""

    together: bool | None = None


class FtpRelaySource(FtpRelayEnd):
    """See RelaySource."""

    def __init__(
        self,
        location: Location,
        options: SessionOptions,
        context: CarrierContext,
        small: SmallFiles,
    ) -> None:
        """`small`: all sources of a copy share it."""
        super().__init__(location, options, (MODES[False],))
        self._small = small
        self._blocks: BlockFetch | None = None  # while the session is in MODE E; replaced by the worker only
        self._context = context
        self._data = DataConnections(context, context.options.timeout_s, upload=False)
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    @property
    def files_at_once(self) -> int:
        """See RelayEnd."""
        if self._small.together is None:
            return FEW_FILES
        return MOST_FILES if self._small.together else 1

    def receive(self, piece: Piece, store: Callable[[Pull], Relayed], *, is_whole: bool) -> Relayed:
        """See RelaySource."""
        if self._blocks is not None:
            self._leave()
            turn_to(self.session, self._opening)

        def use(connection: socket.socket, count: Callable[[int], None]) -> Relayed:
            self._is_busy = True  # else it was refused before any data, and nothing is left of it

            def pull(put: Put) -> Relayed:
                return self._receive(piece, connection, count, put, is_whole=is_whole)

            return store(pull)

        return self._data.transfer(self.session, piece.file, piece.start, use)

    def _receive(
        self,
        piece: Piece,
        connection: socket.socket,
        count: Callable[[int], None],
        put: Put,
        *,
        is_whole: bool,
    ) -> Relayed:
        """Give all that comes to `put`; a part that ends within its file is cut off there."""
        limiter, peer = self._context.limiter, self.session.peer
        size_bytes = piece.end - piece.start
        is_last = is_whole or piece.end >= piece.file.size_bytes
        came = 0
        while is_last or came < size_bytes:
            want = min(BUFFER_BYTES, limiter.piece(BUFFER_BYTES))
            want = want if is_whole else min(want, size_bytes + is_last - came)
            try:
                got = connection.recv_into(self._buffer, want)
            except TimeoutError:
                raise TransferTimeout(f"no data from {peer} for {connection.gettimeout():g} s") from None
            except OSError as error:
                raise ConnectionLost(
                    f"a data connection to {peer} was lost: {error.strerror or error}"
                ) from None
            if not got:
                return Relayed(came, is_ended=True)
            put(piece.start + came, self._buffer[:got])
            came += got
            count(got)
        return Relayed(came, is_ended=False)

    def finish(self, piece: Piece, came: Relayed) -> None:
        """See RelaySource."""
        reply = self.session.final_reply() if came.is_ended else self.session.reply_to_cut()
        self._is_busy = False
        if came.is_ended and not reply.is_ok:
            raise ConnectionLost(str(cannot_send(reply, self.session.peer, piece.file.source)))

    def fetch(self, pieces: Sequence[Piece]) -> list[bytes | None]:
        """See RelaySource."""
        if self._small.together is False:
            return self._fetch_in_turn(pieces)
        if self._blocks is None:
            if why_mode_s(self.session, downloads=True):
                self._small.together = False
                return self._fetch_in_turn(pieces)
            self._blocks = BlockFetch(self._context, self.session)
        return self._fetch_together(self._blocks, pieces)

    def _fetch_together(self, blocks: BlockFetch, pieces: Sequence[Piece]) -> list[bytes | None]:
        try:
            found = blocks.fetch(pieces)
        except (InboundBlocked, UsageError) as error:
            if self._small.together is not False:
                self._context.supervisor.note(f"small files come one after the other: {error}")
            self._small.together = False
            found = [None] * len(pieces)
        if not blocks.is_fit:
            self._small.together = False
        elif self._small.together is None and any(content is not None for content in found):
            self._small.together = True
        if self._small.together is False or not blocks.is_usable:
            self.close()
        return found

    def _fetch_in_turn(self, pieces: Sequence[Piece]) -> list[bytes | None]:
        """Behind one with which the session is lost none."""
        found: list[bytes | None] = []
        for piece in pieces:
            content = bytearray()
            try:
                came = self.receive(piece, partial(_collected, content), is_whole=False)
                self.finish(piece, came)
            except (ConnectionLost, TransferTimeout, Interrupted):
                raise
            except MpxError:
                found.append(None)
                if self.settle():
                    continue
                self.close()
                break
            found.append(bytes(content))
        return found + [None] * (len(pieces) - len(found))

    def _cut_data(self) -> None:
        self._data.cut()
        if blocks := self._blocks:
            blocks.cut()

    def _leave(self) -> None:
        blocks, self._blocks = self._blocks, None
        if blocks is not None:
            blocks.close()


def _collected(content: bytearray, pull: Pull) -> Relayed:
    def put(_at: int, data: memoryview) -> None:
        content.extend(data)

    return pull(put)
