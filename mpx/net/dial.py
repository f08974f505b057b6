"""How a data connection is opened, before it is known where to."""

import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass

from mpx.choices import PortRange
from mpx.errors import UsageError
from mpx.net import tcp
from mpx.net.congestion_control import set_congestion
from mpx.net.pacing import pace


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Dial:
    """See tcp.connect, whose options these are."""

    timeout_s: float
    source_ports: PortRange | None = None
    source_host: str | None = None
    congestion: str | None = None
    paced: bool = False
    over_mptcp: bool = False
    bound: Callable[[int], None] | None = None
    stop: Callable[[], bool] = _never

    def connect(self, address: tcp.Address) -> socket.socket:
        """Open a connection; raises as tcp.connect."""
        return tcp.connect(
            address,
            self.timeout_s,
            source_ports=self.source_ports,
            source_host=self.source_host,
            congestion=self.congestion,
            paced=self.paced,
            over_mptcp=self.over_mptcp,
            bound=self.bound,
            stop=self.stop,
        )

    @property
    def is_ordinary(self) -> bool:
        """Whether a connection that was opened without options can become one of these."""
        return not (self.source_ports or self.source_host or self.over_mptcp or self.bound)

    def adapt(self, connection: socket.socket) -> None:
        """Make a connection one of these that was opened without options, where `is_ordinary`."""
        if self.congestion:
            with contextlib.suppress(OSError, UsageError):  # its route has another, as for all
                set_congestion(connection, self.congestion)
        if self.paced:
            pace(connection)
