"""MODE E blocks that a server sends to a copy, over a connection that it opens.

The first byte says whether the size of the file is known.
"""

import atexit
import contextlib
import os
import socket
import tempfile
from pathlib import Path

from unit.made_up_context import a_context

from mpx.endpoints.ftp.framing import CLOSE, EOD, EOF, HEADER_BYTES, BlockHeader
from mpx.endpoints.ftp.mode_e.channel_opening import listening
from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.endpoints.ftp.mode_e.retrieve import BEYOND_BYTES, PartialRetrieve
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.net import tcp
from targets.blocks_from_clients import block

HERE = "127.0.0.1"
PATIENCE_S = 50.0  # less than a hang takes to be told as one
SIZE, START, MIDDLE = 400, 100, 300  # of a file; the first retrieve is of what is before the middle
END = BlockHeader(EOD | EOF, 0, 1).pack()
SEEDS = [
    b"\0" + block(0, b"x" * 200) + END + block(0, b"y" * 100) + END,
    b"\0" + block(100, b"x" * 100) + block(0, b"x" * 150, EOD | EOF),
    b"\0" + block(150, b"x" * 100) + END,
    b"\0" + b"".join(block(2 * at, b"x") for at in range(90)) + END,
    b"\0" + block(0, b"x" * 200) + END + block(0, b"y" * 5000) + END,
    b"\0" + BlockHeader(EOF | EOD, 0, 2).pack() + BlockHeader(CLOSE | EOD, 0, 0).pack(),
    b"\0" + BlockHeader(0, 1 << 62, 5).pack() + b"x" * 500,
    b"\1" + block(0, b"x" * 700) + block(9000, b"z") + END,
    b"\1" + block((1 << 50) - 1, b"x") + END,
]
ALLOWED = ()
WEIGHT = 15
_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_path = Path(_folder.name) / "file"


def parse(data: bytes) -> None:
    """Have it sent; nothing is written but where what was asked for belongs, and what is held was sent."""
    is_stream = data[:1] == b"\1"
    _path.write_bytes(b"-" * SIZE)
    file = FileTransfer(
        "source", "final", str(_path), FileInfo(Kind.FILE, None if is_stream else SIZE, 1.0, 0o644), sums=True
    )
    fd = os.open(_path, os.O_RDWR)
    channel = DownloadDataChannel(a_context(), 1, HERE)
    retrieves = (
        [PartialRetrieve(file, 0, 0, fd, channel)]
        if is_stream
        else [
            PartialRetrieve(file, START, MIDDLE, fd, channel),
            PartialRetrieve(file, MIDDLE, SIZE, fd, channel, is_last=True),
        ]
    )
    # More than the data can end: where nothing is queued the connection is kept, and nobody hangs up.
    more = [PartialRetrieve(file, SIZE, SIZE, fd, channel) for _ in range(len(data) // HEADER_BYTES + 1)]
    for retrieve in [*retrieves, *more]:
        channel.add(retrieve)
    channel.start(listening(channel, tcp.listen(HERE, None), HERE))
    try:
        _send(channel.address, data[1:])
    finally:
        channel.cut()
        channel.join()
        os.close(fd)
    with _path.open("rb") as path:
        content = path.read(2 * SIZE)
    if not is_stream:
        assert content[:START] == b"-" * START
        assert len(content) == SIZE
        assert all(retrieve.reached_bytes <= retrieve.size_bytes + BEYOND_BYTES for retrieve in retrieves)
    assert sum(retrieve.believe() for retrieve in [*retrieves, *more]) <= len(data)


def _send(address: tuple[str, int], data: bytes) -> None:
    """Send it all and wait until they hang up."""
    with socket.create_connection(address, PATIENCE_S) as there, contextlib.suppress(ConnectionError):
        there.sendall(data)
        with contextlib.suppress(OSError):  # they may have hung up
            there.shutdown(socket.SHUT_WR)
        there.recv(1)
