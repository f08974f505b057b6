"""A connection inside TLS behaves as a socket does, as far as streams use it."""

import contextlib
import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from random_bytes import random_bytes
from tls_pairs import PROTOCOL, identity, plain_pair, tls_pair

from mpx.errors import AuthenticationError, ConnectionLost, Interrupted
from mpx.net import tcp, tls
from mpx.net.beyond_sockets import is_worn, overhead_bytes
from mpx.net.tcp_info import tcp_info, unacknowledged_bytes
from mpx.net.tls import RECORD_BYTES, TlsSocket

LARGE = random_bytes(3 * 1024 * 1024 + 17)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[TlsSocket, TlsSocket]]:
    with tls_pair(tmp_path) as ends:
        yield ends


def received(connection: TlsSocket, size: int) -> bytes:
    buffer, got = bytearray(size), 0
    while got < size:
        with contextlib.suppress(BlockingIOError):
            came = connection.recv_into(memoryview(buffer)[got:], size - got, socket.MSG_WAITALL)
            assert came
            got += came
    return bytes(buffer)


@pytest.mark.parametrize("way", ["sendall", "sendmsg", "send"])
def test_what_is_sent_arrives(pair: tuple[TlsSocket, TlsSocket], way: str) -> None:
    client, server = pair

    def send() -> None:
        view = memoryview(LARGE)
        if way == "sendall":
            client.sendall(view)
        elif way == "send":
            while view:
                view = view[client.send(view[:100_000]) :]
        else:  # as a stream does it
            sent = client.sendmsg([view[:17], view[17:]])
            assert 17 < sent <= RECORD_BYTES
            client.sendall(view[sent:])

    sender = threading.Thread(target=send)
    sender.start()
    assert received(server, len(LARGE)) == LARGE
    sender.join()


