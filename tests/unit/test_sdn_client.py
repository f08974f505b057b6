"""A controller that is slow, talks nonsense or too much costs a bounded time and an error that says so."""

import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from mpx import sdn_client
from mpx.errors import ControllerError, UsageError
from mpx.multipath.controller import Forgotten, Refusal
from mpx.sdn_client import ControllerClient

PATH = {"streams": 2, "rate_bps": 1e8, "rtt_s": 0.01, "group": 0, "up": True}
SET = {"id": 7, "lease_s": 60.0, "paths": [PATH]}


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


def asked_of(connection: socket.socket) -> bytes:
    """Return a whole question."""
    told = b""
    while b"\r\n\r\n" not in told:
        told += connection.recv(1 << 16)
    head, _, body = told.partition(b"\r\n\r\n")
    sizes = [
        line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
    ]
    while sizes and len(body) < int(sizes[0]):
        more = connection.recv(1 << 16)
        told, body = told + more, body + more
    return told


@contextlib.contextmanager
def controller(say: Callable[[socket.socket, bytes], None]) -> Iterator[ControllerClient]:
    """Something that listens; `say` is given each connection and what was asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, contextlib.suppress(OSError):
                        say(connection, asked_of(connection))

        threading.Thread(target=serve, daemon=True).start()
        yield ControllerClient(f"http://127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)


def test_a_question_and_its_answer() -> None:
    asked: list[bytes] = []

    def say(connection: socket.socket, told: bytes) -> None:
        asked.append(told)
        connection.sendall(answer(json.dumps(SET).encode(), "201 Created"))

    with controller(say) as client:
        assert client.assign("10.0.0.1", "10.0.0.2", 4).number == 7
    head, _, body = asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /path-sets HTTP/1.1")
    assert json.loads(body) == {"source": "10.0.0.1", "sink": "10.0.0.2", "paths": 4}


def test_a_token_is_not_sent_where_others_can_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sdn_client.TOKEN_VARIABLE, "of-somebody")
    ControllerClient("https://192.0.2.1:6680")
    ControllerClient("http://localhost:6680")
    with pytest.raises(UsageError, match="read on the way"):
        ControllerClient("http://192.0.2.1:6680")


@pytest.mark.parametrize("url", ["http://me:secret@127.0.0.1:6680", "https://secret@example.org"])
def test_a_password_in_the_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match=sdn_client.TOKEN_VARIABLE) as error:
        ControllerClient(url)
    assert "secret" not in str(error.value)


def test_the_url_for_xml_rpc_is_told_apart() -> None:
    with pytest.raises(UsageError, match=r"the REST URL, http://127\.0\.0\.1:6680$"):
        ControllerClient("http://127.0.0.1:6680/RPC2")


@pytest.mark.parametrize("name", ["lease_s", "rtt_s", "rate_bps"])
def test_a_number_beyond_all_is_no_path_set(name: str) -> None:
    told = json.loads(json.dumps(SET))
    (told if name in told else told["paths"][0])[name] = 10**400
    with (
        controller(lambda connection, _: connection.sendall(answer(json.dumps(told).encode()))) as client,
        pytest.raises(ControllerError, match="invalid path set"),
    ):
        client.assign("10.0.0.1", "10.0.0.2", 4)


def test_finding_the_name_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdn_client, "ANSWER_S", 0.1)
    found = threading.Event()

    def find(*_: object, **__: object) -> None:
        found.wait(60)
        raise OSError("no name")

    monkeypatch.setattr(socket, "getaddrinfo", find)
    with pytest.raises(ControllerError, match="does not answer within"):
        ControllerClient("http://somewhere.invalid:6680").renew(7)
    found.set()


def test_a_token_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sdn_client.TOKEN_VARIABLE, "of-somebody")
    asked: list[bytes] = []

    def say(connection: socket.socket, told: bytes) -> None:
        asked.append(told)
        connection.sendall(answer(b"", "204 No Content"))

    with controller(say) as client:
        client.release(7)
    assert b"Authorization: Bearer of-somebody\r\n" in asked[0]


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            answer(b'{"detail": "no host has\\nthe address"}', "404 Not Found"),
            Refusal,
            "no host has the address",
        ),
        (answer(b"oh no", "500 Internal Server Error"), Refusal, "500"),
        (answer(b"{"), ControllerError, "not JSON"),
        (answer(b"[" * 100_000), ControllerError, "not JSON"),
        (answer(b'{"id": 7}'), ControllerError, "invalid path set"),
        (answer(b" " * (2 << 20)), ControllerError, "more than"),
        (b"220 I am an FTP server\r\n", ControllerError, "request to the controller"),
        (b"", ControllerError, "request to the controller"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000, ControllerError, "request to the controller"),
    ],
)
def test_what_makes_no_sense_is_an_error(said: bytes, kind: type[ControllerError], words: str) -> None:
    with controller(lambda connection, _: connection.sendall(said)) as client:
        with pytest.raises(kind, match=words) as error:
            client.assign("10.0.0.1", "10.0.0.2", 4)
        assert error.value.exit_code == 11


def test_a_set_that_is_not_known_any_more_is_told_apart() -> None:
    refusing = answer(b'{"detail": "there is no path set 7"}', "404 Not Found")
    with (
        controller(lambda connection, _: connection.sendall(refusing)) as client,
        pytest.raises(Forgotten),
    ):
        client.renew(7)


@pytest.mark.parametrize(
    "first", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"]
)
def test_a_trickle_ends(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdn_client, "ANSWER_S", 0.3)
    ended = threading.Event()

    def say(connection: socket.socket, _: bytes) -> None:
        connection.sendall(first)
        while not ended.wait(0.05):
            connection.sendall(b"a")

    with controller(say) as client:
        with pytest.raises(ControllerError, match="does not answer within"):
            client.assign("10.0.0.1", "10.0.0.2", 4)
        ended.set()


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ControllerError, match=r"request to the controller .* failed"):
        ControllerClient(f"http://127.0.0.1:{port}").renew(7)


@pytest.mark.parametrize(
    "url", ["", "10.0.0.1:6680", "ftp://h/", "http://", "http://h:99999", "http://h/?a=b"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="controller"):
        ControllerClient(url)


def test_neither_a_proxy_nor_a_redirect_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with (
        controller(lambda connection, _: connection.sendall(moved)) as client,
        pytest.raises(Refusal, match="HTTP status 302"),
    ):
        client.renew(7)


def test_a_redirect_without_end_is_not_taken_in() -> None:
    most, taken, ended = 64 << 20, [0], threading.Event()

    def say(connection: socket.socket, _: bytes) -> None:
        try:
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n")
            while taken[0] < most:
                taken[0] += connection.send(bytes(1 << 20))
        finally:
            ended.set()

    with controller(say) as client:
        with pytest.raises(ControllerError, match="answers more than"):
            client.renew(7)
        assert ended.wait(60) and taken[0] < most


def test_a_packed_answer_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * (64 << 20))
    said = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
    said += b"Content-Length: %d\r\n\r\n%s" % (len(packed), packed)
    with (
        controller(lambda connection, _: connection.sendall(said)) as client,
        pytest.raises(ControllerError, match="answers what is not JSON"),
    ):
        client.renew(7)


def test_who_stops_leaves_no_thread_that_waits(eventually: Callable[..., None]) -> None:
    """The connection is cut: a controller that trickles would be read for ever."""
    asked, ended = threading.Event(), threading.Event()

    def say(connection: socket.socket, _: bytes) -> None:
        asked.set()
        while not ended.wait(0.01):
            connection.sendall(b"a")

    def ask(client: ControllerClient) -> None:
        with contextlib.suppress(ControllerError):
            client.renew(7)

    with controller(say) as client:
        asking = threading.Thread(target=ask, args=(client,))
        asking.start()
        asked.wait()
        client.stop()
        asking.join()
        eventually(lambda: not any(each.name == "mpx-controller" for each in threading.enumerate()))
        ended.set()
