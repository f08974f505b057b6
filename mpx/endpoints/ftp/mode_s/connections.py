"""Transfers in MODE S, the data connections: one for each RETR or STOR, opened by us."""

import socket
import threading
from collections.abc import Callable
from typing import TypeVar

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.data_address import connect_data, port_from
from mpx.endpoints.ftp.early_end import await_first, brings_nothing, early_reply
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.refusals import cannot_send, cannot_store
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stream import StreamCounters, StreamTotals
from mpx.errors import ConnectionLost, MpxError, NoSpace, OffsetsUnproven, TransferTimeout

VERDICT_S = 5.0  # wait for the server's reply after a data connection broke
_NO_OFFSET = (501, 504, 551, 554)  # of RETR: what it cannot do after REST

Result = TypeVar("Result")


class _Connection(StreamCounters):
    """The data connection of one transfer; its worker's thread uses it."""

    def count(self, size_bytes: int) -> None:
        """Take note of bytes that have passed."""
        self.passed_bytes += size_bytes


class DataConnections:
    """The data connections of one worker, one after the other."""

    def __init__(self, context: CarrierContext, timeout_s: float, *, upload: bool) -> None:
        self._context = context
        self._timeout_s = timeout_s
        self._upload = upload
        self._guard = threading.Lock()  # of both that follow
        self._open: _Connection | None = None
        self._ended_bytes = 0  # of connections that have ended

    def totals(self) -> StreamTotals:
        """Return the counters of all connections that there are and were; from any thread."""
        with self._guard:
            sums = StreamTotals(bytes=self._ended_bytes)
            if self._open and self._upload:
                sums.add(self._open.totals())
            elif self._open:
                sums.add(StreamTotals(streams=1, bytes=self._open.passed_bytes))
        return sums

    def cut(self) -> None:
        """Reset the connection; from any thread."""
        with self._guard:
            if self._open:
                self._open.cut()

    def transfer(
        self,
        session: ClientSession,
        file: FileTransfer,
        offset: int,
        use: Callable[[socket.socket, Callable[[int], None]], Result],
    ) -> Result:
        """Open a data connection for a file from an offset on, `use` it with what counts bytes, and close it.

        The final reply is left to be read. Raises ConnectionLost, TransferTimeout, OffsetsUnproven and what
        a refusal means.
        """
        verb, name = ("STOR", file.partial) if self._upload else ("RETR", file.source)
        telnet_escape.learn(session, name)
        port = port_from(session, offset, Direction.UP if self._upload else Direction.DOWN)
        session.send(command(verb, session.name(name)))
        context = self._context
        data = _Connection(context.supervisor.stream_ended if context.streams.over_mptcp else None)
        try:
            congestion = context.streams.congestion_of(DEFAULT_PATH) if self._upload else None
            try:
                connection = connect_data(
                    session, port, congestion=congestion, over_mptcp=context.streams.over_mptcp
                )
            except ConnectionLost as error:
                connection = self._unconnected(session, file, offset, error)
            data.opened(connection)
            with self._guard:
                self._open = data
            reply = session.read_reply()
            connection.settimeout(self._timeout_s)
            if not self._upload and reply.is_ok:
                session.put_back(reply)
                await_first(connection, session.peer, file.source, is_sized=file.listed_bytes is not None)
            elif not reply.is_preliminary:
                raise self._turned_down(session, reply, file, offset)
            try:
                return use(connection, data.count)
            except TimeoutError:
                what = f"nothing has moved for {self._timeout_s:g} s between us and {session.peer}"
                raise self._verdict(session, file, TransferTimeout(what), 0.0) from None
            except OSError as error:
                what = f"a data connection to {session.peer} was lost: {error.strerror or error}"
                raise self._verdict(session, file, ConnectionLost(what), VERDICT_S) from None
        finally:
            with self._guard:
                self._open = None
                self._ended_bytes += data.passed_bytes
            data.closed(clean=False)

    def _unconnected(
        self, session: ClientSession, file: FileTransfer, offset: int, error: MpxError
    ) -> socket.socket:
        """Return an ended connection if the server closed its port because the file is empty; else raise why.

        `error` is that of connecting to the port.
        """
        if not self._upload and file.listed_bytes is None:
            raise error  # that it is empty is not known
        reply = early_reply(session, error)
        if not reply.is_ok or self._upload:
            raise self._turned_down(session, reply, file, offset) from None
        session.put_back(reply)
        return brings_nothing()

    def _turned_down(self, session: ClientSession, reply: Reply, file: FileTransfer, offset: int) -> MpxError:
        if offset and reply.code in _NO_OFFSET:
            return OffsetsUnproven(f"{session.peer} cannot start at an offset: {reply.reason}")
        return self.refusal(session, reply, file)

    def _verdict(
        self, session: ClientSession, file: FileTransfer, error: MpxError, wait_s: float
    ) -> MpxError:
        """Return what the server says of a broken connection, or of one that it left open, else `error`."""
        try:
            reply = session.poll_reply(wait_s)
        except MpxError:
            return error
        if reply is None or reply.is_ok or reply.is_preliminary:
            return error
        return self.broken(session, reply, file)

    def broken(self, session: ClientSession, reply: Reply, file: FileTransfer) -> MpxError:
        """Return what it means that a transfer was ended by a refusal: try again, but on a full disk."""
        refusal = self.refusal(session, reply, file)
        return refusal if isinstance(refusal, NoSpace) else ConnectionLost(str(refusal))

    def refusal(self, session: ClientSession, reply: Reply, file: FileTransfer) -> MpxError:
        """Return what it means that the server refuses to store or send a file."""
        if self._upload:
            return cannot_store(reply, session.peer, file.final, file.partial)
        return cannot_send(reply, session.peer, file.source)
