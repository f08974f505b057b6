"""What a hostile client tries: leaving the tree, sending data elsewhere, floods, garbage, leaks."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from raw_client import RawClient, block, connect, end

from mpx.endpoints.ftp import wire
from mpx.serve import Limits, Server
from mpx.serve.admission import Room

SECRET = b"not to be served"
HTTP = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"TRACE")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_bytes(SECRET)
    root = tmp_path / "served"
    root.mkdir()
    (root / "file").write_bytes(b"content")
    (root / "out").symlink_to("../secret")
    (root / "absolute").symlink_to(tmp_path)
    (root / "up").symlink_to("..")
    os.mkfifo(root / "fifo")
    return root


# --- out of the tree -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../secret", "/../secret", "//../../secret", "out", "up/secret", "absolute/secret", "~/../secret"],
)
def test_nothing_outside_can_be_read_or_changed(client, root, name):
    wanted = "RETR", "ERET P 0 5", "CKSM MD5 0 -1", "SITE CHMOD 777", "MFMT 20200101000000", "SITE TRNC 0"
    for command in (*wanted, "SIZE", "CWD"):
        client.passive()
        reply = client.do(f"{command} {name}")
        assert reply.error_class in ("PATH_NOT_FOUND", "PERMISSION_DENIED"), command
    made = f"APPE {name}", f"STOR {name}/x", f"MKD {name}/x"
    for line in (f"DELE {name}", f"RNFR {name}", "RNTO got", *made):
        if line not in ("DELE out", "RNFR out"):
            client.passive()
            client.send(line, "ABOR")  # a store that did begin ends with 426
            # A name with dots only is cut off at the root, so it may be made there.
            assert client.reply().code >= 500 or (".." in name and "APPE" in line), line
            assert client.reply().code == 226
    assert (root.parent / "secret").read_bytes() == SECRET
    assert sorted(path.name for path in root.parent.iterdir()) == ["secret", "served"]


def test_listings_show_links_that_lead_out_as_links(client):
    client.do("OPTS MLST type;")
    lines = client.retrieve("MLSD")[1].decode().splitlines()
    assert sorted(lines) == [
        "Type=OS.unix=pipe; fifo",
        "Type=file; file",
        "Type=slink; absolute",
        "Type=slink; out",
        "Type=slink; up",
    ]
    assert SECRET.decode() not in client.retrieve("LIST -laR")[1].decode()
    assert client.retrieve("MLSD up")[0].error_class == "PERMISSION_DENIED"
    assert client.retrieve("LIST absolute")[0].error_class == "PERMISSION_DENIED"


def test_a_fifo_neither_blocks_nor_opens(client):
    assert client.retrieve("RETR fifo")[0].error_class == "PERMISSION_DENIED"
    assert client.store("STOR fifo", b"x").error_class == "PERMISSION_DENIED"
    assert client.do("CKSM MD5 0 -1 fifo").error_class == "PERMISSION_DENIED"


# --- data elsewhere ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "PORT 127,0,0,2,100,100",
        "PORT 10,0,0,1,100,100",
        "PORT 127,0,0,1,0,22",
        "PORT 127,0,0,1,0,0",
        "EPRT |1|127.0.0.2|25700|",
        "EPRT |1|127.0.0.1|22|",
        "EPRT |2|::1|25700|",
        "EPRT |2|::ffff:127.0.0.1|25700|",
        "EPRT |1||25700|",
        "SPOR 127,0,0,2,100,100 127,0,0,1,100,100",
    ],
)
def test_data_goes_to_the_client_only(client, line):
    assert client.do(line).code == 501
    assert client.do("RETR file").code == 425


def test_connections_from_elsewhere_are_closed(client, root):
    address = client.mode_e()
    with socket.create_connection(address, 30, source_address=("127.0.0.2", 0)) as thief:
        thief.sendall(block(0, b"evil") + end(1))
        client.send("STOR new")
        with suppress(ConnectionError):
            assert thief.recv(1) == b""
        with connect(address) as sock:
            sock.sendall(block(0, b"good") + end(1))
            assert [client.reply().code, client.reply().code] == [150, 226]
    assert (root / "new").read_bytes() == b"good"


def test_sessions_from_outside_the_allowed_networks_are_closed(root):
    with Server(root, host="0.0.0.0", insecure=True, allow_from=["127.0.0.2/32"]) as server:
        with connect(("127.0.0.1", server.port)) as refused:
            assert refused.recv(100) == b""
        with socket.create_connection(("127.0.0.1", server.port), 30, ("127.0.0.2", 0)) as allowed:
            assert allowed.recv(3) == b"220"


# --- floods and garbage --------------------------------------------------------------------------


def test_an_endless_line_ends_the_session(client, server):
    with pytest.raises((EOFError, ConnectionError)):
        client.sock.sendall(b"NOOP" * 100_000)
        assert client.reply().code == 500
        client.reply()
    with RawClient(server.port) as other:
        assert other.do("NOOP").code == 200


def test_a_long_line_is_still_a_command(client):
    ranges = ",".join(f"{i * 10**11}-{i * 10**11 + 5}" for i in range(500))
    assert client.do(f"REST {ranges}").code == 350
    assert client.do("SIZE " + "/".join(["x" * 200] * 20)).error_class == "PATH_NOT_FOUND"
    assert client.do("SIZE " + "x" * 8000).error_class == "INVALID_PATH_NAME"


def test_thousands_of_commands_in_one_write_are_answered_one_by_one(client):
    client.sock.sendall(b"NOOP\r\n" * 5000)
    for _ in range(5000):
        assert client.reply().code == 200


def test_thousands_of_commands_behind_a_transfer_end_the_session(client, server):
    with client.storing() as sock:
        client.sock.sendall(b"NOOP\r\n" * 5000)
        with pytest.raises((EOFError, ConnectionError)):
            assert client.reply().lines == ("Pipeline queue full.",)
            client.reply()
        assert sock.recv(1) == b""
    with RawClient(server.port) as other:
        assert other.do("NOOP").code == 200


def test_a_web_page_cannot_make_a_browser_speak_ftp(server, root):
    with connect(("127.0.0.1", server.port)) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nUSER ftp\r\nPASS x\r\nDELE file\r\n")
        with suppress(ConnectionError):
            while sock.recv(1000):
                pass
    assert (root / "file").exists()


@pytest.mark.parametrize("name", ["a\rb", "a\0b", "\0"])
def test_carriage_return_and_nul_are_refused(client, root, name):
    assert client.do(f"MKD {name}").code == 501
    assert client.do(f"DELE {name}").code == 501


def test_bytes_that_are_not_utf8_are_kept(client, root):
    assert client.do("MKD \udcff\udce4").code == 257
    assert os.listdir(os.fsencode(root)).count(b"\xff\xe4") == 1
    assert b"\xff\xe4" in client.retrieve("NLST")[1]


@pytest.fixture
def hasty_client(root: Path):
    """A client of a server that does not wait for data connections, which these commands never open."""
    with Server(root, writable=True, limits=Limits(stall_s=0.01)) as server, RawClient(server.port) as client:
        yield client


VERBS = [
    "REST", "ERET", "ESTO", "OPTS", "TREV", "CKSM", "SITE", "MFMT", "MLST", "PORT", "EPRT", "SPOR", "EPSV",
    "STAT", "CWD", "RNFR", "SIZE", "MDTM", "TYPE", "MODE", "SBUF", "SPAS", "LIST", "USER", "HELP", "ALLO",
]  # fmt: skip


@settings(max_examples=150)
@given(
    verb=st.sampled_from(VERBS),
    argument=st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=40)
    | st.lists(st.sampled_from(["P", "A", "0", "-1", "9" * 30, "MD5", "file", ".", "x=1;", "1-2,", ""])).map(
        " ".join
    ),
)
def test_no_argument_makes_the_server_stumble(hasty_client, verb, argument):
    client = hasty_client
    reply = client.do(f"{verb} {argument}")
    assert 200 <= reply.code < 560
    assert reply.error_class != "INTERNAL_ERROR" or "unexpected" not in reply.text
    client.do("USER ftp")
    assert client.do("PASS x").code == 230


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_no_garbage_makes_the_server_stumble(server, garbage):
    assume(not any(word in garbage.upper() for word in HTTP))  # those end a session at once
    with connect(("127.0.0.1", server.port)) as sock:
        sock.sendall(garbage + b"\r\nQUIT\r\n")
        reader, replies = wire.ReplyReader(), []
        while data := sock.recv(65536):
            replies += reader.feed(data)
    assert replies[0].code == 220
    assert replies[-1].code == 221


# --- limits and leaks ----------------------------------------------------------------------------


def test_sessions_are_counted(root):
    with (
        Server(root, limits=Limits(room=Room(sessions=2))) as server,
        RawClient(server.port) as first,
        RawClient(server.port) as second,
        connect(("127.0.0.1", server.port)) as third,
    ):
        assert third.recv(100).startswith(b"421 ")
        assert third.recv(1) == b""
        assert first.do("NOOP").code == second.do("NOOP").code == 200


def test_a_connection_for_which_there_is_no_memory_does_not_end_the_server(server, monkeypatch):
    def short(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr("mpx.serve.server.Session", short)
    with connect(("127.0.0.1", server.port)) as refused:
        assert refused.recv(1) == b""
    with RawClient(server.port) as client:
        assert client.do("NOOP").code == 200


def test_no_descriptors_or_threads_are_left(server, root, eventually):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    for _ in range(10):
        with RawClient(server.port) as client:
            address = client.mode_e()
            with connect(address), connect(address) as half, connect(address) as sock:
                client.send("STOR new")
                half.sendall(b"\0")
                sock.sendall(block(0, b"abc") + end(1))
                assert [client.reply().code, client.reply().code] == [150, 226]
            client.do("STOR none/x")
            client.retrieve("RETR none")
            client.do("MODE S")
            client.retrieve("MLSD")
            client.do("CKSM MD5 0 -1 file")
            client.passive()
    eventually(lambda: descriptors() == before)


def test_a_full_disk_is_said_after_the_transfer(client, root, monkeypatch):
    written = 0

    def pwrite(fd, data, offset):
        nonlocal written
        if written + len(data) > 2_000_000:
            raise OSError(28, "No space left on device")
        written += len(data)
        return len(data)

    monkeypatch.setattr("mpx.serve.receive.os.pwrite", pwrite)
    address = client.mode_e()
    client.send("STOR new")
    with connect(address) as sock:
        with suppress(ConnectionError):
            for i in range(200):
                sock.sendall(block(i * 1_000_000, bytes(1_000_000)))
        assert client.reply().code == 150
        reply = client.reply()
    assert (reply.code, reply.error_class) == (552, "NO_SPACE_LEFT")
    assert "No space left on device" in reply.text
    assert client.do("NOOP").code == 200
