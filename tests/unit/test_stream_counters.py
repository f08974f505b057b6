"""What the kernel tells of connections that send, summed over streams."""

import math
import socket
import threading

from mpx import tcp
from mpx.stream import Stream, StreamTotals


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
        info = tcp.tcp_info(near)
        near.shutdown(socket.SHUT_WR)
        reading.join()
    assert info is not None
    assert 0 < info.least_rtt_s < 1 and 0 < info.rtt_s < 1


def test_sums_keep_the_shortest_round_trip_and_those_of_open_streams() -> None:
    sums = StreamTotals()
    assert sums.least_rtt_s == math.inf
    for rtt_s, least_s in ((0.03, 0.02), (0.05, 0.01)):
        sums.add(StreamTotals(streams=1, rtts_s=rtt_s, least_rtt_s=least_s))
    assert (sums.streams, sums.rtts_s, sums.least_rtt_s) == (2, 0.08, 0.01)


def test_a_stream_that_ended_counts_for_the_shortest_only() -> None:
    near, far = pair()
    stream = Stream("test")
    stream.opened(near)
    near.sendall(b"x")
    far.recv(1)
    assert stream.totals().rtts_s > 0
    stream.closed(clean=True)
    far.close()
    ended = stream.totals()
    assert ended.streams == 0 and ended.rtts_s == 0 and ended.least_rtt_s < math.inf
