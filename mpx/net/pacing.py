"""How fast the kernel sends over a TCP socket, and how much it may hold unsent."""

import contextlib
import socket
import struct

from mpx.net.tcp_info import tcp_info

_TCP_NOTSENT_LOWAT = 25  # Linux; the socket module has no name for it
_SO_MAX_PACING_RATE = 47  # that one neither
_UNLIMITED_PACE = struct.pack("=Q", 1 << 62)  # byte/s: any limit turns pacing on, none is meant
PACED_RTT_S = 0.005  # over a shorter way bursts are small, and the timers cost more than they bring


def limit_unsent(connection: socket.socket, size_bytes: int) -> None:
    """Let the kernel hold at most about `size_bytes` that are not sent yet (TCP_NOTSENT_LOWAT)."""
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, size_bytes)


def pace(connection: socket.socket) -> None:
    """Have the kernel spread what it sends over each round trip, where that is long, instead of in bursts.

    The bursts with which many streams begin overflow a small queue, and what that costs takes many round
    trips to win back (docs/decisions/0014). Best effort: a kernel without it sends as it always did.
    """
    info = tcp_info(connection)
    if info and info.rtt_s and info.rtt_s >= PACED_RTT_S:
        with contextlib.suppress(OSError):
            limit_pace(connection, None)


def limit_pace(connection: socket.socket, rate_bps: float | None) -> None:
    """Have the kernel send no faster than that from the next packet on; None: as fast as it may.

    Raises OSError for a connection that has ended, and in a kernel that cannot.
    """
    pace = _UNLIMITED_PACE if rate_bps is None else struct.pack("=Q", int(rate_bps / 8))
    connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, pace)
