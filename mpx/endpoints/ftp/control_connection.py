"""The control channel of a session: which address answers, what is between, what the kernel knows of it."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from mpx.endpoints.ftp.secured import Security
from mpx.errors import ConnectionLost, MpxError, UsageError
from mpx.location import Location
from mpx.net import congestion_control, tcp, tcp_info


@dataclass(frozen=True, slots=True)
class ControlWay:
    """How the control channel is opened; see SessionOptions."""

    timeout_s: float
    family: int
    data_address: str | None
    bound: Callable[[int], None] | None
    stop: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class KernelView:
    """What the kernel knows of a control channel."""

    connection: socket.socket

    @property
    def rtt_s(self) -> float | None:
        """Its round-trip time, None when it is closed."""
        info = tcp_info.tcp_info(self.connection)
        return info.rtt_s if info else None

    @property
    def congestion(self) -> str | None:
        """What its congestion is controlled with, None when it is closed."""
        try:
            return congestion_control.congestion_of(self.connection)
        except OSError:
            return None

    @property
    def is_congestion_fixed(self) -> bool:
        """Whether the route to the server lets nobody choose the congestion control."""
        return congestion_control.is_congestion_fixed(self.connection)


def connect_control(
    location: Location, way: ControlWay, address: tcp.Address | None, security: Security | None
) -> socket.socket:
    """Return the connection, ready for commands; `address`: of the server, where it is known already.

    Raises ConnectionLost, UsageError where no address of the server is of the family that is asked for,
    Interrupted, and as Security.control.
    """

    def reach() -> socket.socket:
        try:
            return _reach(location, way, address)
        except ConnectionLost as error:
            server = f"{location.scheme}://{tcp.show((location.host, location.port))}"
            runs = ", and that mpx serve runs there" if location.scheme == "mpx" else ""
            raise ConnectionLost(f"{error}; check host and port of {server}{runs}") from None

    if security is None:
        return reach()
    return security.control(reach, way.timeout_s, way.stop)


def _reach(location: Location, way: ControlWay, address: tcp.Address | None) -> socket.socket:
    if address:
        return tcp.connect(address, way.timeout_s, bound=way.bound, stop=way.stop)
    lost: MpxError | None = None
    for family, found in tcp.resolve(location.host, location.port, way.family, way.stop):
        if way.data_address and family != tcp.family_of(way.data_address):
            lost = lost or UsageError(
                f"--data-address {way.data_address} is not possible here: {location.host} "
                f"has no address of that family"
            )
            continue
        try:
            return tcp.connect(found, way.timeout_s, bound=way.bound, stop=way.stop)
        except ConnectionLost as error:
            lost = error
    raise lost or ConnectionLost(f"{location.host} has no address")
