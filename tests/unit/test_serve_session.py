"""The server on loopback against literal commands, and MODE S."""

import hashlib
import os
import socket
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from raw_client import CONTENT, RawClient, connect, drain

from mpx.endpoints.ftp import wire
from mpx.serve import Server
from mpx.serve.buffers import BLOCK_BYTES
from mpx.serve.connection import Connection
from mpx.serve.listing import Item
from mpx.serve.progress import TransferCounters
from mpx.serve.send import PORTION_BYTES, LineSender
from mpx.serve.turns import Share, Turn, Turns

# --- login and small commands ----------------------------------------------------------------------


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


def test_a_name_that_is_taken_is_given_to_no_other(client, root):
    (root / "old").write_bytes(b"old")
    assert client.do("SITE RNNEW new").code == 503
    assert client.do("RNFR file").code == 350
    taken = client.do("SITE RNNEW old")
    assert (taken.code, taken.error_class) == (553, "PATH_EXISTS")
    assert (root / "old").read_bytes() == b"old"
    assert client.do("RNFR file").code == 350
    assert client.do("SITE RNNEW new").code == 250
    assert (root / "new").read_bytes() == CONTENT
    assert sorted(each.name for each in root.iterdir()) == ["new", "old"]


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


@pytest.mark.parametrize("name", ["ends in a blank ", " begins with one", " "])
def test_blanks_are_part_of_names(client, root, name):
    for each in {name, name.strip()} - {""}:
        (root / each).touch(0o644)
    assert client.do(f"SITE CHMOD 0600 {name}").code == 250
    assert client.do(f"SITE UTIME 20200101000000 {name}").code == 250
    assert ((root / name).stat().st_mode & 0o777, (root / name).stat().st_mtime) == (0o600, 1577836800)
    if name.strip():
        assert (root / name.strip()).stat().st_mode & 0o777 == 0o644


def test_facts_of_one_name_and_of_a_directory(client, root):
    (root / "d").mkdir()
    entry = wire.parse_facts(client.do("MLST file").lines[1], is_indented=True)
    assert entry.name == "file"
    assert (entry.facts["type"], entry.facts["size"]) == ("file", str(len(CONTENT)))
    names = {wire.parse_facts(line, is_indented=True).name for line in client.do("MLSC /").lines[1:-1]}
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


def test_where_a_link_points_is_no_reply(client, root):
    """What it points to is text that somebody has chosen: it adds neither lines nor replies."""
    (root / "link").symlink_to("gone\r\n213 End.\r\n-rw-r--r-- 1 0 0 9 Jan 1 2020 forged")
    assert client.do("STAT .").lines[-1] == "End."
    assert client.do("NOOP").code == 200
    assert not [line for line in client.retrieve("LIST")[1].splitlines() if line.startswith(b"-rw-r--r-- 1 ")]


def test_a_long_listing_is_whole(client, root):
    names = {f"{'x' * 100}{i}" for i in range(3000)}  # several portions
    for name in names:
        (root / name).touch()
    reply, listed = client.retrieve("NLST")
    assert reply.code == 226
    assert sorted(listed.decode().split("\r\n")) == sorted({"", "file"} | names)
    lines = client.retrieve("MLSD")[1].decode().splitlines()
    assert sorted(wire.parse_facts(line).name for line in lines) == sorted({"file"} | names)


def test_lines_leave_while_more_of_them_are_made():
    heard = threading.Event()

    def lines():
        for _ in range(100):
            yield b"x" * PORTION_BYTES
        assert heard.wait(30), "nothing leaves before the last line is made"
        yield b"the last"

    with socket.create_server(("127.0.0.1", 0)) as listener:
        reader = connect(listener.getsockname())
        connection = Connection(listener.accept()[0], BLOCK_BYTES, lambda: None)
    with reader, ThreadPoolExecutor(1) as sending:
        sender = LineSender(lines(), TransferCounters(keep_ranges=False), Turn(Turns(), Share()))
        sent = sending.submit(sender.serve, connection)
        first = reader.recv(1)
        heard.set()
        assert first + drain(reader) == b"x" * (100 * PORTION_BYTES) + b"the last"
        sent.result()
    connection.close()


def test_an_abandoned_listing_ends_with_its_client(server, root, monkeypatch, eventually):
    left = threading.Event()
    monkeypatch.setattr("mpx.serve.listing.items", lambda *_: endless(left))
    with RawClient(server.port) as client, connect(client.passive()) as data:
        client.send("NLST")
        assert client.reply().code == 150
        data.recv(1)
    eventually(left.is_set)


def endless(left: threading.Event):
    try:
        while True:
            yield Item("x" * 100, os.stat("/"))
    finally:
        left.set()


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


# --- MODE S ----------------------------------------------------------------------------------------


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


def test_what_restarts_is_the_next_transfer_and_no_later_one(client, root):
    client.do("REST 3")
    assert client.retrieve("NLST")[1] == b"file\r\n"
    assert client.retrieve("RETR file")[1] == CONTENT
    client.do("REST 3")
    assert client.store("SINK", b"thrown away").code == 226
    assert client.retrieve("RETR file")[1] == CONTENT
    client.do("REST 3")
    assert client.do("SINK").code == 425  # no data channel
    assert client.retrieve("RETR file")[1] == CONTENT


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
