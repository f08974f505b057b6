"""`mpx serve` inside TLS: who gets in, what a token allows, and which data connections count."""

import contextlib
import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from random_bytes import random_bytes
from raw_client import CONTENT, read_blocks
from secure_client import SecureClient, is_refused, secure_server, token_of

from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket
from mpx.errors import UsageError
from mpx.serve import Server
from mpx.serve.admission import Room
from mpx.serve.session import Limits
from mpx.serve.token_serving import TokenServing

UP, DOWN = Direction.UP, Direction.DOWN


@pytest.fixture
def client(serving: tuple[Server, TokenServing]) -> Iterator[SecureClient]:
    server, secure = serving
    with token_of(secure), SecureClient(server.port) as client:
        yield client


def test_a_file_goes_both_ways(client: SecureClient, root: Path) -> None:
    assert client.retrieve_over("RETR file", client.ticket(DOWN)) == CONTENT
    ticket = client.ticket(UP)
    with client.dial(ticket.opening(UP, 5, 0.0)) as data:
        assert client.do("STOR new").code == 150
        data.sendall(CONTENT)
        data.shutdown(socket.SHUT_WR)
        assert client.reply().code == 226
    assert (root / "new").read_bytes() == CONTENT


def test_a_stream_that_is_cut_is_not_stored_as_whole(client: SecureClient) -> None:
    ticket = client.ticket(UP)
    with client.dial(ticket.opening(UP, 0, 0.0)) as data:
        assert client.do("STOR new").code == 150
        data.sendall(CONTENT)
        socket.socket.shutdown(data, socket.SHUT_WR)  # without close_notify: by whoever is in between
        assert client.reply().code == 426


@pytest.mark.parametrize(
    "lines",
    [
        ("USER anonymous", "PASS a@"),
        ("USER token", "PASS " + "x" * 43),
        ("USER token", "PASS "),
        ("USER root", "PASS \udcff\udcfe"),
    ],
)
def test_nobody_gets_in_without_a_token(
    serving: tuple[Server, TokenServing], tmp_path: Path, lines: tuple[str, str]
) -> None:
    server, secure = serving
    with token_of(secure), SecureClient(server.port, login=False) as client:
        assert client.do("RETR file").code == 530
        assert client.do("DATA DOWN").code == 530
        assert client.do(lines[0]).code == 331
        assert client.do(lines[1]).code == 530
        with pytest.raises(EOFError):
            client.reply()
    events = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert [(event["event"], event["peer"]) for event in events] == [("login refused", "127.0.0.1")]


@pytest.mark.parametrize("line", ["PASV", "EPSV", "SPAS", "PORT 127,0,0,1,200,1", "EPRT |1|127.0.0.1|51201|"])
def test_no_data_goes_in_the_clear(client: SecureClient, line: str) -> None:
    assert client.do(line).code == 522
    assert client.do("RETR file").code == 425


def test_in_the_clear_there_are_no_tickets(root: Path) -> None:
    from raw_client import RawClient

    with Server(root) as server, RawClient(server.port) as client:
        assert client.do("DATA DOWN").code == 504
        assert "MPX-DATA" not in client.do("FEAT").text


# --- data connections ------------------------------------------------------------------------------


def test_an_opening_counts_once(client: SecureClient) -> None:
    opening = client.ticket(DOWN).opening(DOWN, 0, 0.0)
    with client.dial(opening) as first, client.dial(opening) as second:
        assert is_refused(second)
        assert client.do("RETR file").code == 150
        assert first.recv(10) == CONTENT[:10]


@pytest.mark.parametrize("age_s", [31.0, 1e6])
def test_an_opening_is_not_valid_for_long(client: SecureClient, age_s: float) -> None:
    with client.dial(client.ticket(DOWN).opening(DOWN, 0, age_s)) as data:
        assert is_refused(data)


def test_an_opening_has_one_direction(client: SecureClient) -> None:
    ticket = client.ticket(DOWN)
    with client.dial(ticket.opening(UP, 0, 0.0)) as data:
        assert is_refused(data)
    assert client.do("STOR new").code == 500  # nor does its ticket
    client.ticket(UP)
    assert client.do("RETR file").code == 500


def test_only_who_has_the_ticket_opens(client: SecureClient) -> None:
    ticket = client.ticket(DOWN)
    forged = Ticket(ticket.id, bytes(32))
    unknown = Ticket(bytes(16), ticket.key)
    for opening in (forged.opening(DOWN, 0, 0.0), unknown.opening(DOWN, 0, 0.0), b"GET / HTTP/1.1\r\n" * 4):
        with client.dial(opening) as data:
            assert is_refused(data)
    assert client.retrieve_over("RETR file", ticket) == CONTENT


