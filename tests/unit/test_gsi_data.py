"""Data connections with GSI: both ends of the handshake against each other, and against who is not meant."""

import socket
import ssl
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mpx.endpoints.ftp.gsi.data import GsiData
from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError
from mpx.net.dial import Dial
from mpx.net.self_signed import self_signed
from mpx.net.tls import load_pem

TLS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def an_end(pem: str, *, is_private: bool, version: str = "1.3") -> GsiData:
    wanted = x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)

    def show(context: ssl.SSLContext) -> None:
        load_pem(context, pem)
        context.maximum_version = TLS[version]

    def check(connection: ssl.SSLObject | ssl.SSLSocket) -> None:
        if connection.getpeercert(binary_form=True) != wanted:
            raise AuthenticationError("another")

    return GsiData("the peer", show, check, is_private=is_private)


def a_pem() -> str:
    certificate, key = self_signed("data", timedelta(days=1))
    return (certificate + key + certificate).decode()


def joined(
    one: Callable[[], socket.socket], other: Callable[[], socket.socket]
) -> tuple[socket.socket | MpxError, socket.socket | MpxError]:
    """Do both at once; return what each returned or raised."""
    found: list[socket.socket | MpxError] = []

    def run() -> None:
        try:
            found.append(other())
        except MpxError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        mine: socket.socket | MpxError = one()
    except MpxError as error:
        mine = error
    thread.join()
    return mine, found[0]


def pair(client: GsiData, server: GsiData) -> tuple[socket.socket | MpxError, socket.socket | MpxError]:
    listener = socket.create_server(("127.0.0.1", 0))

    def connect() -> socket.socket:
        address = listener.getsockname()
        return client.open(address, Dial(20.0), 20.0, lambda: False)

    def accept() -> socket.socket:
        connection, _ = listener.accept()
        return server.accept(connection, 20.0, lambda: False)

    with listener:
        return joined(connect, accept)


@pytest.mark.parametrize("is_private", [False, True])
@pytest.mark.parametrize("version", TLS)
def test_both_ends_meet_and_no_byte_is_lost(is_private: bool, version: str) -> None:
    pem = a_pem()
    client, server = pair(
        an_end(pem, is_private=is_private, version=version), an_end(pem, is_private=is_private)
    )
    assert isinstance(client, socket.socket) and isinstance(server, socket.socket)
    with client, server:
        assert isinstance(client, ssl.SSLSocket) == is_private
        for one, other in ((client, server), (server, client)):
            one.sendall(b"the first bytes")
            got = b""
            while len(got) < len(b"the first bytes"):
                got += other.recv(100)
            assert got == b"the first bytes"
        server.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


@pytest.mark.parametrize("is_private", [False, True])
def test_who_shows_another_certificate_is_not_the_server(is_private: bool) -> None:
    mine, other = a_pem(), a_pem()
    client, server = pair(an_end(mine, is_private=is_private), an_end(other, is_private=is_private))
    assert isinstance(client, ConnectionLost) or isinstance(server, ConnectionLost)
    for end in (client, server):
        if isinstance(end, socket.socket):  # TLS 1.3: the client is through before the server has judged
            assert not is_private or end.recv(1) == b""
            end.close()


def silent(said: bytes, *, then_closes: bool = False) -> MpxError | socket.socket:
    """Accept a connection whose other end says this and nothing more."""
    near, far = socket.socketpair()
    stopped = threading.Event()
    with far:
        far.sendall(said)
        if then_closes:
            far.close()
        else:
            stopped.set()
        try:
            return an_end(a_pem(), is_private=False).accept(near, 20.0, stopped.is_set)
        except MpxError as error:
            assert near.fileno() == -1  # closed
            return error


def test_who_says_nothing_is_waited_for_until_we_are_stopped() -> None:
    assert isinstance(silent(b""), Interrupted)


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01", b"\x16\x03\x01\xff\xff", b"GET / HTTP/1.0\r\n\r\n"])
def test_who_leaves_in_the_handshake(said: bytes) -> None:
    assert isinstance(silent(said, then_closes=True), ConnectionLost)


def test_who_delegates_or_says_something_else_first_is_refused() -> None:
    """One byte, "0", says that nothing is delegated; anything else is no server that we know."""
    pem = a_pem()
    near, far = socket.socketpair()
    server = an_end(pem, is_private=False)

    def says_more() -> socket.socket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        load_pem(context, pem)
        with context.wrap_socket(far, do_handshake_on_connect=True) as client:
            assert client.recv(1) == b"\0"
            client.sendall(b"D")
            return far

    got, _ = joined(lambda: server.accept(near, 20.0, lambda: False), says_more)
    assert isinstance(got, AuthenticationError)
