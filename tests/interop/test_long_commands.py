"""Questions about many long names, to a server that reads no further until its answers are read."""

import socket
from pathlib import Path
from typing import Any

import pytest
from interop.listing_server import ListingDialogue, ListingServer

import mpx
from mpx.net import tcp

BUFFER_BYTES = 16 * 1024  # of the server
OUR_BUFFER_BYTES = (
    64 * 1024
)  # as the kernel begins with, but over the loopback device, where it is far larger
FOLDER = "/d/" + "/".join(["d" * 200] * 15)
NAMES = 250


class NarrowDialogue(ListingDialogue):
    """Says whatever it has to say before it reads on, through small buffers."""

    def run(self) -> None:
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        super().run()


class NarrowServer(ListingServer):
    """Lists links, so that what each leads to has to be asked."""

    dialogue = NarrowDialogue

    def __init__(self, files: dict[str, bytes]) -> None:
        names = [name.rpartition("/")[2] for name in files]
        lines = "".join(f"type=OS.unix=symlink;size=1; {name}\r\n" for name in names)
        super().__init__(files, {FOLDER: lines.encode()})
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)  # of all it accepts


def test_many_long_names_are_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = tcp.connect

    def narrow(*arguments: Any, **options: Any) -> socket.socket:
        connection = connect(*arguments, **options)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, OUR_BUFFER_BYTES)
        return connection

    monkeypatch.setattr(tcp, "connect", narrow)
    there = {f"{FOLDER}/{number:03}{'n' * 200}": b"%d" % number for number in range(NAMES)}
    options = mpx.CopyOptions(recursive=True, timeout_s=5.0, retries=0)
    with NarrowServer(there) as server:
        mpx.copy(f"{server.url}{FOLDER}", str(tmp_path / "here"), options)
    found = {f"{FOLDER}/{path.name}": path.read_bytes() for path in (tmp_path / "here").iterdir()}
    assert found == there
