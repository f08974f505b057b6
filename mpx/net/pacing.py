"""Pacing of TCP sockets, and the limit of unsent data that the kernel holds."""

import contextlib
import socket
import struct

from mpx.net.beyond_sockets import is_local
from mpx.net.tcp_info import tcp_info

_TCP_NOTSENT_LOWAT = 25  # Linux; not in the socket module
_SO_MAX_PACING_RATE = 47  # Linux; not in the socket module
_UNLIMITED_PACE = struct.pack("=Q", 1 << 62)  # byte/s: any limit turns pacing on; this one never applies
PACED_RTT_S = 0.005  # at a shorter RTT bursts are small, and the timers cost more than they gain


def limit_unsent(connection: socket.socket, size_bytes: int) -> None:
    """Let the kernel hold at most about `size_bytes` that are not sent yet (TCP_NOTSENT_LOWAT)."""
    if not is_local(connection):
        connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, size_bytes)


def pace(connection: socket.socket) -> None:
    """Have the kernel spread what it sends over each round trip, where that is long, instead of in bursts.

    Bursts at the start of many streams overflow a short queue, and the recovery takes many round trips
    (docs/decisions/0014). Best effort: a kernel without pacing sends in bursts.
    """
    info = tcp_info(connection)
    if info and info.rtt_s and info.rtt_s >= PACED_RTT_S:
        with contextlib.suppress(OSError):
            limit_pace(connection, None)


def limit_pace(connection: socket.socket, rate_bps: float | None) -> None:
    """Limit the rate from the next packet on; None: no limit.

    Raises OSError for a connection that has ended, and in a kernel that cannot.
    """
    pace = _UNLIMITED_PACE if rate_bps is None else struct.pack("=Q", int(rate_bps / 8))
    connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, pace)
