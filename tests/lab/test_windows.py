"""The window that a host is told to advertise, as it shows in the bytes that are under way."""

import array
import fcntl
import socket
import threading
from collections.abc import Callable

import pytest
from mpx_lab.lab import Lab
from sockets import connection

SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894B  # bytes that are not acknowledged; of these not sent yet


def waiting_bytes(one: socket.socket, request: int) -> int:
    answer = array.array("i", [0])
    fcntl.ioctl(one, request, answer)
    return answer[0]


def most_under_way_bytes(lab: Lab, size_bytes: int) -> int:
    """Send so much from src to dst, and return the most that was sent and not acknowledged at once."""
    with connection(lab, "src", "dst") as (near, far):
        sender = threading.Thread(target=near.sendall, args=(bytes(size_bytes),))
        sender.start()
        most = arrived = 0
        while arrived < size_bytes:
            arrived += len(far.recv(1 << 16))
            not_sent = waiting_bytes(near, SIOCOUTQNSD)  # first: what is sent in between only lowers it
            most = max(most, waiting_bytes(near, SIOCOUTQ) - not_sent)
        sender.join()
        return most


def test_as_much_is_under_way_as_the_window_allows(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab("path")  # 200 Mbit/s and 60 ms: 1.5 MB, if nothing else limits it
    sink = lab.host("dst")
    sink.set_route(window_bytes=13_000)
    assert most_under_way_bytes(lab, 200_000) == pytest.approx(13_000, rel=0.15)
    sink.set_route(window_bytes=65535)
    assert 65535 - 1448 <= most_under_way_bytes(lab, 1_000_000) <= 65535
    sink.set_route(window_bytes=200_000)
    assert most_under_way_bytes(lab, 3_000_000) == pytest.approx(200_000, rel=0.15)
    sink.set_route()
    # Without: what the queue lets through, or less where slow start has ended early on a busy machine.
    assert most_under_way_bytes(lab, 12_000_000) > 260_000
