"""A far connection of data is paced: it sends no bursts that overflow a queue smaller than they are."""

import socket
from collections.abc import Callable

import pytest
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.topology import Link, Topology
from mpx_lab.traffic.tcp_sender import connect
from sockets import PORT, connection

from mpx.net import tcp
from mpx.net.pacing import PACED_RTT_S
from mpx.net.tcp_info import tcp_info

SEGMENT_BYTES = 1448
FIRST, SECOND = 10, 20  # segments that may be under way at first, which the kernel never paces, and then
QUEUE_PACKETS = 12


def data(address: tcp.Address) -> socket.socket:
    return tcp.connect(address, 30, paced=True)


def background(address: tcp.Address) -> socket.socket:
    return connect(address, "cubic", lambda: False)


@pytest.mark.parametrize(
    ("delay_s", "connected", "is_paced"),
    [(0.02, data, True), (0.001, data, False), (0.02, background, False)],
    ids=["far", "near", "background traffic, as other programs send it"],
)
def test_only_far_connections_of_data_are_paced(
    make_lab: Callable[..., Lab],
    delay_s: float,
    connected: Callable[[tcp.Address], socket.socket],
    is_paced: bool,
) -> None:
    wan = Link("src", "dst", "wan", rate_bps=20_000_000, delay_s=delay_s, queue_packets=QUEUE_PACKETS)
    lab = make_lab(Topology("small-queue", ("src",), ("dst",), (wan,)))
    with connection(lab, "src", "dst") as (near, far):  # as any program has it
        converse(near, far)
    burst = dropped(lab)
    assert burst > 0
    address = lab.host("dst").addresses[0]
    with inside(lab.host("dst").netns, lambda: socket.create_server((address, PORT))) as listener:
        near = inside(lab.host("src").netns, lambda: connected((address, PORT)))
        far, _ = listener.accept()
        with near, far:
            found = tcp_info(near)
            assert found and found.rtt_s
            if connected is data and found.rtt_s >= PACED_RTT_S:  # a busy machine answers late
                is_paced = True
            converse(near, far)
    assert (dropped(lab) == burst) is is_paced  # else another burst was dropped


def converse(near: socket.socket, far: socket.socket) -> None:
    """Send as much as the kernel lets go at once, twice."""
    for segments in (FIRST, SECOND):
        near.sendall(bytes(segments * SEGMENT_BYTES))
        left = segments * SEGMENT_BYTES
        while left:
            left -= len(far.recv(left))
        far.sendall(b"\n")
        assert near.recv(1) == b"\n"  # so all of it was answered


def dropped(lab: Lab) -> int:
    return lab.link("wan").stats().a_to_b.dropped_queue.frames
