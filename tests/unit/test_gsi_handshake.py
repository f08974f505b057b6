"""The handshake of GSI with servers that do not do it as they should: one clear error, soon, and no harm."""

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest

from mpx.endpoints.ftp.gsi.control import GsiControl
from mpx.endpoints.ftp.gsi.handshake import GsiHandshake
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, SessionEnded, TransferTimeout
from mpx.net.self_signed import self_signed
from mpx.net.tls import load_pem, show_key

Server = Callable[[socket.socket, Iterator[bytes]], None]


@pytest.fixture(scope="module")
def pem() -> str:
    from datetime import timedelta

    certificate, key = self_signed("server", timedelta(days=1))
    return (certificate + key).decode()


def client(pem: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    load_pem(context, pem)
    return context


def against(
    server: Server,
    pem: str,
    *,
    timeout_s: float = 20.0,
    delegate: Callable[[bytes], bytes] | None = None,
    lines: int = 1,
) -> list[bytes] | MpxError:
    """Log in at a server; return so many lines of its control channel, or why that failed."""
    near, far = socket.socketpair()

    def serve() -> None:
        try:
            with far, far.makefile("rb") as said:
                server(far, said)
        except OSError:
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with near:
            done = GsiHandshake(
                near, client(pem), "the server", "host", "here", lambda _: None, timeout_s, lambda: False
            )
            done.begin(together=True)
            done.finish(delegate)
            with GsiControl(near, done, "the server") as control:
                control.settimeout(timeout_s)
                got = b""
                while got.count(b"\n") < lines:
                    if not (more := control.recv(100)):
                        break
                    got += more
                return got.splitlines()
    except MpxError as error:
        return error
    finally:
        thread.join()


class Sound:
    """Does the handshake as a server should, up to where `until` says; then the test goes on."""

    def __init__(self, pem: str, far: socket.socket, said: Iterator[bytes]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0
        show_key(context, pem)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.far, self.said = far, said

    def say(self, text: bytes) -> None:
        self.far.sendall(text + b"\r\n")

    def hear(self) -> None:
        self.incoming.write(base64.b64decode(next(self.said).split(b" ", 1)[1]))

    def adat(self, content: bytes = b"") -> None:
        if content:
            self.tls.write(content)
        self.say(b"335 ADAT=" + base64.b64encode(self.outgoing.read()))

    def reply(self, content: bytes) -> None:
        self.tls.write(content)
        self.say(b"632 " + base64.b64encode(self.outgoing.read()))

    def authenticate(self) -> None:
        self.say(b"220 ready")
        assert next(self.said) == b"AUTH GSSAPI\r\n"
        self.say(b"334 go on")
        while True:
            self.hear()
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.adat()
        self.adat(b"\0")
        self.hear()
        assert self.tls.read(10) in (b"0", b"D")


def test_a_sound_server(pem: str) -> None:
    def server(far: socket.socket, said: Iterator[bytes]) -> None:
        sound = Sound(pem, far, said)
        sound.authenticate()
        sound.say(b"235 in")
        sound.reply(b"230 hello\r\n\0")

    assert against(server, pem, lines=2) == [b"220 ready", b"230 hello"]


@pytest.mark.parametrize(
    ("greeting", "error"),
    [
        (b"", ConnectionLost),
        (b"SSH-2.0-OpenSSH\r\n", ConnectionLost),
        (b"421 full\r\n", SessionEnded),
        (b"220 ready\r\n500 AUTH not understood\r\n", AuthenticationError),
        (b"220 ready\r\n334 go on\r\n535 no\r\n", AuthenticationError),
        (b"220 ready\r\n334 go on\r\n235 welcome, whoever you are\r\n", AuthenticationError),
        (b"220 ready\r\n334 go on\r\n335 ADAT=\r\n", ConnectionLost),
        (b"220 ready\r\n334 go on\r\n335 ADAT=!!!!\r\n", ConnectionLost),
        (b"220 ready\r\n334 go on\r\n335 ADAT=AAAAAAAAAAAA\r\n", AuthenticationError),
        (b"220-" + b"x" * (2 << 20), ConnectionLost),
        ((b"120 " + b"wait " * 200 + b"\r\n") * 2000, ConnectionLost),
    ],
    ids=lambda each: each[:40] if isinstance(each, bytes) else "",
)
def test_servers_that_end_it(greeting: bytes, error: type[MpxError], pem: str) -> None:
    got = against(lambda far, _: far.sendall(greeting), pem)
    assert type(got) is error, got


def test_a_server_that_goes_on_without_end(pem: str) -> None:
    """Each answer is a record that TLS takes and that brings nothing forward."""
    change_cipher = base64.b64encode(b"\x14\x03\x03\x00\x01\x01")

    def server(far: socket.socket, said: Iterator[bytes]) -> None:
        far.sendall(b"220 ready\r\n334 go on\r\n")
        while True:
            far.sendall(b"335 ADAT=" + change_cipher + b"\r\n")

    assert isinstance(
        against(server, pem, timeout_s=1.0), (AuthenticationError, ConnectionLost, TransferTimeout)
    )


def test_a_server_that_falls_silent(pem: str) -> None:
    def server(far: socket.socket, said: Iterator[bytes]) -> None:
        far.sendall(b"220 ready\r\n334 go on\r\n")
        for _ in said:
            pass

    assert isinstance(against(server, pem, timeout_s=0.2), TransferTimeout)


@pytest.mark.parametrize("request_", [b"no request", b"\x30\x00", b"\0\0" + b"x" * 3000])
def test_what_a_server_sends_in_place_of_a_request_for_a_proxy(pem: str, request_: bytes) -> None:
    asked: list[bytes] = []

    def server(far: socket.socket, said: Iterator[bytes]) -> None:
        sound = Sound(pem, far, said)
        sound.authenticate()
        sound.adat(request_)
        next(said, None)
        sound.say(b"535 thank you")

    def delegate(request: bytes) -> bytes:
        asked.append(request)
        return b"a certificate"

    assert isinstance(against(server, pem, delegate=delegate), AuthenticationError)
    assert asked == [request_.lstrip(b"\0")]


@pytest.mark.parametrize(
    "line", [b"230 in the clear", b"633 AAAA", b"632 ", b"632 AAAA", b"632 " + b"A" * (2 << 20), b"\0"]
)
def test_replies_that_are_not_protected(pem: str, line: bytes) -> None:
    def server(far: socket.socket, said: Iterator[bytes]) -> None:
        sound = Sound(pem, far, said)
        sound.authenticate()
        sound.say(b"235 in")
        sound.reply(b"230 hello\r\n")
        sound.say(line)

    got = against(server, pem, lines=9)
    if line in (b"632 ", b"632 AAAA"):  # no whole record: the end of the connection follows
        assert got == [b"220 ready", b"230 hello"]
    else:
        assert isinstance(got, ConnectionLost), got
