"""The server on loopback against literal commands and MODE E bytes."""

import contextlib
import hashlib
import os
import socket
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest
from raw_client import RawClient, block, connect, drain, end, read_blocks

from mpx import gridftp_wire as wire
from mpx.ranges import RangeSet
from mpx.serve import Limits, Server

CONTENT = bytes(range(256)) * 5000  # 1.28 MB: more than one block


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(CONTENT)
    return tmp_path / "served"


@pytest.fixture
def server(root: Path):
    with Server(root, writable=True) as server:
        yield server


@pytest.fixture
def client(server: Server):
    with RawClient(server.port) as client:
        yield client


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


# --- login and small commands --------------------------------------------------------------------


def test_login_is_anonymous_only(server):
    with RawClient(server.port, login=False) as client:
        assert client.do("SIZE /file").code == 530
        assert client.do("FEAT").code == 211
        assert client.do("USER root").code == 331
        assert client.do("PASS x").code == 530
        assert client.do("USER ftp").code == 331
        assert client.do("PASS anything at all").code == 230
        assert client.do("SIZE /file").lines == (str(len(CONTENT)),)
        assert client.do("QUIT").code == 221
        with pytest.raises(EOFError):
            client.reply()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("NOOP", 200),
        ("SYST", 215),
        ("TYPE I", 200),
        ("TYPE L 8", 200),
        ("TYPE E", 504),
        ("MODE B", 504),
        ("STRU F", 200),
        ("STRU R", 504),
        ("ALLO 100", 200),
        ("PBSZ 0", 200),
        ("PROT C", 200),
        ("PROT P", 536),
        ("DCAU N", 200),
        ("DCAU A", 504),
        ("AUTH TLS", 502),
        ("HELP", 214),
        ("SITE HELP", 214),
        ("SITE VERSION", 200),
        ("SITE CLIENTINFO scheme=ftp;", 250),
        ("SITE TASKID 7", 250),
        ("SITE NONSENSE", 500),
        ("WHOAMI", 200),
        ("SBUF 300000", 200),
        ("SBUF x", 501),
        ("SITE RETRBUFSIZE 1000", 200),
        ("NONSENSE", 500),
        ("", 500),
        ("SIZE", 501),
        ("SIZE /none", 550),
        ("SIZE /", 550),
        ("RETR /file", 425),
        ("STOR /new", 425),
        ("RNTO /x", 503),
        ("ABOR", 226),
        ("STAT", 211),
        ("REST x", 501),
        ("CKSM MD5 0 -1 /none", 550),
        ("CKSM CRC 0 -1 /file", 504),
        ("CKSM MD5", 501),
        ("ERET X 0 1 /file", 501),
        ("ESTO A x /file", 501),
        ("SITE CHMOD 4755 /file", 501),
        ("MFMT nonsense /file", 501),
        ("EPSV 2", 522),
        ("PORT nonsense", 501),
    ],
)
def test_small_commands(client, line, code):
    assert client.do(line).code == code
    assert client.do("NOOP").code == 200


def test_features_name_what_works(client):
    features = wire.parse_features(client.do("FEAT"))
    assert {"CKSM", "ERET", "ESTO", "MLST", "PARALLEL", "SIZE", "SPAS", "SPOR", "MFMT"} <= set(features)
    assert features["REST"] == "STREAM"
    assert "AUTH" not in features


def test_working_on_names(client, root):
    assert client.do("MKD a b").lines == ('"/a b" created.',)
    again = client.do("MKD a b")
    assert (again.code, again.error_class) == (553, "PATH_EXISTS")
    assert client.do("CWD a b").code == 250
    assert client.do('MKD "q"').lines == ('"/a b/""q""" created.',)
    assert client.do("PWD").lines == ('"/a b" is current directory.',)
    assert client.do("CDUP").code == 250
    assert client.do("CWD /none").error_class == "PATH_NOT_FOUND"
    assert client.do("CWD /file").error_class == "NOT_A_DIRECTORY"
    assert client.do("RNFR file").code == 350
    assert client.do("RNTO a b/moved").code == 250
    assert client.do("RNFR /none").error_class == "PATH_NOT_FOUND"
    assert (root / "a b" / "moved").read_bytes() == CONTENT
    assert client.do("RMD a b").code == 550
    assert client.do("DELE a b/moved").code == 250
    assert client.do('RMD a b/"q"').code == 250
    assert client.do("RMD a b").code == 250
    assert list(root.iterdir()) == []


