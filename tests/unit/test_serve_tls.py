"""`mpx serve` inside TLS: handshakes that fail or never end, its key and its certificate."""

import contextlib
import socket
import struct
from pathlib import Path

import pytest
from raw_client import CONTENT
from secure_client import SecureClient, inside_tls, secure_server, token_of

from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, Direction
from mpx.errors import UsageError
from mpx.net.tls import TlsSocket
from mpx.serve import Server
from mpx.serve.token_serving import TokenServing


def test_who_never_finishes_a_handshake_is_in_nobodys_way(root: Path) -> None:
    with secure_server(root) as (server, secure), token_of(secure):
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        with SecureClient(server.port) as client:
            assert client.retrieve_over("RETR file", client.ticket(Direction.DOWN)) == CONTENT
        for sock in silent:
            sock.close()


@pytest.mark.parametrize(
    "said", [b"USER anonymous\r\n", b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x16\x03\x01\xff\xff"]
)
def test_who_does_not_speak_tls_is_dropped(serving: tuple[Server, TokenServing], said: bytes) -> None:
    server, _ = serving
    gone = contextlib.suppress(OSError)  # it may be so at once
    with socket.create_connection(("127.0.0.1", server.port), 60) as sock, gone:
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1000):  # an alert at most
            pass


def test_who_resets_at_once_keeps_nobody_out(serving: tuple[Server, TokenServing]) -> None:
    server, secure = serving
    at_once = struct.pack("ii", 1, 0)
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    with token_of(secure), SecureClient(server.port) as client:
        assert client.do("SIZE file").code == 213


def test_a_session_that_is_dismissed_as_it_ends_keeps_nobody_out(
    serving: tuple[Server, TokenServing],
) -> None:
    server, secure = serving
    with token_of(secure), SecureClient(server.port, login=False) as ended:
        ended.do("QUIT")
        for session in list(server._sessions):
            session.control.close()
            session.give_way()  # as another thread may, at that moment
        with SecureClient(server.port) as client:
            assert client.do("SIZE file").code == 213


def test_a_client_whose_session_cannot_begin_keeps_nobody_out(
    serving: tuple[Server, TokenServing], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, secure = serving
    begin = secure._handshakes._begin
    failing = [RuntimeError("once"), ValueError("twice")]

    def begin_or_fail(connection: TlsSocket) -> None:
        if failing:
            connection.close()
            raise failing.pop()
        begin(connection)

    monkeypatch.setattr(secure._handshakes, "_begin", begin_or_fail)
    for _ in range(2):
        with inside_tls(server.port, CONTROL_PROTOCOL) as connection, contextlib.suppress(OSError):
            connection.recv(1)
    with token_of(secure), SecureClient(server.port) as client:
        assert client.do("SIZE file").code == 213


def test_a_connection_of_neither_kind_is_a_control_connection(serving: tuple[Server, TokenServing]) -> None:
    server, _ = serving
    with inside_tls(server.port, "h2") as connection:  # OpenSSL goes on where nothing is shared
        assert connection.selected_alpn_protocol() != CONTROL_PROTOCOL
        assert connection.recv(3) in (b"", b"220")


# --- keys and certificates -------------------------------------------------------------------------


def test_the_key_stays(root: Path) -> None:
    with secure_server(root) as (_, secure):
        name = secure.key_name
    with secure_server(root) as (_, secure):
        assert secure.key_name == name


def test_what_is_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate\n")
    (tmp_path / "bad").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for name in ("text", "bad", "missing"):
        with pytest.raises(UsageError, match="certificate"):
            TokenServing(certificate=tmp_path / name)


def test_insecure_is_not_inside_tls(root: Path) -> None:
    secure = TokenServing()
    with pytest.raises(UsageError, match="inside TLS"):
        Server(root, secure=secure, insecure=True)
    secure.close()
