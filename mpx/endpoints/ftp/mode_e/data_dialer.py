"""Connections of a download that we open ourselves, inside TLS (`mpx://`): at once, each in a thread."""

import socket
import threading
from collections.abc import Callable

from mpx.endpoints.ftp.data_address import DataPort
from mpx.engine.carrier import CarrierContext
from mpx.errors import Interrupted, MpxError
from mpx.net import tcp
from mpx.net.dial import Dial


class DataDialer:
    """Opens as many connections as a channel has, once the server has said how; see DataListener."""

    def __init__(
        self,
        context: CarrierContext,
        count: int,
        *,
        bound: Callable[[int], None] | None,
        admit: Callable[[socket.socket], bool],
        failed: Callable[[MpxError], None],
    ) -> None:
        """`bound` is told the port of each before it connects; `admit` takes it over, unless it says no."""
        self.address: tcp.Address = ("", 0)  # of the server, once it is known
        self.ports: list[int] = []  # ours, where somebody is told of them; lists only grow
        self._context = context
        self._count = count
        self._tell_bound = bound
        self._admit = admit
        self._failed = failed
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []  # of the thread that dials and joins

    def start(self) -> None:
        """See DataListener: nothing is to be done before the server has answered."""

    def dial(self, port: DataPort) -> None:
        """Begin to open the connections."""
        self.address = port.address
        for _ in range(self._count):
            thread = threading.Thread(target=self._open, args=(port,), name="mpx-dial", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._failed(MpxError(f"cannot start a thread for a data connection: {error}"))
                return
            self._threads.append(thread)

    def close(self) -> None:
        """Open no more; the threads end soon."""
        self._closed.set()

    def join(self) -> None:
        """Wait until none is being opened."""
        for thread in self._threads:
            thread.join()

    def _open(self, port: DataPort) -> None:
        options, streams = self._context.options, self._context.streams
        try:
            connection = port.open(
                Dial(
                    timeout_s=options.connect_timeout_s,
                    source_ports=streams.source_ports,
                    source_host=options.data_address,
                    over_mptcp=streams.over_mptcp,
                    bound=self._bound if self._tell_bound else None,
                    stop=self._closed.is_set,
                ),
                options.connect_timeout_s,
                self._closed.is_set,
            )
        except Interrupted:
            return
        except (MpxError, OSError) as error:
            self._failed(error if isinstance(error, MpxError) else MpxError(f"a data connection: {error}"))
            return
        if not self._admit(connection):
            connection.close()

    def _bound(self, number: int) -> None:
        assert self._tell_bound
        self.ports.append(number)
        self._tell_bound(number)