def test_times_modes_and_truncation(client, root):
    assert client.do("MFMT 20200102030405 file").code == 213
    assert client.do("MDTM file").lines == ("20200102030405",)
    assert client.do("SITE UTIME 20210102030405 file").code == 250
    assert client.do("MDTM file").lines == ("20210102030405",)
    assert client.do("SITE UTIME file 20220102030405 20230102030405 20220102030405 UTC").code == 250
    assert client.do("MDTM file").lines == ("20230102030405",)
    assert client.do("SITE CHMOD 0600 file").code == 250
    assert (root / "file").stat().st_mode & 0o7777 == 0o600
    assert client.do("SITE TRNC 10 file").code == 250
    assert client.do("SITE TRNC 99 file").code == 250
    assert (root / "file").read_bytes() == CONTENT[:10]


def test_facts_of_one_name_and_of_a_directory(client, root):
    (root / "d").mkdir()
    entry = wire.parse_facts(client.do("MLST file").lines[1])
    assert entry.name == "file"
    assert (entry.facts["type"], entry.facts["size"]) == ("file", str(len(CONTENT)))
    names = {wire.parse_facts(line).name for line in client.do("MLSC /").lines[1:-1]}
    assert names == {"file", "d"}
    assert {line.split()[-1] for line in client.do("STAT /").lines[1:-1]} == {"file", "d"}
    assert client.do("STAT file").lines[1].endswith(" file")


def test_listings(client, root):
    (root / "d" / "e").mkdir(parents=True)
    assert client.retrieve("NLST")[1] in (b"file\r\nd\r\n", b"d\r\nfile\r\n")
    assert len(client.retrieve("LIST -la /")[1].splitlines()) == 2
    assert client.retrieve("NLST d")[1] == b"e\r\n"
    assert client.retrieve("LIST file")[1].endswith(b" file\r\n")
    assert client.do("OPTS MLST type;").code == 200
    assert sorted(client.retrieve("MLSR")[1].splitlines()) == [
        b"Type=dir; d",
        b"Type=dir; d/e",
        b"Type=file; file",
    ]
    assert client.retrieve("MLSD d/e") == (client.retrieve("MLSD d/e")[0], b"")
    assert client.retrieve("MLSD none")[0].error_class == "PATH_NOT_FOUND"


@pytest.mark.parametrize("algorithm", ["MD5", "sha1", "SHA256", "SHA512"])
def test_checksums(client, algorithm):
    expected = hashlib.new(algorithm, CONTENT[5:105]).hexdigest()
    assert client.do(f"CKSM {algorithm} 5 100 file").lines == (expected,)


def test_adler32_of_the_whole_file(client):
    assert client.do("CKSM ADLER32 0 -1 file").lines == (f"{zlib.adler32(CONTENT):08x}",)


def test_a_long_checksum_sends_markers_and_can_be_aborted(client, root, eventually):
    with (root / "big").open("wb") as file:
        file.truncate(1 << 40)
    client.do("OPTS CKSM Markers=1;")
    client.send("CKSM SHA512 0 -1 big")
    client.sock.settimeout(30)
    assert b"113-Status Marker\r\n Timestamp: " in client.sock.recv(1000)
    client.send("ABOR")
    assert client.reply().code == 426
    assert client.reply().code == 226


