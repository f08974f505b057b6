"""Downloads in MODE E, the streams: connections that the server opens to our port, or we to its inside TLS.

Their number is fixed when the server answers PORT or DATA; a channel has these connections to its end. It
is fed with partial retrieves (ERET) that are queued ahead, and all its connections serve one after the other:
each says by EOD that it is done with a retrieve, and goes on to the next. Each channel listens on a port of
its own, so that none gets a connection that was meant for another.
"""

import socket
import threading
from collections.abc import Sequence

from mpx.endpoints.ftp.data_address import DataPort
from mpx.endpoints.ftp.framing import BlockHeader
from mpx.endpoints.ftp.mode_e.channel_opening import Inbound
from mpx.endpoints.ftp.mode_e.data_dialer import DataDialer
from mpx.endpoints.ftp.mode_e.download_stream import DownloadStream
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, ControllerError, MpxError
from mpx.net.beyond_sockets import peer_host


class DownloadDataChannel:
    """The connections that the server opened for one PORT, and the retrieves they serve in order."""

    def __init__(
        self,
        context: CarrierContext,
        parallelism: int,
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
        self._inbound: Inbound | None = None  # once it has started
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

    def start(self, inbound: Inbound) -> None:
        """Let connections come about as `inbound` makes them, before the server is told."""
        self._inbound = inbound
        inbound.start()

    def dial(self, port: DataPort) -> None:
        """Open the connections, where that is up to us: the server has answered."""
        assert isinstance(self._inbound, DataDialer)
        self._inbound.dial(port)

    @property
    def address(self) -> tuple[str, int]:
        """Where the server is to connect to, or we are."""
        return self._inbound.address if self._inbound else ("", 0)

    @property
    def ports(self) -> Sequence[int]:
        """Our ports that data may have come to."""
        return self._inbound.ports if self._inbound else ()

    def was_reached(self, host: str) -> None:
        """Note that a connection has come in from that host."""
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
            return self._begin(connection, min(waiting))

    def join_dialed(self, connection: socket.socket) -> bool:
        """Start a stream on a connection that we have opened: it takes part in every retrieve."""
        self.was_reached(self._server_host)
        with self._changed:
            return not self._closed and self._begin(connection, 0)

    def _begin(self, connection: socket.socket, first: int) -> bool:
        self.context.events.inbound.set()
        try:
            self.context.streams.paths.lead_to(peer_host(connection))
        except ControllerError as error:
            self.fail(error)
            return False
        except OSError:  # it has ended already
            self.fail(ConnectionLost("a data connection was lost as soon as it was open"))
            return False
        stream = DownloadStream(self, connection, first=first)
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
        if self._inbound:
            self._inbound.close()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            streams = list(self._streams)
        for stream in streams:
            stream.cut()

    def join(self) -> None:
        """Wait until the threads have ended."""
        if self._inbound:
            self._inbound.join()
        with self._changed:
            streams = list(self._streams)
        for stream in streams:
            stream.join()
