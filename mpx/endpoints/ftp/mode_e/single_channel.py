"""Downloads in MODE E, a channel of one connection, over which who has asked for it receives itself."""

import socket
import threading
from collections.abc import Callable

from mpx.endpoints.ftp.data_address import DataPort
from mpx.endpoints.ftp.framing import BlockHeader
from mpx.endpoints.ftp.mode_e.channel_opening import Inbound
from mpx.endpoints.ftp.mode_e.data_dialer import DataDialer
from mpx.engine.carrier import CarrierContext
from mpx.engine.stream import StreamCounters
from mpx.errors import MpxError


class SingleChannel:
    """See ConnectionTaker. One thread uses it, but for what may be called from any there, and `cut`."""

    parallelism = 1

    def __init__(
        self, context: CarrierContext, server_host: str, fits: Callable[[BlockHeader], bool]
    ) -> None:
        """`fits`: whether what is asked for may begin with such a block."""
        self.context = context
        self.broken: MpxError | None = None  # why there is no connection; written once, by any thread
        self._server_host = server_host
        self._fits = fits
        self._inbound: Inbound | None = None  # once it has started
        self._counters = StreamCounters()  # of the connection
        self._arrived = threading.Event()
        self._guard = threading.Lock()  # of what follows, and of taking the connection
        self._is_closed = False

    @property
    def connection(self) -> socket.socket | None:
        """The connection, once there is one."""
        return self._counters.connection

    def wait(self, timeout_s: float) -> None:
        """Return once there is a connection, after so long at most."""
        self._arrived.wait(timeout_s)

    def start(self, inbound: Inbound) -> None:
        """See ConnectionTaker."""
        self._inbound = inbound
        inbound.start()

    def dial(self, port: DataPort) -> None:
        """See ConnectionTaker."""
        assert isinstance(self._inbound, DataDialer)
        self._inbound.dial(port)

    def was_reached(self, host: str) -> None:
        """See ConnectionTaker."""
        if host == self._server_host:
            self.context.events.inbound.set()

    def admit(self, connection: socket.socket, header: BlockHeader) -> bool:
        """See ConnectionTaker."""
        return self._fits(header) and self.join_dialed(connection)

    def join_dialed(self, connection: socket.socket) -> bool:
        """See ConnectionTaker."""
        with self._guard:
            if self._is_closed or self.connection is not None:
                return False
            self._counters.opened(connection)
        self.context.events.inbound.set()
        self._arrived.set()
        return True

    def fail(self, error: MpxError) -> None:
        """See ConnectionTaker."""
        self.broken = error

    def cut(self) -> None:
        """Reset the connection, from any thread, and let none in any more."""
        with self._guard:
            self._is_closed = True
        if self._inbound:
            self._inbound.close()
        self._counters.cut()

    def close(self) -> None:
        """Close the connection, and wait until none is on its way."""
        self.cut()
        if self._inbound:
            self._inbound.join()
            for port in self._inbound.ports:
                self.context.streams.paths.ended(port, "sink")
        self._counters.closed(clean=False)