def test_a_read_only_server_refuses_every_change(root):
    with Server(root) as server, RawClient(server.port) as client:
        client.passive()
        for line in (
            "STOR x", "APPE file", "ESTO A 0 file", "MKD x", "RMD x", "DELE file", "RNFR file", "RNTO x",
            "MFMT 20200101000000 file", "SITE CHMOD 777 file", "SITE TRNC 0 file",
            "SITE UTIME 20200101000000 file",
        ):  # fmt: skip
            assert client.do(line).error_class == "PERMISSION_DENIED", line
        assert client.retrieve("RETR file")[1] == CONTENT
    assert (root / "file").read_bytes() == CONTENT
    assert [path.name for path in root.iterdir()] == ["file"]


# --- MODE S --------------------------------------------------------------------------------------


def test_streams_whole_and_in_part(client, root):
    assert client.store("STOR new", CONTENT).code == 226
    assert (root / "new").read_bytes() == CONTENT
    client.do("REST 100")
    assert client.retrieve("RETR new")[1] == CONTENT[100:]
    assert client.retrieve("RETR new")[1] == CONTENT
    assert client.retrieve("ERET P 10 20 new")[1] == CONTENT[10:30]
    client.do("REST 5")
    assert client.retrieve("ERET P 10 20 new")[1] == CONTENT[15:30]
    client.do("REST 10")
    assert client.store("STOR new", b"xyz").code == 226
    assert (root / "new").read_bytes() == CONTENT[:10] + b"xyz" + CONTENT[13:]
    assert client.store("APPE new", b"end").code == 226
    assert (root / "new").read_bytes().endswith(CONTENT[-5:] + b"end")
    assert client.store("ESTO A 3 new", b"abc").code == 226
    assert (root / "new").read_bytes()[:10] == CONTENT[:3] + b"abc" + CONTENT[6:10]
    assert client.store("STOR new", b"").code == 226
    assert (root / "new").read_bytes() == b""


def test_active_streams(client, root):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert client.do(f"PORT {wire.format_host_port(listener.getsockname())}").code == 200
        client.send("RETR file")
        with listener.accept()[0] as data:
            assert drain(data) == CONTENT
        assert [client.reply().code, client.reply().code] == [150, 226]
        client.send("STOR new")
        with listener.accept()[0] as data:
            data.sendall(CONTENT)
        assert [client.reply().code, client.reply().code] == [150, 226]
    assert (root / "new").read_bytes() == CONTENT
    refused = client.do("RETR file")
    assert (refused.code, refused.error_class) == (425, "DATA_CHANNEL_COMMUNICATION_FAILURE")


# --- MODE E, storing -----------------------------------------------------------------------------


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
        [block(0, CONTENT, wire.EOD), end(2)],  # end of data on a data block; a stream without data
        [end(2, eod=False) + block(0, CONTENT) + end(), end()],  # end of file first, and without EOD
        [block(0, CONTENT) + end(), end(2)],  # end of file on a stream of its own
        [block(0, CONTENT) + end(close=True), end(2, close=True)],
        [wire.HEADER.pack(wire.EOF, 99, 1) + block(0, CONTENT) + end()],  # an EOF block's count is ignored
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
        (wire.HEADER.pack(0, 1 << 62, 1 << 62), "out of range"),
        (wire.HEADER.pack(wire.CLOSE, 3, 0) + b"abc", "without EOD"),
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
    assert [wire.range_marker(m) for m in client.markers if m.code == 111] == [[(5, 8)]]
    assert store(client, client.passive(), "ESTO A 3 fresh", block(0, b"abc") + end(1)).code == 226
    assert (root / "fresh").read_bytes() == b"\0\0\0abc"
    client.do("REST 0-5")
    assert store(client, client.passive(), "STOR file", block(0, b"X") + end(1)).code == 226
    assert (root / "file").stat().st_size == len(CONTENT)
    client.do("REST 0-0")
    assert store(client, client.passive(), "STOR file", block(0, b"X") + end(1)).code == 226
    assert (root / "file").read_bytes() == b"X"


