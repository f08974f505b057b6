"""Which way is taken to probe real sockets of this host, and why."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.errors import ConnectionLost, Interrupted, UsageError
from mpx.net import tcp
from mpx.rtt.methods.choose import choose
from mpx.rtt.methods.icmp import IcmpMethod
from mpx.serve import Server


def told(host: str, port: int) -> tuple[str, str]:
    """Return the name of the way that is taken, and why."""
    chosen = choose(host, addresses(host, port), lambda: False)
    with chosen.opened:
        assert chosen.address[1] == port
        return chosen.method.name, chosen.reason


def addresses(host: str, port: int) -> list[tcp.Address]:
    return [address for _, address in tcp.resolve(host, port, socket.AF_UNSPEC)]


@contextmanager
def saying(first: bytes, answer: Callable[[bytes], bytes] = lambda _: b"") -> Iterator[int]:
    """A server of one port: what it says at first, and to each command."""
    ending = threading.Event()

    def serve(client: socket.socket) -> None:
        with client:
            try:
                client.sendall(first)
                while data := client.recv(1000):
                    client.sendall(b"".join(answer(line) for line in data.splitlines()))
            except OSError:
                pass  # a handshake that was only one

    def accept() -> None:
        while not ending.is_set():
            client, _ = listening.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listening.getsockname()[1]
        finally:
            ending.set()
            socket.create_connection(listening.getsockname()).close()
            accepting.join()


@contextmanager
def deaf() -> Iterator[int]:
    """A port whose queue is full: the kernel leaves what it has no room for unanswered."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        with socket.create_connection(listening.getsockname()):
            yield listening.getsockname()[1]


def test_the_echo_where_there_is_one(server: Server) -> None:
    for host in ("127.0.0.1", "localhost"):
        name, reason = told(host, server.port)
        assert name == f"echo of mpx serve (UDP port {server.port})"
        assert reason == "the server announces it"


def test_ipv6(root) -> None:
    with Server(root, host="::1") as server:
        assert told("::1", server.port)[0].startswith("echo")


def feat(features: str) -> Callable[[bytes], bytes]:
    return lambda line: f"211-\r\n {features}\r\n211 End\r\n".encode() if line == b"FEAT" else b"200 ok\r\n"


def echo_at(port: int) -> Callable[[bytes], bytes]:
    return feat(EchoPlace(port, b"8 bytes.").feature)


def test_a_session_where_the_echo_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.rtt.methods.echo.EchoMethod.lost_after_s", 0.2)
    with socket.socket(type=socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        port = mute.getsockname()[1]
        with saying(b"220 ready\r\n", echo_at(port)) as server:
            assert told("127.0.0.1", server) == (
                f"idle GridFTP session (NOOP at TCP port {server})",
                f"the server's echo at UDP port {port}: no answer",
            )
        mute.close()
        with saying(b"220 ready\r\n", echo_at(port)) as server:
            assert told("127.0.0.1", server)[1].endswith("Connection refused")


@pytest.mark.parametrize(
    "features",
    ["SIZE", "MPX-ECHO", "MPX-ECHO 2811", "MPX-ECHO 0 0123456789abcdef", "MPX-ECHO 99999 0123456789abcdef",
     "MPX-ECHO x y", f"MPX-ECHO {'9' * 5000} 0123456789abcdef"],
)  # fmt: skip
def test_a_session_where_no_echo_is_announced(features: str) -> None:
    with saying(b"220 ready\r\n", feat(features)) as server:
        name, reason = told("127.0.0.1", server)
    assert (name.startswith("idle GridFTP session"), reason) == (True, "the server announces no echo")


def test_a_server_that_knows_no_features_and_lets_nobody_in_still_answers() -> None:
    with saying(b"220 ready\r\n", lambda _: b"530 Please log in.\r\n") as server:
        assert told("127.0.0.1", server)[0].startswith("idle GridFTP session")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0"),
        (b"421 Too many.\r\n", "Too many"),
        (b"", "no greeting"),
        (b"220 mail.example.org ESMTP Postfix\r\n", "mail server"),
    ],
)
def test_handshakes_where_nobody_speaks_ftp(said: bytes, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.rtt.methods.choose.TIMEOUT_S", 0.3)
    with saying(said) as server:
        name, reason = told("127.0.0.1", server)
    assert name == f"TCP handshake (port {server})"
    assert why in reason


def test_handshakes_where_features_are_answered_as_no_ftp_server_does() -> None:
    with saying(b"220 ready\r\n", lambda _: b"250 whatever you say\r\n") as server:
        assert told("127.0.0.1", server)[1] == "the server is not an FTP server: it answers FEAT with 250"


def test_an_address_that_listens_comes_before_one_that_refuses(root) -> None:
    """A name often has an IPv6 address, and its server listens at the IPv4 one only."""
    with Server(root) as server:
        both = [("::1", server.port), ("127.0.0.1", server.port)]
        chosen = choose("localhost", both, lambda: False)
        with chosen.opened:
            assert chosen.method.kind == "echo"
            assert chosen.address == both[1]


def test_the_reset_where_nothing_listens() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert told("127.0.0.1", port) == (
            f"TCP handshake (port {port})",
            "the port is closed, and its resets are timed",
        )


def test_icmp_where_the_port_is_silent() -> None:
    try:
        IcmpMethod("127.0.0.1").close()
    except UsageError as error:
        pytest.skip(str(error))
    with deaf() as port:
        name, reason = told("127.0.0.1", port)
    assert name.startswith("ICMP echo")
    assert reason == f"TCP port {port}: no answer"


def test_an_unknown_name() -> None:
    with pytest.raises(ConnectionLost, match="cannot find the host"):
        told("no-such-host.invalid", 2811)


def test_an_address_that_no_way_leads_to() -> None:
    with pytest.raises(ConnectionLost, match=r"cannot reach 255\.255\.255\.255: .*TCP port 9: .*HOST:22"):
        told("255.255.255.255", 9)


def test_interrupted_while_choosing() -> None:
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def accept() -> None:
            accepted.append(silent.accept()[0])  # the session: of handshakes no program hears

        accepting = threading.Thread(target=accept)
        accepting.start()
        with pytest.raises(Interrupted):
            choose("127.0.0.1", [silent.getsockname()], lambda: bool(accepted))
        accepting.join()
    for one in accepted:
        one.close()


def test_nothing_stays_open(
    server: Server, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    monkeypatch.setattr("mpx.rtt.methods.choose.TIMEOUT_S", 0.3)
    with saying(b"") as mute, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        descriptors = len(os.listdir("/proc/self/fd"))
        for port in (server.port, mute, closed.getsockname()[1]):
            told("127.0.0.1", port)
        with pytest.raises(ConnectionLost):
            told("255.255.255.255", 9)
        eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
