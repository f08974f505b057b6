"""A GridFTP client of a few lines for tests that send exactly the bytes they mean to."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.framing import EOD, HEADER_BYTES, BlockHeader, end_of_data, unpack_header

TIMEOUT_S = 30
CONTENT = bytes(range(256)) * 5000  # of the file to start with: 1.28 MB, more than one block


class RawClient:
    """One control connection; replies are read one by one, markers kept aside in `markers`."""

    def __init__(self, port: int, *, login: bool = True) -> None:
        self.sock = self.connected(port)
        self._reader = wire.ReplyReader()
        self._replies: list[wire.Reply] = []
        self.markers: list[wire.Reply] = []
        assert self.reply().code == 220
        if login:
            assert self.do("USER anonymous").code == 331
            assert self.do("PASS a@").code == 230

    def connected(self, port: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, *lines: str) -> None:
        self.sock.sendall("".join(f"{line}\r\n" for line in lines).encode("utf-8", "surrogateescape"))

    def any_reply(self) -> wire.Reply:
        """Return the next reply or marker; raises EOFError when the server has closed."""
        while not self._replies:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError
            self._replies += self._reader.feed(data)
        return self._replies.pop(0)

    def reply(self) -> wire.Reply:
        """Return the next reply that is no marker; raises EOFError when the server has closed."""
        while (reply := self.any_reply()).is_marker:
            self.markers.append(reply)
        return reply

    def do(self, line: str) -> wire.Reply:
        self.send(line)
        return self.reply()

    def passive(self) -> wire.Address:
        reply = self.do("PASV")
        assert reply.code == 227
        return wire.parse_host_port(reply.text)

    def mode_e(self) -> wire.Address:
        assert self.do("MODE E").code == 200
        return self.passive()

    def retrieve(self, line: str) -> tuple[wire.Reply, bytes]:
        """Do a command that sends data in MODE S; return the last reply and the data."""
        with connect(self.passive()) as data:
            first = self.do(line)
            if first.code != 150:
                return first, b""
            got = drain(data)
        return self.reply(), got

    def store(self, line: str, content: bytes) -> wire.Reply:
        """Do a command that takes data in MODE S; return the last reply."""
        with connect(self.passive()) as data:
            first = self.do(line)
            if first.code != 150:
                return first
            data.sendall(content)
        return self.reply()

    @contextmanager
    def storing(self) -> Iterator[socket.socket]:
        """Begin `STOR new` in MODE E; yields its data connection, which has carried `abc`."""
        address = self.mode_e()
        self.send("STOR new")
        with connect(address) as sock:
            sock.sendall(block(0, b"abc"))
            assert self.reply().code == 150
            yield sock


def connect(address: wire.Address) -> socket.socket:
    return socket.create_connection(address, TIMEOUT_S)


def block(offset: int, content: bytes, descriptor: int = 0) -> bytes:
    return BlockHeader(descriptor, len(content), offset).pack() + content


def end(streams: int | None = None, *, close: bool = False, eod: bool = True) -> bytes:
    """An EOD block, with EOF and the number of connections if `streams` is given."""
    header = end_of_data(streams, close=close)
    return (header if eod else replace(header, descriptor=header.descriptor & ~EOD)).pack()


def drain(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def read_blocks(sock: socket.socket) -> tuple[list[tuple[int, bytes]], BlockHeader]:
    """Read MODE E blocks up to end of data; return them and the header that ended it."""
    blocks = []
    while True:
        header = unpack_header(_exactly(sock, HEADER_BYTES))
        if header.count:
            blocks.append((header.offset, _exactly(sock, header.count)))
        if header.ends_data:
            return blocks, header


def _exactly(sock: socket.socket, count: int) -> bytes:
    got = bytearray()
    while len(got) < count:
        part = sock.recv(count - len(got))
        assert part, "closed in the middle"
        got += part
    return bytes(got)


def store(client: RawClient, address: wire.Address, line: str, *streams: bytes) -> wire.Reply:
    """Send a store command, then each of `streams` over a data connection of its own."""
    client.send(line)
    opened = []
    for content in streams:
        sock = connect(address)
        sock.sendall(content)
        opened.append(sock)
    assert client.reply().code == 150
    reply = client.reply()
    for sock in opened:
        sock.close()
    return reply
