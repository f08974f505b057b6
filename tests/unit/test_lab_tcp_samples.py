"""What the kernel's bytes about a connection mean."""

import socket
import struct

from mpx_lab.traffic.tcp_samples import decode, sample


def test_literal_bytes() -> None:
    info = bytearray(232)
    info[0], info[1], info[7] = 1, 3, 1
    struct.pack_into("=IIIII", info, 16, 1448, 536, 40, 2, 5)
    struct.pack_into("=IIII", info, 68, 30_500, 1_500, 0x7FFFFFFF, 42)
    struct.pack_into("=I", info, 100, 17)
    struct.pack_into("=QQQQ", info, 104, 1_000_000, 2**64 - 1, 123_456, 99)
    struct.pack_into("=II", info, 144, 7_000, 30_000)
    struct.pack_into("=QQQQ", info, 160, 2_500_000, 3_000_000, 200_000, 100_000)
    bbr = struct.pack("=IIIII", 500, 1, 29_000, 739, 512)
    seen = decode(bytes(info), bbr)
    assert seen is not None
    assert (seen.state, seen.recovery, seen.app_limited) == ("established", "recovery", 1)
    assert (seen.rtt_s, seen.rtt_var_s, seen.min_rtt_s) == (0.0305, 0.0015, 0.03)
    assert (seen.cwnd_packets, seen.ssthresh_packets, seen.unacked_packets, seen.lost_packets) == (
        42,
        None,
        40,
        5,
    )
    assert (seen.retransmits, seen.mss_bytes, seen.bytes_acked, seen.bytes_received) == (
        17,
        1448,
        123_456,
        99,
    )
    assert (seen.unsent_bytes, seen.delivery_rate_bps, seen.pacing_rate_bps) == (7_000, 20_000_000, 8_000_000)
    assert (seen.busy_s, seen.limited_by_receiver_s, seen.limited_by_sender_s) == (3.0, 0.2, 0.1)
    assert seen.bbr_bandwidth_bps == (2**32 + 500) * 8
    assert (seen.bbr_min_rtt_s, seen.bbr_pacing_gain, seen.bbr_cwnd_gain) == (0.029, 2.887, 2.0)
    plain = decode(bytes(info), None)
    assert plain is not None
    assert plain.bbr_bandwidth_bps is plain.bbr_pacing_gain is None


def test_too_few_bytes_and_a_closed_connection() -> None:
    assert decode(bytes(100), None) is None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        accepted.sendall(b"12345")
        assert connection.recv(5, socket.MSG_WAITALL) == b"12345"
        seen = sample(connection, "cubic")
        assert seen is not None
        assert (seen.state, seen.bytes_received) == ("established", 5)
        accepted.close()
        connection.close()
    assert sample(connection, "cubic") is None