def test_markers_come_at_the_start_at_intervals_and_at_the_end(client):
    client.do("TREV PERF 1")
    client.do("TREV RESTART 1")
    address = client.mode_e()
    client.send("STOR new")
    with connect(address) as sock:
        sock.sendall(block(0, b"a" * 100))
        assert client.reply().code == 150
        assert client.any_reply().code == 112
        while (marker := client.any_reply()).code == 112:
            pass
        assert wire.range_marker(marker) == [(0, 100)]
        sock.sendall(block(200, b"b" * 100) + block(100, b"b" * 50) + end(1))
        assert client.reply().code == 226
    ranges = [wire.range_marker(marker) for marker in client.markers if marker.code == 111]
    assert sorted(part for parts in ranges for part in parts) == [(100, 150), (200, 300)]
    last = [marker for marker in client.markers if marker.code == 112][-1]
    assert "Stripe Bytes Transferred: 250" in last.text


def test_markers_can_be_switched_off(client):
    client.do("TREV PERF 0")
    client.do("TREV RESTART 0")
    assert store(client, client.mode_e(), "STOR new", block(0, CONTENT) + end(1)).code == 226
    assert client.markers == []


# --- MODE E, retrieving --------------------------------------------------------------------------


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        yield listener


def retrieve(client: RawClient, socks: list[socket.socket]) -> tuple[bytes, list[wire.BlockHeader]]:
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
        assert not any(header.descriptor & wire.CLOSE for header in headers)
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


# --- ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", [b"", b"\xff\xf4\xff\xf2"], ids=["plain", "with telnet signals"])
def test_abort_of_a_store_keeps_the_session(client, root, prefix):
    address = client.mode_e()
    client.send("STOR new")
    with connect(address) as sock:
        sock.sendall(block(0, b"abc"))
        assert client.reply().code == 150
        client.sock.sendall(prefix + b"ABOR\r\n")
        assert [client.reply().code, client.reply().code] == [426, 226]
        assert sock.recv(1) == b""
    assert client.do("NOOP").code == 200


def test_abort_before_any_connection_and_commands_in_between(client):
    client.mode_e()
    client.send("STOR new", "NOOP", "abor", "SYST")
    assert [client.reply().code for _ in range(4)] == [426, 200, 226, 215]


def test_abort_of_a_retrieve(client, root):
    with (root / "big").open("wb") as file:
        file.truncate(1 << 40)
    with connect(client.passive()) as data:
        client.send("RETR big")
        assert client.reply().code == 150
        data.recv(1)
        client.send("ABOR")
        assert [client.reply().code, client.reply().code] == [426, 226]


def test_abort_while_we_still_connect(client):
    with socket.socket() as crowded, contextlib.ExitStack() as stack:
        crowded.bind(("127.0.0.1", 0))
        crowded.listen(0)  # the kernel leaves what it has no room for unanswered
        stack.enter_context(connect(crowded.getsockname()))
        client.do("MODE E")
        client.do("OPTS RETR Parallelism=8;")
        client.do(f"PORT {wire.format_host_port(crowded.getsockname())}")
        client.send("RETR file", "ABOR")
        assert [client.reply().code, client.reply().code] in ([426, 226], [150, 426])
    assert client.do("NOOP").code in (200, 226)


def test_commands_wait_for_the_transfer(client):
    address = client.mode_e()
    client.send("STOR new", "SIZE new")
    with connect(address) as sock:
        sock.sendall(block(0, b"abc"))
        assert client.reply().code == 150
        sock.sendall(end(1))
        assert client.reply().code == 226
        assert client.reply().lines == ("3",)


def test_a_control_connection_that_goes_ends_the_transfer(server, eventually):
    client = RawClient(server.port)
    address = client.mode_e()
    client.send("STOR new")
    with connect(address) as sock:
        sock.sendall(block(0, b"abc"))
        assert client.reply().code == 150
        client.sock.close()
        assert sock.recv(1) == b""


