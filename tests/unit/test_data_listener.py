"""The listening port of a download: who is let in, and what becomes of those who are not."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from unit.made_up_context import a_context

from mpx.endpoints.ftp.framing import EOD, EOF, HEADER_BYTES, BlockHeader
from mpx.endpoints.ftp.mode_e.channel_opening import listening
from mpx.endpoints.ftp.mode_e.data_listener import MOST_STRANGERS
from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel, PartialRetrieve
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.net import tcp

SERVER = "127.0.0.1"
STRANGER = "127.0.0.2"
PULL_BYTES = 1000
CONTENT = bytes(range(250)) * 4 * 3  # of three retrieves


class Download:
    """A fan, the file that it writes to, and whoever connects to it."""

    def __init__(self, path: Path, streams: int) -> None:
        self.path = path
        self.file = FileTransfer("source", str(path), str(path), FileInfo(Kind.FILE, len(CONTENT)))
        path.write_bytes(b"")
        self.fd = self.file.open(str(path), 2)
        self.channel = DownloadDataChannel(a_context(), streams, SERVER)
        self.channel.start(listening(self.channel, tcp.listen(SERVER, None), SERVER))
        self.retrieves: list[PartialRetrieve] = []
        self.callers: list[socket.socket] = []

    def ask(self) -> PartialRetrieve:
        start = len(self.retrieves) * PULL_BYTES
        self.retrieves.append(PartialRetrieve(self.file, start, start + PULL_BYTES, self.fd, self.channel))
        self.channel.add(self.retrieves[-1])
        return self.retrieves[-1]

    def call(self, said: bytes = b"", source: str = SERVER) -> socket.socket:
        caller = socket.create_connection(self.channel.address, source_address=(source, 0), timeout=20)
        self.callers.append(caller)
        caller.sendall(said)
        return caller

    def close(self) -> None:
        self.channel.cut()
        self.channel.join()
        self.file.close()
        for caller in self.callers:
            caller.close()


@pytest.fixture
def download(tmp_path: Path) -> Iterator[Callable[[int], Download]]:
    made: list[Download] = []

    def make(streams: int) -> Download:
        made.append(Download(tmp_path / "file", streams))
        return made[-1]

    yield make
    for each in made:
        each.close()


def block(number: int, start: int = 0, end: int = PULL_BYTES) -> bytes:
    """A block of the retrieve `number`; offsets count from where that begins."""
    data = CONTENT[number * PULL_BYTES :][start:end]
    return BlockHeader(0, len(data), start).pack() + data


def end_of(total: int | None = None) -> bytes:
    """What a connection says when it is done, one of them with how many there were."""
    return BlockHeader(EOD | EOF, 0, total).pack() if total else BlockHeader(EOD, 0, 0).pack()


def is_hung_up(caller: socket.socket) -> bool:
    try:
        return caller.recv(1) == b""
    except ConnectionResetError:
        return True


NONSENSE = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "a handshake": bytes.fromhex("16030100c8010000c40303") + bytes(40),
    "offsets beyond what was asked for": BlockHeader(0, 10, PULL_BYTES - 5).pack(),
    "more than was asked for": BlockHeader(0, PULL_BYTES + 1, 0).pack(),
    "numbers beyond any file": b"\xff" * HEADER_BYTES,
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE.keys())
@pytest.mark.parametrize("source", [STRANGER, SERVER])
def test_who_talks_nonsense_is_dropped_alone(download, eventually, said: bytes, source: str) -> None:
    way = download(2)
    retrieve = way.ask()
    assert is_hung_up(way.call(said, source))
    way.call(block(0, 0, 400) + end_of(2))
    assert is_hung_up(way.call(said, source))
    way.call(block(0, 400) + end_of())
    eventually(lambda: retrieve.is_done)
    assert way.path.read_bytes() == CONTENT[:PULL_BYTES]
    assert way.channel.broken is None


def test_who_says_nothing_takes_no_place(download, eventually) -> None:
    way = download(1)
    retrieve = way.ask()
    silent = [way.call(source=STRANGER), way.call(b"half a header", STRANGER), way.call(source=SERVER)]
    way.call(source=STRANGER).close()
    way.call(block(0) + end_of(1))
    eventually(lambda: retrieve.is_done)
    assert all(map(is_hung_up, silent))  # the fan is complete
    with pytest.raises(ConnectionRefusedError):
        way.call(source=STRANGER)
    assert way.path.read_bytes() == CONTENT[:PULL_BYTES]
    assert way.channel.broken is None


def test_a_crowd_of_strangers_leaves_room_for_the_server(download, eventually) -> None:
    way = download(2)
    retrieve = way.ask()
    first = way.call(source=SERVER)
    crowd = [way.call(source=STRANGER) for _ in range(MOST_STRANGERS + 5)]
    assert all(map(is_hung_up, crowd[:5]))  # the oldest made room
    first.sendall(block(0, 0, 100) + end_of(2))
    way.call(block(0, 100) + end_of(), STRANGER)  # data may come from another host
    eventually(lambda: retrieve.is_done)
    assert way.path.read_bytes() == CONTENT[:PULL_BYTES]


def test_nobody_on_the_host_of_the_server_can_fill_us_with_connections(download, eventually) -> None:
    way = download(2)
    retrieve = way.ask()
    crowd = [way.call(source=SERVER) for _ in range(MOST_STRANGERS + 2 + 3)]
    assert all(map(is_hung_up, crowd[:3]))
    crowd[3].sendall(block(0, 0, 100) + end_of(2))
    crowd[4].sendall(block(0, 100) + end_of())
    eventually(lambda: retrieve.is_done)
    assert way.path.read_bytes() == CONTENT[:PULL_BYTES]


def test_a_block_that_comes_twice_counts_once(download, eventually) -> None:
    way = download(2)
    retrieve = way.ask()
    way.call(block(0, 0, 600) + block(0, 0, 600) + end_of(2))
    way.call(block(0, 600) + end_of())
    eventually(lambda: retrieve.is_done)
    assert way.file.arrived_bytes == 0  # until the worker believes it
    assert (retrieve.believe(), way.file.arrived_bytes) == (PULL_BYTES, PULL_BYTES)
    assert way.path.read_bytes() == CONTENT[:PULL_BYTES]


def test_only_the_server_shows_that_it_can_reach_us(download, eventually) -> None:
    way = download(2)
    way.ask()
    assert is_hung_up(way.call(NONSENSE["another protocol"], STRANGER))
    assert way.channel.reached
    assert not way.channel.context.events.inbound.is_set()
    way.call(block(0) + end_of(), STRANGER)  # what it says shows that it is the server
    eventually(way.channel.context.events.inbound.is_set)


def test_a_connection_that_comes_late_begins_with_what_is_not_done(download, eventually) -> None:
    way = download(3)
    first, second, third = way.ask(), way.ask(), way.ask()
    early = way.call(block(0) + end_of(1))
    eventually(lambda: first.is_done)  # no reply to it was read yet
    late = way.call(block(1, 0, 500) + end_of(2))
    early.sendall(block(1, 500) + end_of())
    eventually(lambda: second.is_done)
    late.sendall(block(2, 500) + end_of())
    early.sendall(block(2, 0, 500) + end_of(2))
    eventually(lambda: third.is_done)
    assert way.path.read_bytes() == CONTENT
    assert way.channel.broken is None


def test_two_fans_never_mix_up_their_connections(download, eventually, tmp_path: Path) -> None:
    way, other = download(2), Download(tmp_path / "other", 1)
    retrieve, second = way.ask(), other.ask()
    way.call(block(0, 0, 10))  # its other connection never comes
    other.call(block(0) + end_of(1))
    eventually(lambda: second.is_done)
    assert not retrieve.is_done
    other.close()


def test_a_connection_that_is_not_counted_breaks_the_fan_and_not_the_program(download, eventually) -> None:
    way = download(2)
    first = way.ask()
    one_too_many = way.call(BlockHeader(0, 0, 0).pack())  # it fits, so it is let in
    way.call(block(0) + end_of(1))
    eventually(lambda: first.is_done)
    way.channel.forget(first)
    way.ask()
    way.channel.forget(way.retrieves[1])
    one_too_many.sendall(end_of())
    eventually(lambda: way.channel.broken is not None)
    assert way.channel.broken.may_retry
