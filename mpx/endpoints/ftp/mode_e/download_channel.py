"""Downloads in MODE E, the streams: connections that the server opens to our listening port.

The server fixes their number when it answers PORT; a channel has these connections to its end. It is fed
with partial retrieves (ERET) that are queued ahead, and all its connections serve one after the other: each
says by EOD that it is done with a retrieve, and goes on to the next. Each channel listens on a port of its
own, so that none gets a connection that was meant for another.
"""

import socket
import threading

from mpx.endpoints.ftp.framing import BlockHeader
from mpx.endpoints.ftp.mode_e.data_listener import DataListener
from mpx.endpoints.ftp.mode_e.download_stream import DownloadStream
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, ControllerError, MpxError


class DownloadDataChannel:
    """The connections that the server opened for one PORT, and the retrieves they serve in order."""

    def __init__(
        self,
        context: CarrierContext,
        parallelism: int,
        listener: socket.socket,
        server_host: str,
        *,
        path: str = DEFAULT_PATH,
    ) -> None:
        """`path`: which the connections take."""
        self.context = context
        self.limiter = context.controls[path].limiter
        self.parallelism = parallelism
        # Written with `_changed` held, each read by itself; `reached` by the listener only.
        self.broken: MpxError | None = None
        self.spoiled: FileTransfer | None = None  # the one file that is to blame for it, if one is
        self.reached = False  # a connection has come in, most likely the server's
        self._server_host = server_host
        self._inbound = DataListener(
            listener,
            parallelism,
            server_host=server_host,
            connected=self._was_reached,
            admit=self.admit,
            stays_open=context.streams.over_mptcp,
        )
        self._changed = threading.Condition()
        self._retrieves: dict[int, PartialRetrieve] = {}
        self._added = 0
        self._streams: list[DownloadStream] = []
        self._past = StreamTotals()
        self._closed = False

    def add(self, retrieve: PartialRetrieve) -> None:
        """Queue a retrieve, before its ERET is sent."""
        with self._changed:
            retrieve.number = self._added
            self._retrieves[self._added] = retrieve
            self._added += 1
            self._changed.notify_all()

    def start(self) -> None:
        """Let connections in, before PORT is sent."""
        self._inbound.start()

    @property
    def address(self) -> tuple[str, int]:
        """Where the server is to connect to."""
        return self._inbound.address

    def _was_reached(self, host: str) -> None:
        self.reached = True
        if host == self._server_host:
            self.context.events.inbound.set()

    def connections(self) -> list[socket.socket]:
        """Return those that are open."""
        with self._changed:
            streams = list(self._streams)
        return [stream.connection for stream in streams if stream.connection is not None]

    def admit(self, connection: socket.socket, header: BlockHeader) -> bool:
        """Start a stream on a connection whose first header is this; False if it does not belong here.

        It begins with the oldest retrieve that is not done: one that connects late had no part in those
        before, as what they said of their number shows.
        """
        with self._changed:
            waiting = [number for number, retrieve in self._retrieves.items() if not retrieve.is_done]
            if self._closed or not waiting or not self._retrieves[min(waiting)].admits(header):
                return False
            self.context.events.inbound.set()
            try:
                self.context.streams.paths.lead_to(str(connection.getpeername()[0]))
            except ControllerError as error:
                self.fail(error)
                return False
            stream = DownloadStream(self, connection, first=min(waiting))
            try:
                stream.start()  # within the lock: it must run before anybody may join it
            except RuntimeError as error:
                self.fail(ConnectionLost(f"cannot start a thread for a data connection: {error}"))
                return False
            self._streams.append(stream)
            return True

    def retrieve_at(self, index: int) -> PartialRetrieve | None:
        """Return the retrieve number `index`, waiting for it; None when the channel is closed.

        Raises ConnectionLost when all the others say that they were done with it without this one.
        """
        with self._changed:
            while self._added <= index and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            if index not in self._retrieves:
                raise ConnectionLost(
                    "the server announced different numbers of data connections for one transfer"
                )
            return self._retrieves[index]

    def forget(self, retrieve: PartialRetrieve) -> None:
        """Let go of a retrieve that every connection is past."""
        with self._changed:
            self._retrieves.pop(retrieve.number, None)

    def fail(self, error: MpxError, spoiled: FileTransfer | None = None) -> None:
        """Say that the retrieves under way cannot be completed; `spoiled`: the file that it is due to."""
        with self._changed:
            if not self._closed and self.broken is None:
                self.broken, self.spoiled = error, spoiled

    def left(self, stream: DownloadStream) -> None:
        """Forget a stream that has ended, keeping its counters."""
        totals = stream.totals()
        with self._changed:
            self._streams.remove(stream)
            self._past.add(totals)

    def totals(self) -> StreamTotals:
        """Return the counters of the channel's connections."""
        sums = StreamTotals()
        with self._changed:
            for stream in self._streams:
                sums.add(stream.totals())
            sums.add(self._past)
        return sums

    def cut(self) -> None:
        """Reset every connection and let no more in; their threads end soon."""
        self._inbound.close()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            streams = list(self._streams)
        for stream in streams:
            stream.cut()

    def join(self) -> None:
        """Wait until the threads have ended."""
        self._inbound.join()
        with self._changed:
            streams = list(self._streams)
        for stream in streams:
            stream.join()
