"""The kernel's state of a TCP connection (struct tcp_info, struct tcp_bbr_info), as a line of a file."""

import socket
import struct
from dataclasses import dataclass

STATES = (
    "",
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "close",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
    "new-syn-recv",
)
RECOVERY = ("open", "disorder", "cwr", "recovery", "loss")
NO_THRESHOLD = 0x7FFFFFFF

_INFO_BYTES = 192
_TCP_CC_INFO = 26  # Linux; the socket module has no name for it
_BBR = struct.Struct("=IIIII")  # bandwidth (low, high), min_rtt, pacing_gain, cwnd_gain
_GAIN_ONE = 256


@dataclass(frozen=True, slots=True)
class TcpSample:
    """One sample of a connection; the names are the columns. Counters begin with the connection."""

    state: str
    recovery: str  # open, disorder, cwr, recovery or loss
    rtt_s: float
    rtt_var_s: float
    min_rtt_s: float
    cwnd_packets: int
    ssthresh_packets: int | None  # None: not yet set, so in slow start
    unacked_packets: int
    lost_packets: int
    retransmits: int
    mss_bytes: int
    bytes_acked: int
    bytes_received: int
    unsent_bytes: int
    delivery_rate_bps: int
    app_limited: int  # 1: the delivery rate was limited by the program, not by the network
    pacing_rate_bps: int | None
    busy_s: float
    limited_by_receiver_s: float
    limited_by_sender_s: float
    bbr_bandwidth_bps: int | None
    bbr_min_rtt_s: float | None
    bbr_pacing_gain: float | None  # 2.89 in start-up, 0.35 while it drains
    bbr_cwnd_gain: float | None


def decode(info: bytes, bbr: bytes | None) -> TcpSample | None:
    """Decode the kernel's bytes; None if there are too few (a kernel before 4.10)."""
    if len(info) < _INFO_BYTES:
        return None
    state, recovery = info[0], info[1]
    mss, _, unacked, _, lost = struct.unpack_from("=IIIII", info, 16)
    rtt, rtt_var, ssthresh, cwnd = struct.unpack_from("=IIII", info, 68)
    retransmits = struct.unpack_from("=I", info, 100)[0]
    pacing, _, acked, received = struct.unpack_from("=QQQQ", info, 104)
    unsent, min_rtt = struct.unpack_from("=II", info, 144)
    delivery, busy, by_receiver, by_sender = struct.unpack_from("=QQQQ", info, 160)
    low, high, bbr_rtt, pacing_gain, cwnd_gain = _BBR.unpack_from(bbr) if bbr else (None,) * 5
    return TcpSample(
        state=STATES[state] if state < len(STATES) else str(state),
        recovery=RECOVERY[recovery] if recovery < len(RECOVERY) else str(recovery),
        rtt_s=rtt / 1e6,
        rtt_var_s=rtt_var / 1e6,
        min_rtt_s=min_rtt / 1e6 if min_rtt != 0xFFFFFFFF else 0.0,
        cwnd_packets=cwnd,
        ssthresh_packets=None if ssthresh >= NO_THRESHOLD else ssthresh,
        unacked_packets=unacked,
        lost_packets=lost,
        retransmits=retransmits,
        mss_bytes=mss,
        bytes_acked=acked,
        bytes_received=received,
        unsent_bytes=unsent,
        delivery_rate_bps=delivery * 8,
        app_limited=info[7] & 1,
        pacing_rate_bps=None if pacing == 0xFFFFFFFFFFFFFFFF else pacing * 8,
        busy_s=busy / 1e6,
        limited_by_receiver_s=by_receiver / 1e6,
        limited_by_sender_s=by_sender / 1e6,
        bbr_bandwidth_bps=None if low is None else ((high << 32) | low) * 8,
        bbr_min_rtt_s=None if bbr_rtt is None else bbr_rtt / 1e6,
        bbr_pacing_gain=None if pacing_gain is None else round(pacing_gain / _GAIN_ONE, 3),
        bbr_cwnd_gain=None if cwnd_gain is None else round(cwnd_gain / _GAIN_ONE, 3),
    )


def sample(connection: socket.socket, congestion: str) -> TcpSample | None:
    """Sample a connection of this process that uses this congestion control; None once it is closed."""
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        bbr = None
        if congestion == "bbr":
            bbr = connection.getsockopt(socket.IPPROTO_TCP, _TCP_CC_INFO, _BBR.size)
    except OSError:
        return None
    return decode(info, bbr if bbr and len(bbr) == _BBR.size else None)
