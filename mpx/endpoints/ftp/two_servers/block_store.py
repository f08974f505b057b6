"""Storing in MODE E over one connection, of which the bytes come from elsewhere, one file after the other."""

import time
from collections.abc import Sequence

from mpx.endpoints.ftp.data_address import connect_data, passive_port
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.framing import HEADER_BYTES, BlockHeader, end_of_data
from mpx.endpoints.ftp.refusals import cannot_store
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.wire import Reply
from mpx.engine.carrier import CarrierContext
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stream import BUFFER_BYTES, StreamCounters
from mpx.errors import ConnectionLost, MpxError, TransferTimeout

VERDICT_S = 5.0  # wait for the server's reply after a data connection broke
LOOK_S = 0.5  # between two looks at what the server says meanwhile


class BlockStore:
    """The connection of one session; its worker's thread uses it."""

    def __init__(self, context: CarrierContext, session: ClientSession, counters: StreamCounters) -> None:
        self._context, self._session = context, session
        self._counters = counters  # of the connection; others ask for them
        self._looked_s = 0.0
        self.is_owed = False  # the last word of the server on a transfer that it has begun
        self._block = memoryview(bytearray(HEADER_BYTES + BUFFER_BYTES))  # a header, and what it announces

    def begin(self, transfer: PairedTransfer) -> None:
        """Have the server store; raises what a refusal means, ConnectionLost and the like."""
        session, counters = self._session, self._counters
        port = passive_port(session, (), Direction.UP) if counters.connection is None else None
        session.send(transfer.store_command(session))  # before we connect, as the port is not served earlier
        if port is not None:
            congestion = self._context.streams.congestion_of(DEFAULT_PATH)
            connection = connect_data(session, port, congestion=congestion)
            connection.settimeout(self._context.options.timeout_s)
            counters.opened(connection)
        reply = session.read_reply()
        while reply.is_marker:
            reply = session.read_reply()
        if not reply.is_preliminary:
            raise self.refusal(reply, transfer)
        self.is_owed = True

    def put(self, transfer: PairedTransfer, at: int, data: memoryview) -> None:
        """Send bytes; `at`: where in the file they belong.

        Raises ConnectionLost, TransferTimeout, and what a refusal means that comes meanwhile.
        """
        self._put(transfer, at if transfer.is_whole else at - transfer.start, data)
        if time.monotonic() > self._looked_s + LOOK_S:
            self._looked_s = time.monotonic()
            self._look(transfer)

    def store_all(self, contents: Sequence[tuple[PairedTransfer, bytes]]) -> int:
        """Have whole files stored back to back over the connection that there is; return how many are.

        Behind one that is refused none counts, as what is queued there reads the wrong data: the session
        cannot be used any more. Raises as `put`.
        """
        session = self._session
        session.send(*(transfer.store_command(session) for transfer, _ in contents))
        self.is_owed = True
        for transfer, content in contents:
            self._put(transfer, 0, memoryview(content))
            self._send(transfer, memoryview(end_of_data(1).pack()))
        for number, (transfer, _) in enumerate(contents):
            if not session.final_reply(work_bytes=transfer.size_bytes).is_ok:
                return number
        self.is_owed = False
        return len(contents)

    def _put(self, transfer: PairedTransfer, offset: int, data: memoryview) -> None:
        while data:
            size_bytes = min(len(data), BUFFER_BYTES)
            BlockHeader(0, size_bytes, offset).pack_into(self._block)
            block = self._block[: HEADER_BYTES + size_bytes]
            block[HEADER_BYTES:], data = data[:size_bytes], data[size_bytes:]
            self._send(transfer, block)
            self._counters.passed_bytes += size_bytes
            offset += size_bytes

    def _look(self, transfer: PairedTransfer) -> None:
        while (reply := self._session.poll_reply(0.0)) is not None:
            if not reply.is_preliminary:
                raise self.refusal(reply, transfer)
            self._take(transfer, reply)

    @staticmethod
    def _take(transfer: PairedTransfer, reply: Reply) -> None:
        """Take a marker. The last byte counts once the server has confirmed the transfer, so that no other
        session finds the file whole before.
        """
        if reply.is_marker:
            transfer.take_marker(reply)
        if not transfer.is_whole:
            for start, end in transfer.certain.within(transfer.start, transfer.end - 1):
                transfer.file.landed(start, end)

    def end(self, transfer: PairedTransfer) -> None:
        """End the data, and return once they are stored; the connection stays. Raises as `put`."""
        self._send(transfer, memoryview(end_of_data(1).pack()))
        deadline_s, before_bytes = time.monotonic() + self._context.options.timeout_s, transfer.told_bytes
        while (reply := self._session.read_reply()).is_preliminary:
            self._take(transfer, reply)
            if transfer.told_bytes > before_bytes:  # only that is a sign of life
                before_bytes = transfer.told_bytes
                deadline_s = time.monotonic() + self._context.options.timeout_s
            if time.monotonic() > deadline_s:
                raise TransferTimeout(f"{self._session.peer} does not confirm {transfer.file.final}")
        if not reply.is_ok:
            raise self.refusal(reply, transfer)
        self.is_owed = False

    def _send(self, transfer: PairedTransfer, data: memoryview) -> None:
        counters = self._counters
        connection = counters.connection
        if connection is None:
            raise ConnectionLost(f"there is no data connection to {self._session.peer}")
        counters.offered_bytes += len(data)
        try:
            connection.sendall(data)
        except TimeoutError:
            limit_s = self._context.options.timeout_s
            raise TransferTimeout(
                f"{self._session.peer} has taken no data for {limit_s:g} s (--timeout) while storing "
                f"{transfer.file.final}"
            ) from None
        except OSError as error:
            raise self._verdict(transfer, error) from None

    def _verdict(self, transfer: PairedTransfer, error: OSError) -> MpxError:
        """Return what the server says of a connection that broke, or that it did."""
        until_s = time.monotonic() + VERDICT_S
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                reply = self._session.poll_reply(left_s)
            except MpxError:
                break
            if reply is not None and not reply.is_preliminary and not reply.is_ok:
                return self.refusal(reply, transfer)
        return ConnectionLost(
            f"a data connection to {self._session.peer} was lost: {error.strerror or error}"
        )

    def refusal(self, reply: Reply, transfer: PairedTransfer) -> MpxError:
        """Return what it means that the server does not store, or says so before the data have ended."""
        file, self.is_owed = transfer.file, False
        if reply.is_ok:
            return ConnectionLost(f"{self._session.peer} ended the transfer of {file.final} before its end")
        return cannot_store(reply, self._session.peer, file.final, file.partial)
