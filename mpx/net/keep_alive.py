"""TCP keepalive: noticing that the other side is gone while nothing is to be sent for long."""

import contextlib
import socket

_PROBES = 3


def keep_alive(connection: socket.socket, within_s: float) -> None:
    """Have the kernel end a connection whose other side has not answered for about `within_s`."""
    each_s = max(1, round(within_s / (_PROBES + 1)))
    with contextlib.suppress(OSError):  # of a socket that has ended, whose next use says so
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, each_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, each_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(within_s * 1000))
