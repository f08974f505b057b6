"""`mpx serve` that sends to another server: whom it connects to, what leaves, and what others learn of it."""

import contextlib
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_client import CONTENT, RawClient
from secure_client import SecureClient, secure_server, token_of

from mpx.endpoints.ftp.extensions.dialing import Direction, new_ticket
from mpx.endpoints.ftp.extensions.stdio import ServeRequest
from mpx.endpoints.ftp.extensions.third_party import Target, encode_target, parse_target
from mpx.endpoints.ftp.framing import BlockHeader, end_of_data
from mpx.endpoints.ftp.ssh.certificates import CertificateMaker
from mpx.net import tls
from mpx.net.self_signed import self_signed
from mpx.serve import Server, other_server, stdio_serving
from mpx.serve.other_server import OtherServer
from mpx.serve.replies import RefusalReply
from mpx.serve.session import Limits
from mpx.serve.token_serving import TokenServing

UP, DOWN = Direction.UP, Direction.DOWN


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not come about is answered soon."""
    monkeypatch.setattr(other_server, "DIAL_S", 0.5)


@pytest.fixture
def sender(serving: tuple[Server, TokenServing]) -> Iterator[SecureClient]:
    server, secure = serving
    with token_of(secure), SecureClient(server.port) as client:
        yield client


@pytest.fixture
def receiver(serving: tuple[Server, TokenServing], sender: SecureClient, tmp_path: Path):
    """A session with another server, which has the same key and takes the same token."""
    (tmp_path / "to").mkdir()
    with secure_server(tmp_path / "to") as (server, _), SecureClient(server.port) as client:
        yield client


def target_of(receiver: SecureClient, secure: TokenServing) -> Target:
    return Target((("127.0.0.1", receiver.port),), secure.key_name, receiver.ticket(UP))


def name(sender: SecureClient, target: Target) -> int:
    return sender.do(f"TARGET {encode_target(target)}").code


def carry(sender: SecureClient, receiver: SecureClient, file: str) -> None:
    """Have a file go from one to the other."""
    receiver.send(f"STOR {file}")
    sender.send(f"RETR {file}")
    assert receiver.reply().code in (125, 150)
    assert sender.reply().code in (125, 150)
    assert (receiver.reply().code, sender.reply().code) == (226, 226)


def test_connections_are_kept_and_their_number_changes(
    serving: tuple[Server, TokenServing],
    sender: SecureClient,
    receiver: SecureClient,
    root: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    (root / "empty").touch()
    target = target_of(receiver, serving[1])
    for client in (sender, receiver):
        assert client.do("MODE E").code == 200
    assert name(sender, target) == 200
    openings: list[int] = []
    for streams in (3, 3, 5, 5, 1, 2):
        if openings[-1:] != [streams]:
            assert sender.do(f"OPTS RETR Parallelism={streams},{streams},{streams};").code == 200
        openings.append(streams)
        for file in ("file", "empty"):
            carry(sender, receiver, file)
        assert (tmp_path / "to/file").read_bytes() == CONTENT
        (tmp_path / "to/file").unlink()
    by_thread: dict[int | None, str] = {}
    used = []
    for record in caplog.records:
        if ": RETR" in (said := record.getMessage()):
            used.append(int(by_thread[record.thread].partition(" over ")[2].split()[0]))
        by_thread[record.thread] = said
    assert used == [count for count in openings for _ in range(2)]
    # And nothing secret is in any log.
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    of_target = [line for line in lines if line["event"] == "TARGET"]
    assert [(line["to"], line["reply"]) for line in of_target] == [(f"127.0.0.1:{receiver.port}", 200)]
    assert all(line["to"] == of_target[0]["to"] for line in lines if line["event"] == "RETR")
    for secret in (target.ticket.key.hex(), target.ticket.id.hex()):
        assert secret not in caplog.text + json.dumps(lines) + repr(target)


def test_a_connection_for_a_later_transfer_waits_for_it(receiver: SecureClient, tmp_path: Path) -> None:
    """Else what it brings would be written into the file before, of which data may still be on their way."""
    ticket = receiver.ticket(UP)
    assert receiver.do("MODE E").code == 200
    with (
        receiver.dial(ticket.opening(UP, 0, 0.0, 1)) as late,
        receiver.dial(ticket.opening(UP, 1, 0.0)) as first,
    ):
        for connection, content in ((late, b"the second"), (first, b"the first")):
            header = BlockHeader(0, len(content), 0).pack()
            connection.sendall(header + content + end_of_data(1).pack())
        for file in ("one", "two"):
            receiver.send(f"STOR {file}")
            assert receiver.reply().code in (125, 150)
            if file == "two":  # the one that was kept is not part of it
                with contextlib.suppress(OSError):  # the server may have closed it meanwhile
                    first.shutdown(socket.SHUT_WR)
            assert receiver.reply().code == 226
    found = [(tmp_path / "to" / file).read_bytes() for file in ("one", "two")]
    assert found == [b"the first", b"the second"]


@pytest.mark.parametrize("there", ["another key", "nobody", "in the clear", "silent"])
def test_what_does_not_come_about_is_answered_alike(
    serving: tuple[Server, TokenServing],
    sender: SecureClient,
    receiver: SecureClient,
    caplog: pytest.LogCaptureFixture,
    soon: None,
    there: str,
) -> None:
    """Whatever answers there gets nothing of the file or the ticket, and the client learns nothing of it."""
    caplog.set_level(logging.INFO)
    target, heard = target_of(receiver, serving[1]), bytearray()
    with socket.create_server(("127.0.0.1", 0)) as other:
        if there == "another key":
            target = replace(target, key="k" * 43)
        else:
            target = replace(target, addresses=(other.getsockname(),))
        if there == "nobody":
            other.close()
        listening = threading.Thread(target=_hear, args=(other, heard, there == "in the clear"))
        if there in ("in the clear", "silent"):
            listening.start()
        assert name(sender, target) == 200
        began_s = time.monotonic()
        reply = sender.do("RETR file")
        assert time.monotonic() - began_s >= other_server.DIAL_S
    assert (reply.code, reply.lines[-2].strip()) == (425, f"GridFTP-Error-String: {OtherServer.missing}")
    if listening.ident:
        listening.join()
        assert heard[:1] == b"\x16"  # the beginning of a handshake, ...
    for secret in (CONTENT[:100], target.ticket.id, target.ticket.key):
        assert secret not in heard  # ... and no more
    assert target.ticket.key.hex() not in caplog.text
    assert sender.do("RETR file").code == 425  # nor is it tried again


def _hear(listener: socket.socket, heard: bytearray, answers: bool) -> None:
    connection, _ = listener.accept()
    with connection:
        heard += connection.recv(65536)
        if answers:
            connection.sendall(b"220 ready\r\n")
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(65536):
                heard += data


@pytest.mark.parametrize("wrong", ["ticket", "direction", "used"])
def test_the_receiver_takes_each_opening_once(
    serving: tuple[Server, TokenServing],
    sender: SecureClient,
    receiver: SecureClient,
    tmp_path: Path,
    wrong: str,
) -> None:
    target = target_of(receiver, serving[1])
    with contextlib.ExitStack() as stack:
        if wrong == "ticket":
            target = replace(target, ticket=new_ticket())
        elif wrong == "direction":
            target = replace(target, ticket=receiver.ticket(DOWN))
        else:
            stack.enter_context(receiver.dial(target.ticket.opening(UP, 0, 0.0)))
            assert receiver.do("NOOP").code == 200
        assert name(sender, target) == 200
        assert sender.do("MODE E").code == 200
        sender.send("RETR file")
        assert sender.reply().code in (150, 425, 426)
        assert list((tmp_path / "to").iterdir()) == []


def test_a_receiver_that_dies_is_told_of(
    serving: tuple[Server, TokenServing], sender: SecureClient, root: Path, tmp_path: Path
) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "to").mkdir()
    with secure_server(tmp_path / "to") as (server, _), SecureClient(server.port) as receiver:
        assert name(sender, target_of(receiver, serving[1])) == 200
        for client in (sender, receiver):
            assert client.do("MODE E").code == 200
        receiver.send("STOR large")
        assert sender.do("RETR large").code == 150
        assert receiver.reply().code == 150
    assert sender.reply().code == 426
    assert sender.do("NOOP").code == 200


@pytest.mark.parametrize(
    ("host", "client", "is_refused"),
    [
        ("127.0.0.1", "192.0.2.1", True),
        ("127.0.0.1", "10.0.0.1", True),
        ("169.254.169.254", "10.0.0.1", True),
        ("10.0.0.1", "8.8.8.8", True),
        ("::ffff:127.0.0.1", "10.0.0.1", True),
        ("fe80::1", "fd00::1", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("224.0.0.1", "10.0.0.1", True),
        ("8.8.8.8", "10.0.0.1", False),
        ("10.0.0.1", "10.0.0.2", False),
        ("127.0.0.1", "127.0.0.1", False),
    ],
)
def test_no_address_nearer_than_the_client(host: str, client: str, is_refused: bool) -> None:
    target = Target((("8.8.4.4", 443), (host, 2811)), "k" * 43, new_ticket())
    with pytest.raises(RefusalReply) if is_refused else contextlib.nullcontext():
        OtherServer(target, client)


def test_only_inside_tls_and_where_the_operator_lets_it(
    root: Path, serving: tuple[Server, TokenServing], tmp_path: Path
) -> None:
    line = f"TARGET {encode_target(Target((('127.0.0.1', 2811),), 'k' * 43, new_ticket()))}"
    with Server(root) as server, RawClient(server.port) as client:
        assert "MPX-TARGET" not in client.do("FEAT").text
        assert client.do(line).code == 504
    with (
        token_of(serving[1]),
        secure_server(root, limits=Limits(third_party=False)) as (server, _),
        SecureClient(server.port) as client,
    ):
        assert "MPX-TARGET" not in client.do("FEAT").text
        assert client.do(line).code == 504
    with SecureClient(serving[0].port, login=False) as client:
        assert client.do(line).code == 530


def test_targets_that_make_no_sense(sender: SecureClient) -> None:
    good = json.loads(encode_target(Target((("192.0.2.1", 2811),), "k" * 43, new_ticket())))
    places = [], [["192.0.2.1", 1]] * 5, [["host", 1]], [[2130706433, 1]], [["fe80::1%eth0", 1]], 3
    ports = [[["192.0.2.1", port]] for port in (0, -1, True, 65536, "1", None)]
    bad: list[dict[str, object]] = [
        *({"key": key} for key in ("", 7, None, "k" * 42, "k" * 42 + "!")),
        *({"ticket": ticket} for ticket in ([], ["00", "00"], None, [1, 2])),
        *({"pem": pem} for pem in (7, "hush", "\u00e9", "x" * 9000)),
        *({"addresses": each} for each in (*places, *ports)),
    ]
    for each in (json.dumps({**good, **change}) for change in bad):
        reply = sender.do(f"TARGET {each}")
        assert reply.code == 501, each
        assert "hush" not in reply.text
    for text in ("[]", "{}", "1e400", "[" * 5000, "x", '{"addresses":'):
        assert sender.do(f"TARGET {text}").code == 501, text
    assert sender.do("RETR file").code == 425


@given(
    st.lists(st.tuples(st.ip_addresses().map(str), st.integers(1, 65535)), min_size=1, max_size=4).map(tuple),
    st.text("abc_-9", min_size=43, max_size=43),
    st.text(st.characters(max_codepoint=126), max_size=3000),
)
def test_a_target_is_read_as_it_was_written(
    addresses: tuple[tuple[str, int], ...], key: str, pem: str
) -> None:
    target = Target(addresses, key, new_ticket(), pem)
    text = encode_target(target)
    assert parse_target(text) == target
    assert "\r" not in text and "\n" not in text and text.isascii()


@contextlib.contextmanager
def tls_pair(
    client: ssl.SSLContext, server: ssl.SSLContext
) -> Iterator[tuple[tls.TlsSocket, tls.TlsSocket | None]]:
    """Both ends of a connection after its handshake; None for a server that refuses the client."""
    ours, theirs = socket.socketpair()
    there = tls.wrapped(theirs, server, server=True)
    refused: list[OSError] = []

    def accept() -> None:
        try:
            tls.finish_handshake(there, 10.0)
        except OSError as error:
            refused.append(error)

    accepting = threading.Thread(target=accept)
    accepting.start()
    here = tls.secured(ours, client, "the test", 10.0)
    accepting.join()
    with here, there:
        yield here, None if refused else there


def test_a_server_over_ssh_takes_a_guest_who_cannot_pose_as_it() -> None:
    maker = CertificateMaker()
    maker.start()
    made = maker.made()
    request = ServeRequest(made.own, "secret", guest=made.guest_certificate)
    shown = []
    for pem in (
        made.own,
        made.guest,
        "".join(map(bytes.decode, self_signed("mpx third party", timedelta(1)))),
    ):
        client = tls.context(server=False, protocols=["mpx-data"])
        tls.show_key(client, pem)
        with tls_pair(client, stdio_serving.context_for(request)) as (ours, theirs):
            if theirs is not None:
                assert tls.peer_key_name(ours) == made.key_name
            shown.append(theirs is not None)
    assert shown == [True, True, False]
    assert "PRIVATE" not in made.guest_certificate + repr(made) + repr(request)