def test_a_ticket_ends_with_the_next_and_with_its_session(client: SecureClient) -> None:
    old = client.ticket(DOWN)
    client.ticket(DOWN)
    with client.dial(old.opening(DOWN, 0, 0.0)) as data:
        assert is_refused(data)
    last = client.ticket(UP)
    client.do("QUIT")
    with pytest.raises(EOFError):
        client.reply()
    with client.dial(last.opening(UP, 0, 0.0)) as data:
        assert is_refused(data)


def test_connections_of_one_session_serve_no_other(
    serving: tuple[Server, TokenServing], client: SecureClient
) -> None:
    server, _ = serving
    with SecureClient(server.port) as other:
        other.ticket(DOWN)
        theirs = client.ticket(DOWN)
        with client.dial(theirs.opening(DOWN, 0, 0.0)) as data:
            other.send("RETR file")
            assert client.do("RETR file").code == 150
            assert data.recv(10) == CONTENT[:10]
            other.send("ABOR")
            assert other.reply().code in (425, 426)


# --- what a token allows ---------------------------------------------------------------------------


def test_a_token_to_read(serving: tuple[Server, TokenServing], root: Path) -> None:
    server, secure = serving
    with token_of(secure, writable=False), SecureClient(server.port) as client:
        for line in ("DELE file", "MKD new", "STOR new", "SITE CHMOD 600 file", "RNFR file"):
            reply = client.do(line)
            assert (reply.code, "token" in reply.text) == (550, True), line
        assert client.retrieve_over("RETR file", client.ticket(DOWN)) == CONTENT
    assert [entry.name for entry in root.iterdir()] == ["file"]


def test_a_read_only_server_stays_so(root: Path) -> None:
    with (
        secure_server(root, writable=False) as (server, secure),
        token_of(secure),
        SecureClient(server.port) as client,
    ):
        assert client.do("DELE file").code == 550


def test_a_token_for_a_folder(serving: tuple[Server, TokenServing], root: Path) -> None:
    server, secure = serving
    (root / "sub").mkdir()
    (root / "sub" / "mine").write_bytes(b"abc")
    (root / "sub" / "out").symlink_to("../file")
    with token_of(secure, folder="/sub"), SecureClient(server.port) as client:
        assert client.do("SIZE mine").text == "3"
        for name in ("file", "../file", "/../file", "/sub/mine", "out"):
            assert client.do(f"SIZE {name}").code == 550, name
        assert client.do("DELE mine").code == 250
    assert not (root / "sub" / "mine").exists()


@pytest.mark.parametrize("folder", ["/missing", "/file", "/link"])
def test_a_folder_that_is_none(serving: tuple[Server, TokenServing], root: Path, folder: str) -> None:
    server, secure = serving
    (root / "link").symlink_to("/etc")
    with token_of(secure, folder=folder), SecureClient(server.port, login=False) as client:
        from mpx.endpoints.ftp.token import token_for
        from mpx.endpoints.ftp.token_security import token_refused
        from mpx.location import parse_location

        client.do("USER token")
        refusal = client.do(f"PASS {token_for(parse_location('mpx://h/')).secret}")
        assert refusal.code == 530
        assert "the folder that it is for" in str(token_refused(refusal, "h"))


def test_a_revoked_token_ends_its_sessions(serving: tuple[Server, TokenServing]) -> None:
    server, secure = serving
    with token_of(secure) as grant, SecureClient(server.port) as client:
        assert client.do("WHOAMI").text == grant.id
        secure.tokens.revoke(grant.id)
        for _ in range(1000):
            if client.do("NOOP").code == 421:
                return
            threading.Event().wait(0.01)
        pytest.fail("it went on")


def test_so_many_sessions_of_one_token(root: Path) -> None:
    limits = Limits(room=Room(of_token=2))
    with (
        secure_server(root, limits=limits) as (server, secure),
        token_of(secure),
        SecureClient(server.port),
        SecureClient(server.port),
    ):
        with pytest.raises(AssertionError):
            SecureClient(server.port)
        with token_of(secure), SecureClient(server.port):
            pass  # another one's