def test_a_receive_takes_what_has_come(pair: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = pair
    buffer = bytearray(100_000)
    with pytest.raises(BlockingIOError):
        server.recv_into(buffer, len(buffer), socket.MSG_DONTWAIT)
    with pytest.raises(BlockingIOError):
        server.recv_into(buffer, len(buffer), socket.MSG_WAITALL)
    client.sendall(LARGE[:50_000])
    assert received(server, 10) == LARGE[:10]
    assert received(server, 49_990) == LARGE[10:50_000]
    client.sendall(b"abc")
    assert server.recv_into(buffer, len(buffer), socket.MSG_WAITALL) == 3  # when nothing more comes
    client.sendall(b"def")
    select.select([server], [], [])
    assert server.recv_into(buffer, len(buffer), socket.MSG_DONTWAIT) == 3
    server.settimeout(0.01)
    with pytest.raises(TimeoutError):
        server.recv(10)


def test_what_comes_slowly_is_handed_over(pair: tuple[TlsSocket, TlsSocket]) -> None:
    """Some comes all the time, and never enough to fill the buffer."""
    client, server = pair
    has_some = threading.Event()

    def send() -> None:
        for _ in range(500):
            client.sendall(b"x" * 100)
            if has_some.wait(0.02):
                return

    sender = threading.Thread(target=send)
    client.sendall(b"x")  # else there may be nothing for as long as a receive waits
    sender.start()
    buffer = bytearray(1_000_000)
    assert server.recv_into(buffer, len(buffer), socket.MSG_WAITALL) < 500 * 100
    has_some.set()
    sender.join()


def test_what_is_held_back_of_a_record_shows(pair: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = pair
    client.sendall(LARGE[:1000])
    assert server.recv(1) == LARGE[:1]
    assert server.recv(10) == LARGE[1:11]  # though nothing more comes over the connection
    buffer = bytearray(2000)
    assert server.recv_into(buffer, 2000, socket.MSG_DONTWAIT) == 989


def test_an_end_that_was_declared(pair: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = pair
    client.sendall(b"all")
    client.shutdown(socket.SHUT_WR)
    assert server.recv(10) == b"all"
    assert server.recv(10) == b""
    server.sendall(b"and back")  # the other direction goes on
    assert tcp.receive(client, 60, "the test") == b"and back"


def test_an_end_that_was_not_declared_is_an_error(pair: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = pair
    client.sendall(b"not all")
    socket.socket.shutdown(client, socket.SHUT_WR)  # as whoever cuts the connection on its way
    assert server.recv(10) == b"not all"
    with pytest.raises(ssl.SSLEOFError):
        server.recv(10)


@pytest.mark.parametrize("flags", [0, socket.MSG_DONTWAIT, socket.MSG_WAITALL])
def test_what_came_before_an_end_that_was_not_declared_is_received(
    pair: tuple[TlsSocket, TlsSocket], flags: int
) -> None:
    """A stream that leaves ends its part of several files at once, and closes: that is read file by file."""
    client, server = pair
    for _ in range(4):
        client.sendall(b"the end of one file")
    socket.socket.shutdown(client, socket.SHUT_RDWR)  # without a close_notify
    poll = select.poll()
    poll.register(server, select.POLLRDHUP)
    assert poll.poll(10_000)
    came = b""
    with pytest.raises(ssl.SSLError):
        while some := server.recv(1000, flags):
            came += some
    assert came == b"the end of one file" * 4


def test_what_is_changed_on_its_way_is_an_error(tmp_path: Path) -> None:
    with tls_pair(tmp_path) as (client, server):
        client.sendall(b"abc")
        assert server.recv(3) == b"abc"
        os.write(client.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))  # a record that nobody sealed
        with pytest.raises(ssl.SSLError):
            server.recv(10)


def test_another_thread_ends_a_wait(pair: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = pair
    failed: list[OSError] = []
    waits = threading.Event()

    def wait() -> None:
        waits.set()
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    if not server.recv_into(bytearray(10), 10, socket.MSG_WAITALL):
                        return
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert waits.wait(60)
    client.sendall(b"")  # nothing
    tcp.reset(server)
    thread.join(60)
    assert not thread.is_alive()
    assert failed  # and never bytes that were not decrypted


def test_after_a_reset_nothing_is_read_in_the_clear(pair: tuple[TlsSocket, TlsSocket]) -> None:
    client, server = pair
    client.sendall(LARGE[:1000])
    select.select([server], [], [])
    tcp.reset(server)
    got = b""
    with contextlib.suppress(OSError):
        got = server.recv(5000)
    assert got in (b"", LARGE[:1000])


def test_goodput_is_counted_without_what_tls_adds(
    pair: tuple[TlsSocket, TlsSocket], eventually: Callable[..., None]
) -> None:
    client, server = pair
    eventually(lambda: not unacknowledged_bytes(client))
    before, info = client.overhead_bytes, tcp_info(client)
    assert info
    acked = info.bytes_acked
    client.sendall(LARGE[:200_000])
    assert received(server, 200_000) == LARGE[:200_000]
    eventually(lambda: not unacknowledged_bytes(client))
    info = tcp_info(client)
    assert info
    assert info.bytes_acked - acked == 200_000 + client.overhead_bytes - before
    assert client.records == -(-200_000 // RECORD_BYTES)
    assert overhead_bytes(None) == 0


def test_a_key_wears_out(pair: tuple[TlsSocket, TlsSocket]) -> None:
    client, _ = pair
    assert not is_worn(client)
    client.records = tls.MOST_RECORDS
    assert is_worn(client)
    assert not is_worn(None)


# --- handshakes ------------------------------------------------------------------------------------


def begin(connection: socket.socket, timeout_s: float = 60, stop: bool = False) -> TlsSocket:
    made = tls.context(server=False, protocols=[PROTOCOL])
    return tls.secured(connection, made, "the test", timeout_s, stop=lambda: stop)


@pytest.mark.parametrize("said", [b"220 an FTP server in the clear\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_who_does_not_speak_tls_is_told_so(said: bytes) -> None:
    with plain_pair() as (client, server):
        server.sendall(said)
        with pytest.raises(AuthenticationError, match="does not answer in TLS"):
            begin(client)


def test_a_handshake_that_is_not_answered_ends() -> None:
    with plain_pair() as (client, _), pytest.raises(ConnectionLost, match=r"within 0\.01 s"):
        begin(client, 0.01)
    with plain_pair() as (client, _), pytest.raises(Interrupted):
        begin(client, stop=True)
    with plain_pair() as (client, server):
        server.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionLost, match="no TLS with the test"):
            begin(client)


def test_older_versions_are_refused(tmp_path: Path) -> None:
    made = identity(tmp_path).context()
    made.minimum_version = made.maximum_version = ssl.TLSVersion.TLSv1_2
    with plain_pair() as (client, server):
        answering = threading.Thread(target=_answer, args=(server, made))
        answering.start()
        with pytest.raises(ConnectionLost, match="no TLS with the test"):
            begin(client)
        answering.join()


def _answer(server: socket.socket, made: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError):
        tls.finish_handshake(tls.wrapped(server, made, server=True), 60)


def test_who_has_gone_before_tls_began_is_an_error_of_the_connection(tmp_path: Path) -> None:
    made = identity(tmp_path).context()
    with plain_pair() as (client, server):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        select.select([server], [], [], 60)
        found = tls.wrapped(server, made, server=True)  # Python receives once, without TLS
        for call in (lambda: found.recv(1), lambda: found.send(b"x"), lambda: tls.finish_handshake(found, 1)):
            with pytest.raises(OSError):
                call()
        found.close()
