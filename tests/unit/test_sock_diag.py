"""The kernel's list of TCP connections: what is read of it, its errors, and what it would never say."""

import contextlib
import errno
import socket
import struct
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.net import sock_diag

KINDS = ERROR, DONE, CONNECTION = 2, 3, 20
ESTABLISHED, CONGESTION = 1, 4  # a state, and an attribute
MESSAGES = st.tuples(st.integers(0, 200), st.sampled_from(KINDS), st.binary(max_size=100)).map(
    lambda told: header(told[0], told[1]) + told[2]
)


def header(size: int, kind: int) -> bytes:
    return struct.pack("=IHHII", size, kind, 0, 0, 0)


@given(st.one_of(st.binary(max_size=300), MESSAGES, st.lists(MESSAGES).map(b"".join)))
def test_what_the_kernel_would_never_say(data: bytes) -> None:
    with contextlib.suppress(OSError):
        for each in sock_diag.parsed(data)[0]:
            sock_diag.attributes(each.extensions)


@given(st.binary(max_size=100))
def test_attributes_that_the_kernel_would_never_send(data: bytes) -> None:
    assert all(len(value) < len(data) for value in sock_diag.attributes(data).values())


def test_an_answer_ends_with_its_last_message_and_an_error_is_raised() -> None:
    assert sock_diag.parsed(b"") == ([], False)
    assert sock_diag.parsed(header(20, DONE) + bytes(4)) == ([], True)
    with pytest.raises(OSError, match="does not list its connections: No such file") as raised:
        sock_diag.parsed(header(20, ERROR) + struct.pack("=i", -errno.ENOENT))
    assert raised.value.errno == errno.ENOENT


def test_a_connection_and_its_attributes() -> None:
    with (
        closing(sock_diag.opened()) as asking,
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
        listening.accept()[0],
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        found = {
            each.local: each for each in sock_diag.listed(asking, 1 << ESTABLISHED, 1 << (CONGESTION - 1))
        }
        mine = found[client.getsockname()]
        assert mine.remote == listening.getsockname() and mine.cookie and mine.inode
        assert sock_diag.attributes(mine.extensions)[CONGESTION] == b"reno\0"
        assert found[mine.remote].cookie != mine.cookie
