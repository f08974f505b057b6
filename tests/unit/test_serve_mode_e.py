"""MODE E on loopback, byte for byte: blocks, streams that come and go, cached connections, markers."""

import os
import socket
import threading

import pytest
from raw_client import CONTENT, RawClient, block, connect, drain, end, read_blocks, store

from mpx.endpoints.ftp import wire
from mpx.endpoints.ftp.framing import CLOSE, EOD, EOF, BlockHeader, range_marker
from mpx.engine.ranges import RangeSet
from mpx.serve.buffers import MOST_CONNECTIONS

# --- MODE E, storing -------------------------------------------------------------------------------


def test_blocks_in_any_order_over_several_streams(client, root):
    reply = store(
        client,
        client.mode_e(),
        "STOR new",
        block(600_000, CONTENT[600_000:]) + end(2),
        block(100, CONTENT[100:600_000]) + block(0, CONTENT[:100]) + end(),
    )
    assert reply.code == 226
    assert (root / "new").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "streams",
    [
        [block(0, CONTENT, EOD), end(2)],  # end of data on a data block; a stream without data
        [end(2, eod=False) + block(0, CONTENT) + end(), end()],  # end of file first, and without EOD
        [block(0, CONTENT) + end(), end(2)],  # end of file on a stream of its own
        [block(0, CONTENT) + end(close=True), end(2, close=True)],
        [BlockHeader(EOF, 99, 1).pack() + block(0, CONTENT) + end()],  # an EOF block's count is ignored
        [block(0, CONTENT, 0x80) + block(5, CONTENT[5:9], 0x20) + end(1)],  # flags that say nothing
        [block(0, b"") + block(0, CONTENT) + end(1)],  # an empty block
        [block(0, b"x" * 50) + block(0, CONTENT) + end(1)],  # bytes written twice: the last wins
        [block(0, CONTENT) + end(1) + b"more after the end"],
    ],
)
def test_ways_to_end(client, root, streams):
    assert store(client, client.mode_e(), "STOR new", *streams).code == 226
    assert (root / "new").read_bytes() == CONTENT
    assert client.do("NOOP").code == 200


def test_zero_bytes(client, root):
    assert store(client, client.mode_e(), "STOR new", end(1)).code == 226
    assert (root / "new").read_bytes() == b""


@pytest.mark.parametrize("close", [True, False])
def test_streams_come_and_go(client, root, close):
    """2, then none, then 3 streams, then one more: each joins after the one before has ended."""
    address = client.mode_e()
    step = len(CONTENT) // 7 + 1
    pieces = [(start, CONTENT[start : start + step]) for start in range(0, len(CONTENT), step)]
    client.send("STOR new")
    kept = []
    for i, group in enumerate((pieces[:2], pieces[2:5], pieces[5:6], pieces[6:])):
        socks = [connect(address) for _ in group]
        for sock, (start, content) in zip(socks, group, strict=True):
            sock.sendall(block(start, content))
        for sock in socks:
            sock.sendall(end(len(pieces) if i == 3 else None, close=close))
            if close:
                assert sock.recv(1) == b""  # closed by the server: it has gone before the next comes
        kept += socks
    assert [client.reply().code, client.reply().code] == [150, 226]
    assert (root / "new").read_bytes() == CONTENT
    for sock in kept:
        sock.close()


def test_more_connections_in_a_transfer_than_a_session_may_have_at_once(client, root):
    address, count = client.mode_e(), 300
    client.send("STOR new")
    for i in range(count):
        with connect(address) as sock:
            sock.sendall(block(i, CONTENT[i : i + 1]) + end(count if i == count - 1 else None, close=True))
            assert sock.recv(1) == b""
    assert [client.reply().code, client.reply().code] == [150, 226]
    assert (root / "new").read_bytes() == CONTENT[:count]


def test_connections_that_the_client_has_closed_since_make_room(client, root):
    """They ended their part without CLOSE, so they would be kept for the next transfer."""
    address, count = client.mode_e(), MOST_CONNECTIONS + 40
    client.send("STOR new")
    for i in range(count):
        with connect(address) as sock:
            sock.sendall(block(i, CONTENT[i : i + 1]) + end(count if i == count - 1 else None))
    assert [client.reply().code, client.reply().code] == [150, 226]
    assert (root / "new").read_bytes() == CONTENT[:count]