def test_timeouts(root):
    with Server(root, writable=True, limits=Limits(idle_s=0.3, stall_s=0.2)) as server:
        with RawClient(server.port) as client:
            assert client.reply().code == 421
            with pytest.raises(EOFError):
                client.reply()
        with RawClient(server.port) as client:
            address = client.mode_e()
            assert client.do("STOR new").code == 425  # nobody connects
            address = client.passive()
            client.send("STOR new")
            with connect(address) as sock:
                sock.sendall(block(0, b"abc"))
                assert client.reply().code == 150
                reply = client.reply()
                assert reply.code == 426
                assert "nothing moved" in reply.text
        with RawClient(server.port) as client, connect(client.passive()) as sock:
            (root / "big").touch()
            os.truncate(root / "big", 1 << 30)
            client.send("RETR big")  # nobody reads
            assert [client.reply().code, client.reply().code] == [150, 426]
            drain(sock)


def test_close_ends_sessions_transfers_and_threads(root):
    before = threading.active_count()
    server = Server(root, writable=True)
    idle, busy = RawClient(server.port), RawClient(server.port)
    address = busy.mode_e()
    busy.send("STOR new")
    with connect(address) as sock:
        sock.sendall(block(0, b"abc"))
        assert busy.reply().code == 150
        server.close()
        assert sock.recv(1) == b""
    for client in (idle, busy):
        with client, pytest.raises((EOFError, ConnectionError)):
            client.reply()
    assert threading.active_count() == before
    server.close()
    with pytest.raises(ConnectionRefusedError):
        connect(("127.0.0.1", server.port))


def test_ipv6(root):
    with Server(root, host="::1") as server:
        assert server.url == f"ftp://[::1]:{server.port}/"
        with (
            socket.create_connection(("::1", server.port)) as control,
            control.makefile("rw", newline="") as file,
        ):

            def do(line: str) -> str:
                file.write(line + "\r\n")
                file.flush()
                return file.readline()

            assert file.readline().startswith("220")
            do("USER ftp")
            assert do("PASS x").startswith("230")
            assert do("PASV").startswith("522")
            port = wire.parse_extended_address(do("EPSV"))[1]
            with socket.create_connection(("::1", port)) as data:
                assert do("RETR file").startswith("150")
                assert drain(data) == CONTENT
            assert file.readline().startswith("226")
            with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
                assert do(f"EPRT |2|::1|{listener.getsockname()[1]}|").startswith("200")
                file.write("RETR file\r\n")
                file.flush()
                with listener.accept()[0] as data:
                    assert drain(data) == CONTENT


# --- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_command_line(root, signal_name):
    import signal

    command = [sys.executable, "-m", "mpx.serve", str(root), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        ready = process.stdout.readline()
        port = int(ready.split(":")[3].split("/")[0])
        assert ready == f"mpx serve: ftp://127.0.0.1:{port}/ serves {root} (read-only)\n"
        with RawClient(port) as client:
            assert client.retrieve("RETR file")[1] == CONTENT
            process.send_signal(getattr(signal, signal_name))
            assert process.wait(30) == 0
        assert process.stdout.read() == ""
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["/none"], "cannot serve"),
        ([".", "--host", "0.0.0.0"], "--allow-from"),
        ([".", "--host", "0.0.0.0", "--insecure"], "--allow-from"),
        ([".", "--host", "0.0.0.0", "--allow-from", "10.0.0.0/8"], "--allow-from"),
        (
            [".", "--host", "0.0.0.0", "--insecure", "--allow-from", "10.0.0.1/8"],
            "not an IP address or network",
        ),
        ([".", "--host", "nowhere"], "not an IP address or network"),
        ([".", "--insecure"], "not for 127.0.0.1"),
    ],
)
def test_refusals_to_start(arguments, complaint):
    from click.testing import CliRunner

    from mpx.serve.command import serve

    result = CliRunner().invoke(serve, [*arguments, "--port", "0"])
    assert result.exit_code == 2
    assert complaint in result.output


def test_a_port_in_use(server, root):
    from mpx.errors import UsageError

    with pytest.raises(UsageError, match="cannot listen"):
        Server(root, port=server.port)
