"""Who connects and does not speak as the port does, or not at all; and that answers are not held back."""

import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from certificates import make_certificates
from mpx_command import mpx, refused
from mpx_controller.api.guard import CONNECTIONS
from mpx_controller.config import Api
from mpx_controller.server import listening
from mpx_controller.tls_listener import HANDSHAKE_S
from running_controller import Running, controller

TOKEN = "0123456789abcdef0123"
HTTP = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    """A controller with TLS at both ports, and the folder of its certificates and its log."""
    folder = tmp_path_factory.mktemp("secured")
    make_certificates(folder)
    (folder / "token").write_text(TOKEN)
    config = f"""
[openflow]
certificate = "{folder}/controller.pem"
key = "{folder}/controller.key"
authority = "{folder}/authority.pem"
[api]
certificate = "{folder}/controller.pem"
key = "{folder}/controller.key"
tokens = [{{owner = "dtn1", file = "{folder}/token"}}]
"""
    with controller(folder / "state.json", 0, config, errors=folder / "log") as running:
        yield running, folder
    assert "Traceback" not in (folder / "log").read_text()


def api(running: Running) -> tuple[str, int]:
    return "127.0.0.1", int(running.urls["rest"].rsplit(":", 1)[1])


def answered(where: tuple[str, int], data: bytes) -> bytes:
    """Return all that is answered until the other side ends the connection."""
    with socket.create_connection(where, 4 * HANDSHAKE_S) as connection:
        connection.sendall(data)
        answer = b""
        while more := connection.recv(65536):
            answer += more
        return answer


def healthz(running: Running, folder: Path) -> bytes:
    trusted = ssl.create_default_context(cafile=folder / "authority.pem")
    with (
        socket.create_connection(api(running), 30) as connection,
        trusted.wrap_socket(connection, server_hostname="127.0.0.1") as secure,
    ):
        secure.sendall(HTTP)
        return secure.recv(65536)


def test_who_is_gone_before_its_answer_is_no_line_of_the_log(secured: tuple[Running, Path]) -> None:
    running, folder = secured
    log = (folder / "log").read_text()
    trusted = ssl.create_default_context(cafile=folder / "authority.pem")
    begun = (
        HTTP.replace(b"GET", b"POST")[:-2] + b"Expect: 100-continue\r\nContent-Length: 60\r\n\r\n" + b"x" * 10
    )
    for _ in range(100):  # asyncio has a line for every other of these
        with (
            socket.create_connection(api(running), 30) as connection,
            trusted.wrap_socket(connection, server_hostname="127.0.0.1") as secure,
        ):
            secure.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # ends with a reset
            secure.sendall(20 * begun)
    assert healthz(running, folder).startswith(b"HTTP/1.1 200")
    assert (folder / "log").read_text() == log


@pytest.mark.parametrize("data", [HTTP, HTTP[:1], b"\0", b"POST /path-sets HTTP/1.1\r\n" + b"x" * 1_000_000])
def test_http_at_a_port_of_tls_is_told_to_use_https(secured: tuple[Running, Path], data: bytes) -> None:
    running, folder = secured
    answer = answered(api(running), data)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n") and b"https://" in body
    assert f"Content-Length: {len(body)}".encode() in head
    assert healthz(running, folder).startswith(b"HTTP/1.1 200")


def test_who_asks_with_http_is_shown_that(secured: tuple[Running, Path]) -> None:
    url = secured[0].urls["rest"].replace("https:", "http:")
    refused(mpx("controller", "status", "--url", url), 1, "refuses: this port speaks TLS: ask it by https://")


def test_a_switch_without_tls_is_one_line(
    secured: tuple[Running, Path], eventually: Callable[..., None]
) -> None:
    running, folder = secured
    assert answered(("127.0.0.1", running.port), bytes([4, 0, 0, 8, 0, 0, 0, 1])) == b""
    line = "127.0.0.1 does not speak TLS, as this port does: have it connect to ssl:"
    eventually(lambda: (folder / "log").read_text().count(line) == 1)


def test_handshakes_that_do_not_end_are_ended(secured: tuple[Running, Path]) -> None:
    """All wait at the same time, at both ports: those that say nothing, and those that begin a handshake."""
    running, folder = secured
    with contextlib.ExitStack() as held:
        mine = []
        for where in (api(running), ("127.0.0.1", running.port)):
            for begins in (b"", b"\x16\x03\x01\x02\x00\x01"):
                mine.append(held.enter_context(socket.create_connection(where, 4 * HANDSHAKE_S)))
                mine[-1].sendall(begins)
        assert [connection.recv(1) for connection in mine] == [b""] * 4
    assert healthz(running, folder).startswith(b"HTTP/1.1 200")


def test_handshakes_of_one_address_are_bounded(secured: tuple[Running, Path]) -> None:
    running, folder = secured
    with contextlib.ExitStack() as held:
        mine = [
            held.enter_context(socket.create_connection(api(running), 30, ("127.0.0.2", 0)))
            for _ in range(CONNECTIONS + 10)
        ]
        for connection in mine[CONNECTIONS:]:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        assert healthz(running, folder).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_answers_are_not_held_back(address: str) -> None:
    """Head and body of an answer are two writes: with Nagle's algorithm the second waits for 40 ms."""
    with (
        listening("callers", Api(address=address, port=0)) as come,
        socket.create_connection(come.getsockname()[:2], 30),
        come.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
