"""The kernel's record of a TCP connection (struct tcp_info)."""

import fcntl
import socket
import struct
import termios
from dataclasses import dataclass, replace

from mpx.net import mptcp


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """The record of one connection (struct tcp_info); counters since it was opened."""

    bytes_acked: int
    bytes_received: int
    retransmits: int
    rtt_s: float
    least_rtt_s: float
    busy_s: float  # time with data to send
    limited_by_receiver_s: float  # of which limited by the receive window
    limited_by_sender_s: float  # of which limited by our send buffer
    window_bytes: int  # the receive window of the peer; 0 where not known (before Linux 5.4)
    delivered_bytes: int  # also after a gap, in whole segments; 0 where not known (before Linux 4.18)
    received_rtt_s: float  # smoothed, in steps of 1 ms, by the time stamps of what comes in; 0: unknown


_OPTIONS_AT, _TIMESTAMPS = 5, 1  # tcpi_options, and its bit for time stamps
# tcpi_rtt at 68, tcpi_rcv_rtt at 92, tcpi_total_retrans at 100, tcpi_min_rtt at 148, ...
_FIELD = struct.Struct("=I")
_SEGMENT_AT, _DELIVERED_AT = 16, 192  # ... tcpi_snd_mss and tcpi_delivered, in segments
_WINDOW_AT = 228  # ... tcpi_snd_wnd
_COUNTERS = struct.Struct("=QQ")  # tcpi_bytes_acked at 120, tcpi_bytes_received
_LIMITS = struct.Struct("=QQQ")  # tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited at 168
_TCP_INFO_BYTES = 192  # at least


def tcp_info(connection: socket.socket) -> TcpInfo | None:
    """Return the kernel's record of a connection, or None when it is closed or the kernel too old.

    Of Multipath TCP bytes are those of all subflows, and all else is that of the first.
    """
    found = parse_tcp_info(raw_tcp_info(connection))
    if found is None or (whole := mptcp.mptcp_info(connection)) is None:
        return found
    acked = whole.bytes_acked
    return replace(found, bytes_acked=acked, delivered_bytes=acked, bytes_received=whole.bytes_received)


def raw_tcp_info(connection: socket.socket) -> bytes:
    """Return the record as the kernel writes it, for another process of this host; empty when closed."""
    try:
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _WINDOW_AT + _FIELD.size)
    except OSError:
        return b""


def parse_tcp_info(raw: bytes) -> TcpInfo | None:
    """Read a record as the kernel writes it; None where it is too short."""
    if len(raw) < _TCP_INFO_BYTES:
        return None
    busy, receiver, sender = _LIMITS.unpack_from(raw, 168)
    acked, received = _COUNTERS.unpack_from(raw, 120)
    return TcpInfo(
        bytes_acked=acked,
        bytes_received=received,
        retransmits=_FIELD.unpack_from(raw, 100)[0],
        rtt_s=_FIELD.unpack_from(raw, 68)[0] / 1e6,
        least_rtt_s=_FIELD.unpack_from(raw, 148)[0] / 1e6,
        busy_s=busy / 1e6,
        limited_by_receiver_s=receiver / 1e6,
        limited_by_sender_s=sender / 1e6,
        window_bytes=_field(raw, _WINDOW_AT),
        delivered_bytes=_field(raw, _DELIVERED_AT) * _field(raw, _SEGMENT_AT),
        received_rtt_s=_FIELD.unpack_from(raw, 92)[0] / 1e6 if raw[_OPTIONS_AT] & _TIMESTAMPS else 0.0,
    )


def _field(raw: bytes, at: int) -> int:
    return int(_FIELD.unpack_from(raw, at)[0]) if len(raw) >= at + _FIELD.size else 0


def unacknowledged_bytes(connection: socket.socket | None) -> int:
    """Return the bytes that were sent and not acknowledged; 0 for a closed connection."""
    if connection is None:
        return 0
    try:
        raw = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return int(struct.unpack("i", raw)[0])