def test_cached_connections_serve_the_next_transfers(client, root):
    address = client.mode_e()
    with connect(address) as first, connect(address) as second:
        client.send("STOR one")
        first.sendall(block(0, b"1") + end())
        second.sendall(end(2))
        assert [client.reply().code, client.reply().code] == [150, 226]
        client.send("STOR two", "STOR three")  # sent at once, with their data
        first.sendall(block(0, b"2") + end() + block(0, b"3") + end(2))
        second.sendall(end(2) + end())
        assert [client.reply().code for _ in range(4)] == [125, 226, 125, 226]
        client.send("STOR four")
        second.sendall(end(close=True, eod=False))  # not wanted again: dropped, not counted
        assert second.recv(1) == b""
        with connect(address) as third:  # while a new one joins
            third.sendall(block(0, b"4") + end(2))
            first.sendall(end())
            assert [client.reply().code, client.reply().code] == [125, 226]
            client.send("STOR none/x", "STOR five")
            first.sendall(block(0, b"5") + end(2))
            third.sendall(end())
            refused = client.reply()  # before any data: the connections stay
            assert (refused.code, refused.error_class) == (550, "PATH_NOT_FOUND")
            assert [client.reply().code, client.reply().code] == [125, 226]
        client.passive()
        assert first.recv(1) == b""  # a new PASV closes what was cached
    assert [(root / name).read_bytes() for name in ("one", "two", "three", "four", "five")] == [
        b"1", b"2", b"3", b"4", b"5",
    ]  # fmt: skip


def test_cached_connections_that_the_client_closed_are_forgotten(client, root):
    address = client.mode_e()
    assert store(client, address, "STOR one", block(0, b"1") + end(1)).code == 226
    assert store(client, address, "STOR two", block(0, b"2") + end(1)).code == 226
    assert (root / "two").read_bytes() == b"2"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (block(0, b"abc") + end(close=True, eod=False), "CLOSE before end of data"),
        (end(close=True, eod=False), "CLOSE before end of data"),
        (block(0, b"abc"), "closed without end of data"),
        (block(0, b"abc")[:-1], "closed inside a block"),
        (block(0, b"abc") + b"\0\0", "closed inside a block header"),
        (BlockHeader(0, 1 << 62, 1 << 62).pack(), "out of range"),
        (BlockHeader(CLOSE, 3, 0).pack() + b"abc", "without EOD"),
        (b"GET / HTTP/1.1\r\n\r\n", "before end of data"),
    ],
)
def test_broken_streams_are_an_error_reply_and_the_session_goes_on(client, root, content, complaint):
    address = client.mode_e()
    client.send("STOR new")
    with connect(address) as sock:
        sock.sendall(content)
    assert client.reply().code == 150
    reply = client.reply()
    assert (reply.code, reply.error_class) == (426, "DATA_CHANNEL_COMMUNICATION_FAILURE")
    assert complaint in reply.text
    assert client.do("STOR new").code == 425  # the data channel was closed
    assert store(client, client.passive(), "STOR new", block(0, b"ok") + end(1)).code == 226
    assert (root / "new").read_bytes() == b"ok"


def test_connections_that_carry_nothing_are_not_part_of_a_transfer(client, root):
    address = client.mode_e()
    connect(address).close()
    assert store(client, address, "STOR new", block(0, b"ok") + end(1)).code == 226
    with connect(address):  # half open: it neither delays the transfer nor survives it
        assert store(client, address, "STOR new", block(0, b"ok") + end(1)).code == 226
    assert (root / "new").read_bytes() == b"ok"


def test_partial_stores_never_truncate_and_markers_are_relative(client, root):
    address = client.mode_e()
    assert store(client, address, "ESTO A 10 file", block(5, b"abc") + end(1)).code == 226
    assert (root / "file").read_bytes() == CONTENT[:15] + b"abc" + CONTENT[18:]
    assert [range_marker(m) for m in client.markers if m.code == 111] == [[(5, 8)]]
    assert store(client, client.passive(), "ESTO A 3 fresh", block(0, b"abc") + end(1)).code == 226
    assert (root / "fresh").read_bytes() == b"\0\0\0abc"
    client.do("REST 0-5")
    assert store(client, client.passive(), "STOR file", block(0, b"X") + end(1)).code == 226
    assert (root / "file").stat().st_size == len(CONTENT)
    client.do("REST 0-0")
    assert store(client, client.passive(), "STOR file", block(0, b"X") + end(1)).code == 226
    assert (root / "file").read_bytes() == b"X"


@pytest.mark.parametrize("interval", ["1", "0.2"])
def test_markers_come_at_the_start_at_intervals_and_at_the_end(client, interval):
    assert client.do(f"TREV PERF {interval}").code == 200
    assert client.do(f"TREV RESTART {interval}").code == 200
    address = client.mode_e()
    client.send("STOR new")
    with connect(address) as sock:
        sock.sendall(block(0, b"a" * 100))
        assert client.reply().code == 150
        assert client.any_reply().code == 112
        while (marker := client.any_reply()).code == 112:
            pass
        assert range_marker(marker) == [(0, 100)]
        sock.sendall(block(200, b"b" * 100) + block(100, b"b" * 50) + end(1))
        assert client.reply().code == 226
    ranges = [range_marker(marker) for marker in client.markers if marker.code == 111]
    assert sorted(part for parts in ranges for part in parts) == [(100, 150), (200, 300)]
    last = [marker for marker in client.markers if marker.code == 112][-1]
    assert "Stripe Bytes Transferred: 250" in last.text


