"""MODE E blocks that a server sends to a copy, over a connection that it opens.

The first byte says whether the size of the file is known.
"""

import atexit
import contextlib
import os
import socket
import tempfile
from pathlib import Path

from unit.work import a_work

from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.endpoints.ftp.mode_e.retrieve import BEYOND_BYTES, PartialRetrieve
from mpx.endpoints.ftp.wire import CLOSE, EOD, EOF, HEADER, HEADER_BYTES
from mpx.engine.file_transfer import FileTransfer
from mpx.net import tcp
from targets.blocks_from_clients import block

HERE = "127.0.0.1"
PATIENCE_S = 50.0  # less than a hang takes to be told as one
SIZE, START, MIDDLE = 400, 100, 300  # of a file; the first retrieve is of what is before the middle
END = HEADER.pack(EOD | EOF, 0, 1)
SEEDS = [
    b"\0" + block(0, b"x" * 200) + END + block(0, b"y" * 100) + END,
    b"\0" + block(100, b"x" * 100) + block(0, b"x" * 150, EOD | EOF),
    b"\0" + block(150, b"x" * 100) + END,
    b"\0" + b"".join(block(2 * at, b"x") for at in range(90)) + END,
    b"\0" + block(0, b"x" * 200) + END + block(0, b"y" * 5000) + END,
    b"\0" + HEADER.pack(EOF | EOD, 0, 2) + HEADER.pack(CLOSE | EOD, 0, 0),
    b"\0" + HEADER.pack(0, 1 << 62, 5) + b"x" * 500,
    b"\1" + block(0, b"x" * 700) + block(9000, b"z") + END,
    b"\1" + block((1 << 50) - 1, b"x") + END,
]
ALLOWED = ()
WEIGHT = 15
_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_file = Path(_folder.name) / "file"


def parse(data: bytes) -> None:
    """Have it sent; nothing is written but where what was asked for belongs, and what is held was sent."""
    is_stream = data[:1] == b"\1"
    _file.write_bytes(b"-" * SIZE)
    move = FileTransfer("source", "final", str(_file), None if is_stream else SIZE, 1.0, 0o644, sums=True)
    fd = os.open(_file, os.O_RDWR)
    fan = DownloadDataChannel(a_work(), 1, tcp.listen(HERE, None), HERE)
    pulls = (
        [PartialRetrieve(move, 0, 0, fd, fan)]
        if is_stream
        else [
            PartialRetrieve(move, START, MIDDLE, fd, fan),
            PartialRetrieve(move, MIDDLE, SIZE, fd, fan, is_last=True),
        ]
    )
    # More than the data can end: where nothing is queued the connection is kept, and nobody hangs up.
    more = [PartialRetrieve(move, SIZE, SIZE, fd, fan) for _ in range(len(data) // HEADER_BYTES + 1)]
    for pull in [*pulls, *more]:
        fan.add(pull)
    fan.start()
    try:
        _send(fan.address, data[1:])
    finally:
        fan.cut()
        fan.join()
        os.close(fd)
    with _file.open("rb") as file:
        content = file.read(2 * SIZE)
    if not is_stream:
        assert content[:START] == b"-" * START
        assert len(content) == SIZE
        assert all(pull.reached_bytes <= pull.size_bytes + BEYOND_BYTES for pull in pulls)
    assert sum(pull.believe() for pull in [*pulls, *more]) <= len(data)


def _send(address: tuple[str, int], data: bytes) -> None:
    """Send it all and wait until they hang up."""
    with socket.create_connection(address, PATIENCE_S) as there, contextlib.suppress(ConnectionError):
        there.sendall(data)
        with contextlib.suppress(OSError):  # they may have hung up
            there.shutdown(socket.SHUT_WR)
        there.recv(1)