def test_what_is_logged(
    serving: tuple[Server, TokenServing], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, secure = serving
    caplog.set_level(logging.INFO)
    with token_of(secure) as grant, SecureClient(server.port) as client:
        client.retrieve_over("RETR file", client.ticket(DOWN))
        client.do("DELE nothing\udcff")
        client.do("MKD \x1b[2J")
        client.do("CWD \x1b[2J")
        client.do("MKD below")
    events = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert [(event["event"], event.get("reply")) for event in events] == [
        ("login", None),
        ("RETR", 226),
        ("DELE", 550),
        ("MKD", 257),
        ("MKD", 257),
    ]
    assert [event.get("in") for event in events[-2:]] == [None, "/\x1b[2J"]
    assert caplog.text.count("[2J") >= 3 and "\x1b" not in caplog.text
    assert {event["token"] for event in events} == {grant.id}
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o600


def test_the_audit_log_can_be_moved(serving: tuple[Server, TokenServing], tmp_path: Path) -> None:
    _, secure = serving
    secure.access.audit.log("before", "a", "b")
    (tmp_path / "audit").rename(tmp_path / "old")
    secure.reload()
    secure.access.audit.log("after", "a", "b")
    assert '"before"' in (tmp_path / "old").read_text()
    assert '"after"' in (tmp_path / "audit").read_text()


def test_a_transfer_whose_client_leaves_is_logged(
    serving: tuple[Server, TokenServing], root: Path, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    server, secure = serving
    with (root / "big").open("wb") as file:
        file.truncate(1 << 30)
    with token_of(secure), SecureClient(server.port) as client:
        ticket = client.ticket(DOWN)
        with client.dial(ticket.opening(DOWN, 0, 0.0)) as data:
            assert client.do("RETR big").code == 150
            data.recv(1)
            client.sock.close()
            eventually(lambda: '"RETR"' in (tmp_path / "audit").read_text())


@pytest.mark.parametrize("how", ["leaves", "ends it"])
def test_what_was_sent_before_its_turn_is_logged(
    serving: tuple[Server, TokenServing],
    root: Path,
    tmp_path: Path,
    eventually: Callable[..., None],
    how: str,
) -> None:
    """A client may have all of a file before its command is done, and see to it that this never comes."""
    server, secure = serving
    (root / "big").write_bytes(random_bytes(1 << 20) * 48)
    with token_of(secure), SecureClient(server.port) as client:
        for line in ("MODE E", "OPTS RETR Parallelism=2,2,2;"):
            assert client.do(line).code == 200
        ticket = client.ticket(DOWN)
        client.send("RETR big", "RETR file", "ERET P 0 10 file")
        dialed = [client.dial(ticket.opening(DOWN, number, 0.0)) for number in range(2)]
        fast = [read_blocks(dialed[0])[0] for _ in range(3)]
        assert b"".join(data for _, data in fast[1]) == CONTENT
        if how == "ends it":
            client.send("ABOR")
            assert [client.reply().code for _ in range(5)] == [150, 426, 425, 425, 226]
        client.sock.close()
        eventually(lambda: '"big"' in (tmp_path / "audit").read_text())
        events = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    sent = [(event["argument"], event["reply"]) for event in events if event["event"] in ("RETR", "ERET")]
    for expected in (("big", 0 if how == "leaves" else 426), ("file", 0), ("P 0 10 file", 0)):
        assert expected in sent


def test_a_revoked_token_ends_a_transfer(serving: tuple[Server, TokenServing], root: Path) -> None:
    server, secure = serving
    with (root / "big").open("wb") as file:
        file.truncate(1 << 40)
    with token_of(secure) as grant, SecureClient(server.port) as client:
        ticket = client.ticket(DOWN)
        with client.dial(ticket.opening(DOWN, 0, 0.0)) as data:
            assert client.do("RETR big").code == 150
            secure.tokens.revoke(grant.id)
            with contextlib.suppress(OSError):
                while data.recv(1 << 20):
                    pass
            assert client.reply().code == 421


def test_a_revoked_token_ends_a_checksum(serving: tuple[Server, TokenServing], root: Path) -> None:
    server, secure = serving
    with (root / "big").open("wb") as file:
        file.truncate(1 << 40)
    with token_of(secure) as grant, SecureClient(server.port) as client:
        assert client.do("NOOP").code == 200  # so its token is looked at again in a second, not sooner
        client.send("CKSM ADLER32 0 -1 big")
        secure.tokens.revoke(grant.id)
        assert client.reply().code == 421


def test_tokens_that_cannot_be_read_let_nobody_in(serving: tuple[Server, TokenServing]) -> None:
    server, secure = serving
    with token_of(secure), SecureClient(server.port, login=False) as client:
        (Path(os.environ["MPX_STATE_DIR"]) / "serve-tokens.json").write_text("{")
        client.do("USER token")
        assert client.do("PASS x").code == 421
        (Path(os.environ["MPX_STATE_DIR"]) / "serve-tokens.json").write_text("[]")


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write the audit log"):
        TokenServing(audit=tmp_path / "missing" / "audit")