def test_markers_can_be_switched_off(client):
    client.do("TREV PERF 0")
    client.do("TREV RESTART 0")
    assert store(client, client.mode_e(), "STOR new", block(0, CONTENT) + end(1)).code == 226
    assert client.markers == []


# --- MODE E, retrieving ----------------------------------------------------------------------------


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        yield listener


def retrieve(client: RawClient, socks: list[socket.socket]) -> tuple[bytes, list[BlockHeader]]:
    """Read one transfer from its connections."""
    results: list = [None] * len(socks)

    def read(i: int) -> None:
        results[i] = read_blocks(socks[i])

    threads = [threading.Thread(target=read, args=(i,)) for i in range(len(socks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pieces = sorted(piece for blocks, _ in results for piece in blocks)
    arrived = RangeSet()
    got = bytearray()
    for offset, content in pieces:
        assert arrived.add(offset, offset + len(content)) == len(content)
        got += bytes(max(0, offset + len(content) - len(got)))
        got[offset : offset + len(content)] = content
    return bytes(got), [header for _, header in results]


def prepare(client: RawClient, listener: socket.socket, streams: int) -> None:
    client.do("MODE E")
    assert client.do(f"OPTS RETR Parallelism={streams},{streams},{streams};").code == 200
    assert client.do(f"PORT {wire.format_host_port(listener.getsockname())}").code == 200


@pytest.mark.parametrize("streams", [1, 4])
def test_parallel_retrieve_and_cached_connections(client, listener, streams):
    prepare(client, listener, streams)
    client.send("RETR file", "ERET P 100 1000 file", "ERET P 0 10 none", "ERET P 9999999 10 file")
    client.send("REST 0-5,8-10", "ERET P 10 20 file")
    socks = [listener.accept()[0] for _ in range(streams)]
    for expected in (CONTENT, CONTENT[100:1100], b"", bytes(5) + CONTENT[15:18] + bytes(2) + CONTENT[20:30]):
        got, headers = retrieve(client, socks)
        assert got == expected
        totals = [header.total_streams for header in headers if header.total_streams is not None]
        assert totals == [streams]
        assert not any(header.descriptor & CLOSE for header in headers)
    codes = [client.reply().code for _ in range(10)]
    assert codes == [150, 226, 125, 226, 550, 125, 226, 350, 125, 226]
    client.do(f"PORT {wire.format_host_port(listener.getsockname())}")
    assert [sock.recv(1) for sock in socks] == [b""] * streams  # a new PORT closes them
    for sock in socks:
        sock.close()


def test_listing_in_mode_e(client, listener):
    prepare(client, listener, 2)
    client.do("OPTS MLST type;size;")
    client.send("MLSD /")
    with listener.accept()[0] as first, listener.accept()[0] as second:
        got, _ = retrieve(client, [first, second])
    assert got == f"Type=file;Size={len(CONTENT)}; file\r\n".encode()


def test_literal_bytes_of_a_retrieve(client, listener, root):
    (root / "abc").write_bytes(b"abc")
    prepare(client, listener, 1)
    client.send("RETR abc")
    with listener.accept()[0] as sock:
        assert [client.reply().code, client.reply().code] == [150, 226]
        client.send("QUIT")
        assert drain(sock) == (
            bytes.fromhex("00 0000000000000003 0000000000000000") + b"abc"
            + bytes.fromhex("48 0000000000000000 0000000000000001")
        )  # fmt: skip


def test_retrieve_markers_on_request(client, listener):
    client.do("OPTS RETR Markers=1;")
    prepare(client, listener, 1)
    client.send("RETR file")
    with listener.accept()[0] as sock:
        retrieve(client, [sock])
    assert [client.reply().code, client.reply().code] == [150, 226]
    assert {marker.code for marker in client.markers} == {112}
    assert f"Stripe Bytes Transferred: {len(CONTENT)}" in client.markers[-1].text


def test_the_wrong_way_round_is_refused(client, listener):
    client.mode_e()
    assert client.do("RETR file").code == 500
    prepare(client, listener, 1)
    assert client.do("STOR file").code == 500


def test_a_client_that_closes_while_it_retrieves(client, listener, root):
    with (root / "big").open("wb") as file:
        file.truncate(1 << 30)
    prepare(client, listener, 2)
    client.send("RETR big")
    first, second = listener.accept()[0], listener.accept()[0]
    first.close()
    assert client.reply().code == 150
    assert client.reply().code == 426
    second.close()
    prepare(client, listener, 1)
    client.send("RETR file")
    with listener.accept()[0] as sock:
        assert retrieve(client, [sock])[0] == CONTENT


def test_a_file_that_shrinks_is_never_sent_as_whole(client, listener, root):
    with (root / "big").open("wb") as file:
        file.truncate(1 << 30)
    with connect(client.passive()) as data:
        client.send("RETR big")
        assert client.reply().code == 150
        assert data.recv(1) == b"\0"
        os.truncate(root / "big", 1000)
        drain(data)
        reply = client.reply()
    assert reply.code == 451
    assert "shorter" in reply.text
