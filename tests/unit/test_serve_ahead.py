"""MODE E on loopback: a connection that is done with a file goes on with the next, while others are not."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from random_bytes import random_bytes
from raw_client import CONTENT, RawClient, drain, read_blocks

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.framing import BlockHeader
from mpx.serve import Server, retrieves
from mpx.serve.session import Session
from mpx.serve.transfer import Transfer

LARGE = 48 << 20  # more than the kernel holds of one connection that nobody reads
STREAMS = 2
Connect = Callable[[RawClient, str], list[socket.socket]]


@pytest.fixture
def large(root: Path) -> bytes:
    content = random_bytes(1 << 20) * (LARGE >> 20)
    (root / "large").write_bytes(content)
    return content


@pytest.fixture
def connect_all() -> Iterator[Connect]:
    """Returns those of a retrieve that has begun; the client reads none of them yet."""
    made: list[socket.socket] = []

    def connected(client: RawClient, name: str) -> list[socket.socket]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(30)
            client.do("MODE E")
            client.do(f"OPTS RETR Parallelism={STREAMS},{STREAMS},{STREAMS};")
            client.do(f"PORT {wire.format_host_port(listener.getsockname())}")
            client.send(f"RETR {name}")
            made.extend(listener.accept()[0] for _ in range(STREAMS))
        for connection in made:
            connection.settimeout(30)
        assert client.reply().code == 150
        return made

    yield connected
    for connection in made:
        connection.close()


@pytest.fixture
def connections(client: RawClient, large: bytes, connect_all: Connect) -> list[socket.socket]:
    """Those of a retrieve of `large`."""
    return connect_all(client, "large")


Part = tuple[list[tuple[int, bytes]], BlockHeader]


def assert_whole(parts: list[Part], content: bytes) -> None:
    got = sorted(each for blocks, _ in parts for each in blocks)
    assert b"".join(data for _, data in got) == content
    assert [at for at, _ in got] == [sum(len(data) for _, data in got[:i]) for i in range(len(got))]
    totals = [header.total_streams for _, header in parts if header.total_streams is not None]
    assert totals == [STREAMS]


def test_who_is_done_goes_on_with_what_is_queued(
    client: RawClient, large: bytes, connections: list[socket.socket]
) -> None:
    fast, slow = connections
    client.send("ERET P 10 1000000 file", "RETR file", "NOOP", "RETR file")
    fast_parts = [read_blocks(fast) for _ in range(3)]  # all of it before a byte of the other is read
    assert len(fast_parts[0][0]) and b"".join(data for _, data in fast_parts[2][0]) == CONTENT
    slow_parts = [read_blocks(slow) for _ in range(3)]
    expected = (large, CONTENT[10:1_000_010], CONTENT)
    for number, content in enumerate(expected):
        assert_whole([fast_parts[number], slow_parts[number]], content)
    assert_whole([read_blocks(fast), read_blocks(slow)], CONTENT)  # the one behind NOOP
    assert [client.reply().code for _ in range(8)] == [226, 125, 226, 125, 226, 200, 125, 226]


def test_what_comes_while_the_last_connection_is_busy(
    client: RawClient, large: bytes, connections: list[socket.socket]
) -> None:
    """The commands arrive when there is somebody idle already."""
    fast, slow = connections
    fast_parts = [read_blocks(fast)]
    client.send("RETR file")
    fast_parts.append(read_blocks(fast))
    client.send("RETR file")
    fast_parts.append(read_blocks(fast))
    for part, content in zip(fast_parts, (large, CONTENT, CONTENT), strict=True):
        assert_whole([part, read_blocks(slow)], content)
    assert [client.reply().code for _ in range(5)] == [226, 125, 226, 125, 226]


def test_no_more_than_a_few_are_open_before_their_turn(
    client: RawClient, large: bytes, connect_all: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begin = [], retrieves._next

    def next_one(session: Session, number: int, streams: int) -> Transfer | None:
        found = begin(session, number, streams)
        if found:
            begun.append(number)
        return found

    monkeypatch.setattr(retrieves, "_next", next_one)
    fast, slow = connect_all(client, "large")
    client.send(*["RETR file"] * 12)
    fast_parts = [read_blocks(fast) for _ in range(9)]
    assert begun == list(range(8))
    rest = threading.Thread(target=lambda: fast_parts.extend(read_blocks(fast) for _ in range(4)))
    rest.start()
    slow_parts = [read_blocks(slow) for _ in range(13)]
    rest.join()
    assert max(begun) == 7
    expected = (large, *[CONTENT] * 12)
    for fast_part, slow_part, content in zip(fast_parts, slow_parts, expected, strict=True):
        assert_whole([fast_part, slow_part], content)


def test_a_file_that_does_not_tell_its_size_waits_for_its_turn(
    root: Path, large: bytes, connect_all: Connect
) -> None:
    with Server("/") as server, RawClient(server.port) as client:
        connections = connect_all(client, f"{root}/large")
        client.send("RETR /proc/version")
        fast, slow = connections
        parts = [read_blocks(fast), read_blocks(slow)]
        assert_whole(parts, large)
        assert_whole([read_blocks(fast), read_blocks(slow)], Path("/proc/version").read_bytes())
        assert [client.reply().code for _ in range(3)] == [226, 125, 226]


@pytest.mark.parametrize("behind", ["RETR none", "RETR .", "ERET X 1 2 file", "STAT", "REST 0-5"])
def test_what_cannot_begin_waits_for_its_turn(
    client: RawClient, large: bytes, connections: list[socket.socket], behind: str
) -> None:
    client.send(behind, "RETR file")
    results: list[list[Part]] = [[], []]

    def read(number: int) -> None:
        results[number] = [read_blocks(connections[number]) for _ in range(2)]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(STREAMS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_whole([result[0] for result in results], large)
    got = sorted(each for result in results for each in result[1][0])
    assert b"".join(data for _, data in got) == (CONTENT[5:] if behind.startswith("REST") else CONTENT)
    codes = [client.reply().code for _ in range(4)]
    assert (codes[0], codes[2:]) == (226, [125, 226])
    assert codes[1] // 100 == {"RETR": 5, "ERET": 5, "STAT": 2, "REST": 3}[behind[:4]]


def test_a_file_that_shrinks_is_told_at_its_own_turn(
    client: RawClient, root: Path, large: bytes, connections: list[socket.socket]
) -> None:
    fast, slow = connections
    (root / "other").write_bytes(large)
    client.send("RETR other", "RETR file")
    parts = [read_blocks(fast)]
    assert fast.recv(1)  # the other one has begun
    os.truncate(root / "other", 10)
    drain(fast)
    parts.append(read_blocks(slow))
    assert_whole(parts, large)
    drain(slow)
    assert [client.reply().code for _ in range(4)] == [226, 125, 451, 425]
    assert client.do("NOOP").code == 200


def left_by_the_server(root: Path) -> list[str]:
    """Return which files below the root are open."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:
            continue
    return [each for each in found if each.startswith(f"{root}/")]


@pytest.mark.parametrize("how", ["ABOR", "the client goes", "a connection is cut", "the server ends"])
def test_what_ends_one_ends_what_has_begun_behind_it(
    client: RawClient, server: Server, root: Path, connections: list[socket.socket], how: str, eventually
) -> None:
    fast, slow = connections
    client.send(*["RETR file"] * 5)
    read_blocks(fast)
    read_blocks(fast)
    assert fast.recv(1)  # of the second that is ahead
    if how == "ABOR":
        client.send("ABOR")
        drain(fast)
        assert [client.reply().code for _ in range(6)] == [426, *[425] * 5]
        assert client.reply().code == 226
    elif how == "the client goes":
        client.sock.close()
    elif how == "the server ends":
        server.close()
    else:
        slow.close()
        assert [client.reply().code for _ in range(6)] == [426, *[425] * 5]
    eventually(lambda: not left_by_the_server(root))
    eventually(lambda: not any(each.name == "mpx-serve-data" for each in threading.enumerate()))
