"""Command lines of hostile clients: too long, never ended, dripped, and too many of them."""

import socket
import subprocess
import sys
import time

import pytest
from raw_client import RawClient, connect

from mpx.endpoints.ftp import wire
from mpx.serve import Limits, Server
from mpx.serve.control import LONGEST_BEFORE_LOGIN_BYTES, LONGEST_LINE_BYTES, LONGEST_QUEUE_BYTES


def answers(sock: socket.socket) -> list[wire.Reply]:
    """Read replies until the server has closed."""
    reader, replies = wire.ReplyReader(), []
    try:
        while data := sock.recv(65536):
            replies += reader.feed(data)
    except ConnectionError:
        pass
    return replies


def drip(sock: socket.socket, byte: bytes) -> None:
    """Send single bytes, with short waits for an end, until the server has closed."""
    sock.settimeout(0.02)
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        try:
            sock.send(byte)
            if not sock.recv(1000):
                return
        except TimeoutError:
            continue
        except ConnectionError:
            return
    raise AssertionError("a minute of single bytes, and the server still waits")


@pytest.mark.parametrize("verb", ["OPTS RETR ", "SITE ", "USER ", "X"])
@pytest.mark.parametrize("end", [b"\r\n", b"\n", b""])
def test_before_login_lines_are_short(server, verb, end):
    with connect(("127.0.0.1", server.port)) as sock:
        sock.sendall(verb.encode() + b"a" * 32_000 + end)
        assert [reply.code for reply in answers(sock)] == [220, 500]
    with RawClient(server.port) as other:
        assert other.do("NOOP").code == 200


@pytest.mark.parametrize("bound", [LONGEST_BEFORE_LOGIN_BYTES, LONGEST_LINE_BYTES])
def test_what_keeps_the_bound_is_answered_and_what_breaks_it_ends_the_session(server, bound):
    with RawClient(server.port, login=bound == LONGEST_LINE_BYTES) as client:
        room = bound - len("OPTS X \r\n")
        assert client.do("OPTS X " + "a" * room).code == 501
        client.send("OPTS X " + "a" * (room + 100))
        assert [reply.code for reply in answers(client.sock)] == [500]


@pytest.mark.parametrize("login", [False, True])
def test_a_dripped_line_is_cut_off_at_the_deadline_of_its_beginning(root, login):
    limits = Limits(idle_s=0.5, login_s=0.5) if not login else Limits(idle_s=0.5)
    with Server(root, limits=limits) as server, RawClient(server.port, login=login) as client:
        drip(client.sock, b"a")
        with RawClient(server.port) as other:
            assert other.do("NOOP").code == 200


def test_before_login_no_command_renews_the_deadline(root):
    with Server(root, limits=Limits(login_s=0.5)) as server, RawClient(server.port, login=False) as client:
        drip(client.sock, b"NOOP\r\n")


def test_after_login_a_client_has_its_time(root):
    with Server(root, limits=Limits(login_s=0.2)) as server, RawClient(server.port) as client:
        with RawClient(server.port, login=False) as late:
            assert [reply.code for reply in answers(late.sock)] == [421]
        assert client.do("NOOP").code == 200
        assert client.do("USER ftp").code == 331  # once let in, it is not a stranger again
        assert client.do("PASS x").code == 230


def test_before_login_who_does_not_read_is_cut_off(root, eventually):
    with Server(root, limits=Limits(login_s=0.5)) as server, connect(("127.0.0.1", server.port)) as sock:
        sock.settimeout(0.05)
        with pytest.raises(ConnectionError):
            while True:
                try:
                    sock.send(b"HELP\r\n" * 100)
                except TimeoutError:
                    continue


def test_bare_line_feeds_are_commands_and_have_bounds(server):
    with RawClient(server.port) as client:
        client.sock.sendall(b"\n" * 10)
        assert [client.reply().code for _ in range(10)] == [500] * 10
        client.sock.sendall(b"\n" * 4000)
        assert {reply.code for reply in answers(client.sock)} == {500}


def test_the_commands_behind_a_transfer_are_bounded_in_bytes(client, server):
    with client.storing():
        line = b"SIZE " + b"x" * 4000 + b"\r\n"
        client.sock.sendall(line * (LONGEST_QUEUE_BYTES // len(line) + 2))
        assert "Pipeline queue full." in [reply.text for reply in answers(client.sock)]
    with RawClient(server.port) as other:
        assert other.do("NOOP").code == 200


def test_an_abort_dripped_behind_other_commands_is_heard(client):
    with client.storing() as sock:
        client.sock.sendall(b"NOOP\r\n" * 500)
        for byte in b"abOR \r\n":
            client.sock.sendall(bytes([byte]))
        assert client.reply().code == 426
        assert sock.recv(1) == b""
    assert [client.reply().code for _ in range(501)] == [200] * 500 + [226]


@pytest.mark.parametrize(
    "line",
    [
        "EPRT " + ":" * 16_000,
        "EPRT " + "||" + "." * 16_000,
        "PORT " + "1," * 8_000,
        "SPOR " + "|" * 16_000,
        "LIST " + "-" * 16_000,
        "LIST " + "- " * 8_000,
        "TREV PERF " + "1" * 16_000,
        "REST " + "1" * 16_000,
        "REST " + "1-" * 8_000,
        "REST " + "0-1," * 4_000,
        "CKSM MD5 " + "1" * 16_000,
        "ERET P " + "1" * 16_000,
        "ESTO A " + " " * 16_000,
        "SITE UTIME " + "x 20200101000000" * 1_000,
        "SITE TRNC " + "1" * 16_000,
        "SITE CHMOD " + "7" * 16_000,
        "MFMT " + "2" * 16_000,
        "SBUF " + "1" * 16_000,
        "OPTS RETR " + "a" * 16_000,
        "OPTS RETR " + "a=1;" * 4_000,
        "OPTS RETR Parallelism=" + "1" * 16_000 + ";",
        "OPTS MLST " + "type;" * 3_000,
        "OPTS CKSM Markers=" + "1" * 16_000,
        "MLST " + "../" * 5_000,
        "TYPE " + "A" * 16_000,
    ],
)
def test_long_arguments_are_answered(client, line):
    client.passive()
    client.send(line, "ABOR")
    replies = [client.reply(), client.reply()]
    assert replies[-1].code == 226 or client.reply().code == 226
    assert replies[0].error_class != "INTERNAL_ERROR" or "unexpected" not in replies[0].text
    assert client.do("NOOP").code == 200


def test_a_probe_may_last_longer_than_a_login(root):
    with Server(root, limits=Limits(login_s=1.0)) as server:
        words = ["probe", "--window", "2s", f"127.0.0.1:{server.port}"]
        done = subprocess.run([sys.executable, "-m", "mpx", *words], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
