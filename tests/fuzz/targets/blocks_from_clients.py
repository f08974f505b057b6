"""MODE E blocks that a client sends to `mpx serve`, over one connection after the other."""

import atexit
import contextlib
import os
import socket
import tempfile

from mpx.endpoints.ftp.framing import CLOSE, EOD, EOF, BlockHeader
from mpx.serve.connection import Connection
from mpx.serve.progress import MOST_NEW_RANGES, TransferCounters
from mpx.serve.receive import BlockReceiver
from mpx.serve.replies import DataChannelError
from mpx.serve.turns import Share, Turns

BLOCK_BYTES = 64 * 1024


def block(offset: int, content: bytes, flags: int = 0) -> bytes:
    return BlockHeader(flags, len(content), offset).pack() + content


SEEDS = [
    block(0, b"content") + BlockHeader(EOD | EOF, 0, 1).pack(),
    block(7, b"more", EOD) + BlockHeader(EOD | EOF | CLOSE, 0, 2).pack(),
    BlockHeader(EOF, 99, 1).pack()
    + block(1 << 40, b"far away", 0x80)
    + BlockHeader(EOD, 0, 0).pack()
    + b"next",
    b"".join(block(2 * at, b"x") for at in range(20)) + BlockHeader(EOD | EOF, 0, 1).pack(),
    block(0, b"") + block(0, b"y" * 9000) + BlockHeader(CLOSE, 0, 0).pack(),
    BlockHeader(0, 5, (1 << 63) - 5).pack() + b"x" * 5,
    BlockHeader(0, 1 << 62, 5).pack() + b"x" * 500,
]
ALLOWED = (DataChannelError, OSError)  # a client is told of both
WEIGHT = 4
_turns = Turns()
_listener = socket.create_server(("127.0.0.1", 0))
atexit.register(_listener.close)


def parse(data: bytes) -> None:
    """Receive it; what is written lies where blocks were to be."""
    there = socket.create_connection(_listener.getsockname())
    here, _ = _listener.accept()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    there.settimeout(0.0)
    with there, tempfile.TemporaryFile() as file:
        with contextlib.suppress(BlockingIOError):
            there.send(data)
        there.shutdown(socket.SHUT_WR)
        progress = TransferCounters(keep_ranges=True)
        receiver = BlockReceiver(file.fileno(), 0, progress, _turns, Share())
        connection = Connection(here, BLOCK_BYTES, lambda: None)
        try:
            receiver.serve(connection)
        finally:
            connection.close()
            arrived = []
            while some := progress.take_ranges():
                arrived += some
            assert len(arrived) <= MOST_NEW_RANGES
            assert progress.moved_bytes <= len(data)
            if len(arrived) < MOST_NEW_RANGES:
                assert os.fstat(file.fileno()).st_size == max((end for _, end in arrived), default=0)
