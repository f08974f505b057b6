"""Whoever is between us and a GridFTP server of a grid learns nothing and changes nothing unseen.

Each claim of docs/threat-model.md about gsiftp:// and the network is tried here.
"""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from free_ports import free_ports
from grids import as_user, shared_grid
from interop.control_relay import ControlRelay
from interop.stock_server import StockServer
from man_in_the_middle import Bend, ManInTheMiddle, cut, flipped
from mpx_command import mpx
from random_bytes import random_bytes
from sites import make

from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.errors import AuthenticationError, ConnectionLost, TransferTimeout
from mpx.location import parse_location

QUICK = SessionOptions(connect_timeout_s=2.0, timeout_s=2.0)
FAILS = (AuthenticationError, ConnectionLost, TransferTimeout)
EVERY = 67  # byte of a login
PROTECTED = re.compile(rb"(?:ADAT[ =]|ENC |632[ -])([A-Za-z0-9+/]+)")  # without the last bits of base64
MIB = 1024 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StockServer]:
    (tmp_path / "served").mkdir()
    grid = shared_grid()
    with as_user(grid), StockServer(tmp_path / "served", grid=grid) as running:
        yield running


def logs_in(port: int) -> bool:
    """Log in; False where that fails as it should."""
    try:
        with log_in(ClientSession(parse_location(f"gsiftp://localhost:{port}/"), QUICK)) as session:
            return "DCSC" in session.features
    except FAILS:
        return False


def logs_in_through(server: StockServer, bend: Bend) -> bool:
    with ManInTheMiddle(server.port, bend) as between:
        return logs_in(between.port)


def of_each(what: Callable[[int, bool, int], Bend], from_client: bool, at: int) -> Bend:
    """Bend every connection: a second one takes each step of the login by itself."""

    def bend(number: int, client: bool, begin: int, data: bytes) -> bytes:
        return what(number, from_client, at)(number, client, begin, data)

    return bend


def said_in_a_login(server: StockServer) -> dict[bool, bytes]:
    """What goes each way, by whether the client sends."""
    said = {True: b"", False: b""}

    def note(_: int, from_client: bool, at: int, data: bytes) -> bytes:
        said[from_client] = said[from_client][:at] + data
        return data

    assert logs_in_through(server, note)
    return said


@pytest.mark.parametrize("from_client", [True, False])
def test_a_login_in_which_any_protected_bit_is_changed_fails(server: StockServer, from_client: bool) -> None:
    spans = [found.span(1) for found in PROTECTED.finditer(said_in_a_login(server)[from_client])]
    places = [at for first, last in spans for at in range(first, last - 2, EVERY)]
    assert len(places) > 30
    # Each login has other keys and lengths: a place may be in the clear this time, or a version of a record.
    ignored = [at for at in places if logs_in_through(server, of_each(flipped, from_client, at))]
    assert len(ignored) <= len(places) // 20, ignored


@pytest.mark.parametrize("from_client", [True, False])
def test_a_login_that_is_cut_anywhere_fails(server: StockServer, from_client: bool) -> None:
    length = len(said_in_a_login(server)[from_client])
    for at in range(0, length - 100, 4 * EVERY):
        assert not logs_in_through(server, of_each(cut, from_client, at)), at


def through(server: StockServer, to_client: Callable[[bytes], bytes]) -> tuple[bool, list[bytes]]:
    with ControlRelay(server.port, to_client=to_client) as relay:
        return logs_in(relay.port), relay.heard


def test_a_stripped_handshake_tells_the_man_in_the_middle_nothing(server: StockServer) -> None:
    def no_gsi(line: bytes) -> bytes:
        return b"500 AUTH not understood\r\n" if line.startswith(b"334") else line

    is_in, heard = through(server, no_gsi)
    assert not is_in
    assert all(line.startswith((b"AUTH", b"ADAT", b"QUIT")) for line in heard), heard


@pytest.mark.parametrize(
    "change",
    [
        lambda line: b"230 come in\r\n" + line,
        lambda line: line + line,
        lambda line: b"631 " + line[4:],
        lambda line: b"632 AAAA\r\n",
        lambda line: b"632 !!!\r\n",
    ],
    ids=["added in the clear", "said twice", "not encrypted", "too short", "no base64"],
)
def test_replies_that_the_server_did_not_send_so(
    server: StockServer, change: Callable[[bytes], bytes]
) -> None:
    is_in, _ = through(server, lambda line: change(line) if line.startswith(b"632") else line)
    assert not is_in


def test_replies_in_another_order(server: StockServer) -> None:
    kept: list[bytes] = []

    def reorder(line: bytes) -> bytes:
        if not line.startswith(b"632"):
            return line
        kept.append(line)
        return b"" if len(kept) == 1 else line + kept.pop(0) if len(kept) == 2 else line

    assert not through(server, reorder)[0]


def test_whoever_connects_to_our_data_ports_gets_and_changes_nothing(
    server: StockServer, tmp_path: Path
) -> None:
    """Somebody tries all our ports, again and again, and says nothing, or something."""
    content = random_bytes(20 * MIB)
    (server.root / "file").write_bytes(content)
    first = min(free_ports(1)[0], 60_000)
    stop, got = threading.Event(), []

    def knock(says: bytes) -> None:
        held: list[socket.socket] = []
        while not stop.is_set():
            for port in range(first, first + 20):
                try:
                    connection = socket.create_connection(("127.0.0.1", port), 1.0)
                except OSError:
                    continue
                held.append(connection)
                connection.setblocking(False)
                try:
                    connection.sendall(says)
                    got.append(connection.recv(1 << 16))
                except OSError:
                    pass
            for connection in held[:-50]:
                connection.close()
            del held[:-50]
        for connection in held:
            connection.close()

    threads = [threading.Thread(target=knock, args=(says,)) for says in (b"", b"\x16\x03\x01\x00\xff" * 9)]
    for thread in threads:
        thread.start()
    try:
        options = ("--port-range", f"{first}-{first + 19}", "--rate", "80Mbit/s")
        done = mpx("copy", f"{server.url}file", tmp_path / "back", *options)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert done.code == 0, done.err
    assert (tmp_path / "back").read_bytes() == content
    assert not any(content[at : at + 64] in said for said in got for at in range(0, len(content), MIB))


def test_nothing_secret_is_written_down(server: StockServer, tmp_path: Path) -> None:
    make(tmp_path / "source", 3 * MIB)
    report = tmp_path / "report.json"
    done = mpx("copy", "-v", "--report", report, tmp_path / "source", f"{server.url}far")
    assert done.code == 0, done.err
    written = report.read_text() + done.out + done.err
    assert "PRIVATE KEY" not in written and "LS0tLS1CRUdJTi" not in written
