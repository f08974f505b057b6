"""How much `mpx serve` sends as one block over a connection that shares a transfer with others."""

import socket

from mpx.engine.stream import FIRST_BLOCK, SMALLEST_BLOCK, UNSENT_S, BlockSize
from mpx.serve.buffers import BLOCK_BYTES
from mpx.serve.connection import Connection

_TCP_NOTSENT_LOWAT = 25


def test_a_slow_connection_gets_small_blocks_and_holds_little_that_is_not_sent() -> None:
    with socket.socket() as sock:
        connection, alike = Connection(sock, BLOCK_BYTES, lambda: None), BlockSize(None)
        assert connection.next_bytes == FIRST_BLOCK
        for _ in range(4):
            connection.took(connection.next_bytes, 10.0)
            alike.took(alike.bytes, 10.0)
        assert connection.next_bytes == SMALLEST_BLOCK
        unsent = sock.getsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT)
        assert unsent == alike.share_bytes(UNSENT_S)


def test_a_fast_connection_gets_no_more_than_its_buffer_holds() -> None:
    with socket.socket() as sock:
        connection = Connection(sock, BLOCK_BYTES, lambda: None)
        for _ in range(8):
            connection.took(connection.next_bytes, 0.001)
        assert connection.next_bytes == BLOCK_BYTES
