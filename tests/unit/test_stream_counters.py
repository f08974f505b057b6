"""What the kernel tells of connections that send, summed over streams."""

import math
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tls_pairs import tls_pair

from mpx.engine.stream import StreamCounters, StreamTotals
from mpx.net import tcp_info


def pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    return near, far


def test_the_kernel_knows_the_shortest_round_trip() -> None:
    near, far = pair()
    with near, far:
        reading = threading.Thread(target=lambda: [far.recv(1 << 16) for _ in range(100)])
        reading.start()
        for _ in range(100):
            near.sendall(b"x" * 1000)
        info = tcp_info.tcp_info(near)
        near.shutdown(socket.SHUT_WR)
        reading.join()
    assert info is not None
    assert 0 < info.least_rtt_s < 1 and 0 < info.rtt_s < 1


@pytest.mark.parametrize("asked_bytes", [20_000, 60_000])
def test_the_window_is_the_receivers(asked_bytes: int) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, asked_bytes)  # the kernel doubles it
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    with near, far:
        near.sendall(b"x")
        far.recv(1)
        far.sendall(b"x")
        near.recv(1)  # and with it the window
        info = tcp_info.tcp_info(near)
    assert info is not None and asked_bytes / 2 <= info.window_bytes <= 2 * asked_bytes


def open_stream(rtt_s: float, least_s: float, window_bytes: int = 0) -> StreamTotals:
    return StreamTotals(1, rtts_s=(rtt_s,), least_rtt_s=least_s, window_bytes=window_bytes)


def test_what_a_window_carries() -> None:
    sums = StreamTotals()
    assert sums.window_bps is None
    sums.add(open_stream(0.3, 0.2))
    assert sums.window_bps is None
    sums.add(open_stream(0.3, 0.1, 50_000))
    sums.add(open_stream(0.3, 0.2, 40_000))
    assert sums.window_bps == 4e6
    sums.add(open_stream(0.3, 0.2, 80_000).none_open())
    assert sums.window_bps == 4e6


def test_the_queue_is_what_round_trips_are_longer_than_the_shortest() -> None:
    sums = StreamTotals()
    assert sums.queue_s is None
    sums.add(open_stream(0.03, 0.02))
    sums.add(open_stream(0.05, 0.01))
    assert sums.queue_s is not None and abs(sums.queue_s - 0.02) < 1e-9


def test_a_queue_is_met_by_nearly_all() -> None:
    """Of ten streams one may have an old round trip, and some have met a burst of others."""
    sums = StreamTotals()
    for rtt_s in (0.01, 0.02, *[0.03] * 4, *[0.5] * 4):
        sums.add(open_stream(rtt_s, 0.01))
    assert sums.queue_s is not None and abs(sums.queue_s - 0.02) < 1e-9


def test_streams_that_do_not_count_make_no_queue() -> None:
    """Those of idle workers, those that leave, and those that have gone."""
    sums = StreamTotals()
    for _ in range(2):
        sums.add(open_stream(0.1, 0.1))
        sums.add(open_stream(0.4, 0.05).none_open())
    assert (sums.streams, sums.queue_s) == (2, 0.0)


def test_a_stream_that_ended_tells_no_more() -> None:
    near, far = pair()
    stream = StreamCounters()
    stream.opened(near)
    near.sendall(b"x")
    far.recv(1)
    assert len(stream.totals().rtts_s) == 1 and stream.totals().rtts_s[0] > 0
    stream.closed(clean=True)
    far.close()
    ended = stream.totals()
    assert (ended.streams, ended.rtts_s, ended.least_rtt_s) == (0, (), math.inf)


def test_the_kernel_knows_the_round_trips_of_what_it_receives() -> None:
    near, far = pair()
    with near, far:
        reading = threading.Thread(target=lambda: all(iter(lambda: far.recv(1 << 20), b"")))
        reading.start()
        near.sendall(bytes(20_000_000))
        info, sender = tcp_info.tcp_info(far), tcp_info.tcp_info(near)
        near.shutdown(socket.SHUT_WR)
        reading.join()
    assert info is not None and sender is not None
    assert 0 < info.received_rtt_s < 10 and sender.received_rtt_s == 0


def test_what_tls_adds_is_no_progress(tmp_path: Path, eventually: Callable[..., None]) -> None:
    with tls_pair(tmp_path) as (client, server):
        counters = StreamCounters()
        counters.opened(client)
        counters.passed_bytes = counters.offered_bytes = 1 << 30
        size = 6 << 20  # of which TLS makes 8 KiB more
        reading = threading.Thread(target=lambda: [server.recv(1 << 20) for _ in range(size >> 14)])
        reading.start()
        client.sendall(bytes(size))
        reading.join()
        eventually(lambda: not tcp_info.unacknowledged_bytes(client))
        handshake_bytes = 1000
        assert size <= counters.totals().bytes <= size + handshake_bytes
        counters.closed(clean=False)
