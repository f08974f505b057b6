"""Multipath TCP (RFC 8684) as Linux has it: one connection whose subflows may take several paths."""

import socket
import struct
from contextlib import suppress
from functools import cache
from typing import NamedTuple

FEATURE = "MPX-MPTCP"  # in the reply to FEAT: the server can connect with it (docs/extensions.md)
PROTOCOL = 262  # IPPROTO_MPTCP; in the socket module only where it was built with it
_SOL_MPTCP, _MPTCP_INFO = 284, 1
_SUBFLOWS = struct.Struct("=B")  # mptcpi_subflows: those beside the first
_COUNTERS = struct.Struct("=QQ")  # mptcpi_bytes_received, mptcpi_bytes_acked at 64
_COUNTERS_AT, _INFO_BYTES = 64, 80


class MptcpInfo(NamedTuple):
    """The kernel's record of one connection, over all its subflows so far."""

    subflows: int  # now
    bytes_received: int
    bytes_acked: int


def mptcp_info(connection: socket.socket) -> MptcpInfo | None:
    """Return the kernel's record; None for plain TCP, also where the peer has no Multipath TCP."""
    if connection.proto != PROTOCOL:
        return None
    try:
        raw = connection.getsockopt(_SOL_MPTCP, _MPTCP_INFO, _INFO_BYTES)
    except OSError:
        return None
    if len(raw) < _INFO_BYTES:
        return None
    received, acked = _COUNTERS.unpack_from(raw, _COUNTERS_AT)
    return MptcpInfo(_SUBFLOWS.unpack_from(raw)[0] + 1, received, acked)


@cache
def why_not(family: int = socket.AF_INET) -> str:
    """Return why this kernel has no usable Multipath TCP; an empty text where it has.

    Kernels may have it for IPv4 alone (`CONFIG_MPTCP_IPV6`), so it is asked for each family.
    """
    try:
        with socket.socket(family, socket.SOCK_STREAM, PROTOCOL) as asked:
            if len(asked.getsockopt(_SOL_MPTCP, _MPTCP_INFO, _INFO_BYTES)) == _INFO_BYTES:
                return ""
            return "its Multipath TCP does not report what has arrived (Linux 6.5 and later do)"
    except OSError as error:
        return f"it has no Multipath TCP ({error.strerror or error}; as root: sysctl -w net.mptcp.enabled=1)"


def socket_for(family: int) -> socket.socket:
    """Return a new socket; of plain TCP where the kernel has no Multipath TCP. A peer may use either."""
    if not why_not(family):
        with suppress(OSError):  # it may have been disabled meanwhile (net.mptcp.enabled)
            return socket.socket(family, socket.SOCK_STREAM, PROTOCOL)
    return socket.socket(family, socket.SOCK_STREAM)
