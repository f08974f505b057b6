"""The sinks of a relay: in MODE E parts of files, over one connection that stays, in MODE S whole files."""

import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from mpx.endpoints.ftp.mode_e.misplaced_blocks import await_end
from mpx.endpoints.ftp.mode_s.connections import DataConnections
from mpx.endpoints.ftp.mode_s.upload import await_taken, clear
from mpx.endpoints.ftp.refusals import cannot_store
from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.two_servers.block_store import BlockStore
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.two_servers.relay_end import FtpRelayEnd
from mpx.endpoints.ftp.two_servers.server_pair import MARKERS, MODES
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Put, Relayed
from mpx.engine.stream import BUFFER_BYTES, StreamCounters, StreamTotals
from mpx.errors import ConnectionLost, Interrupted, MpxError, TransferTimeout
from mpx.location import Location


class FtpRelaySink(FtpRelayEnd, ABC):
    """See RelaySink: what those of both modes have in common."""

    @abstractmethod
    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:
        """See RelaySink."""

    @abstractmethod
    def finish(self, piece: Piece, *, is_whole: bool) -> None:
        """See RelaySink."""

    def store_all(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """See RelaySink. One after the other; behind one with which the session is lost none."""
        stored: list[bool] = []
        for piece, content in contents:
            try:
                self.store(piece, partial(_given, memoryview(content)), is_whole=True)
                self.finish(piece, is_whole=True)
            except (ConnectionLost, TransferTimeout, Interrupted):
                raise
            except MpxError:
                stored.append(False)
                if self.settle():
                    continue
                self.close()
                break
            stored.append(True)
        return stored + [False] * (len(contents) - len(stored))


def _given(content: memoryview, put: Put) -> Relayed:
    if content:
        put(0, content)
    return Relayed(len(content), is_ended=True)


class BlockSink(FtpRelaySink):
    """See RelaySink: in MODE E. `parts`: of files can be sent and stored."""

    def __init__(
        self, location: Location, options: SessionOptions, context: CarrierContext, *, parts: bool
    ) -> None:
        super().__init__(location, options, (MODES[True], *MARKERS))
        self._context, self._parts = context, parts
        self._store: BlockStore | None = None
        self._transfer: PairedTransfer | None = None  # under way
        self._guard = threading.Lock()  # of both that follow
        self._counters = StreamCounters()  # of the connection
        self._past = StreamTotals()  # of those before

    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:  # noqa: ARG002  PairedTransfer knows
        """See RelaySink."""
        if self._store is None:
            self._store = BlockStore(self._context, self.session, self._counters)
        store, transfer = self._store, PairedTransfer(piece, parts=self._parts, block_bytes=BUFFER_BYTES)
        self._transfer = transfer
        try:
            store.begin(transfer)
        except MpxError:
            self._leave()  # whether the server keeps a connection that brought nothing is not known
            raise
        self._is_busy = True
        return pull(lambda at, data: store.put(transfer, at, data))

    def finish(self, piece: Piece, *, is_whole: bool) -> None:  # noqa: ARG002  it is the one that is under way
        """See RelaySink."""
        assert self._store is not None and self._transfer is not None
        self._store.end(self._transfer)
        self._is_busy = False

    def settle(self) -> bool:
        """See RelayEnd. Not behind data, as the end of a transfer is that of its blocks."""
        return self._session is not None and not self._is_busy

    def store_all(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """See RelaySink. All are queued at the server, once there is a connection."""
        stored: list[bool] = []
        while self._session is not None and self._counters.connection is None and len(stored) < len(contents):
            stored += super().store_all(contents[len(stored) : len(stored) + 1])
        rest = [
            (PairedTransfer(piece, parts=self._parts), content) for piece, content in contents[len(stored) :]
        ]
        if self._store is None or self._counters.connection is None or not rest:
            return stored + [False] * len(rest)
        try:
            count = self._store.store_all(rest)
        except (ConnectionLost, TransferTimeout, Interrupted):
            raise
        except MpxError:
            count = 0
        if count < len(rest):
            self.close()
        return stored + [number < count for number in range(len(rest))]

    def totals(self) -> StreamTotals:
        """See RelaySink."""
        with self._guard:
            sums = StreamTotals()
            sums.add(self._past)
            sums.add(self._counters.totals())
        return sums

    def close(self) -> None:
        """See RelayEnd."""
        session, is_owed = self._session, self._store is not None and self._store.is_owed
        if session is not None and is_owed:
            self._leave()
            await_end(session)
        super().close()

    def _cut_data(self) -> None:
        self._counters.cut()

    def _leave(self) -> None:
        self._store = None
        if self._counters.connection is not None:
            self._counters.closed(clean=False)
            with self._guard:
                self._past.add(self._counters.totals().none_open())
                self._counters = StreamCounters()


class StreamSink(FtpRelaySink):
    """See RelaySink: in MODE S, a connection for each file."""

    def __init__(self, location: Location, options: SessionOptions, context: CarrierContext) -> None:
        super().__init__(location, options, (MODES[False],))
        self._context = context
        self._data = DataConnections(context, context.options.timeout_s, upload=True)

    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:  # noqa: ARG002  it always is
        """See RelaySink."""

        def send(connection: socket.socket, sent: Callable[[int], None]) -> Relayed:
            self._is_busy = True  # else it was refused before any data, and nothing is left of it

            def put(_at: int, data: memoryview) -> None:
                connection.sendall(data)
                sent(len(data))

            came = pull(put)
            await_taken(connection, self._context.failure.cancel.is_set)
            return came

        clear(self.session, piece.file)
        return self._data.transfer(self.session, piece.file, 0, send)

    def finish(self, piece: Piece, *, is_whole: bool) -> None:  # noqa: ARG002  it always is
        """See RelaySink."""
        file = piece.file
        reply = self.session.final_reply(work_bytes=file.size_bytes)
        self._is_busy = False
        if not reply.is_ok:
            raise cannot_store(reply, self.session.peer, file.final, file.partial)

    def totals(self) -> StreamTotals:
        """See RelaySink."""
        return self._data.totals()

    def _cut_data(self) -> None:
        self._data.cut()
