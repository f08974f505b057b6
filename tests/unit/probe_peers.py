"""What ways of probing are tried on: answers that are waited for, and peers that follow a script."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.errors import ConnectionLost
from mpx.location import Location
from mpx.rtt.method import Answer, Method

HOSTS = ("127.0.0.1", "::1")
WITHIN_S = 30  # far above what anything here takes
TOKEN = b"8 bytes."


def family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def answered(way: Method, count: int) -> list[Answer]:
    """Wait for so many answers."""
    found: list[Answer] = []
    until_s = time.monotonic() + WITHIN_S
    while len(found) < count:
        assert time.monotonic() < until_s, (found, way.trouble)
        found += way.answers(until_s)
    return found


def asks_many(way: Method) -> None:
    """Ten probes at once are each answered once, and the RTT is that of loopback."""
    sent = {number: way.ask(number) for number in range(10)}
    answers = answered(way, 10)
    assert sorted(answer.number for answer in answers) == list(sent)
    assert all(0 < answer.rtt_s < time.monotonic() - sent[answer.number] for answer in answers)
    assert not way.answers(time.monotonic())
    assert_noise(way)


def assert_noise(way: Method) -> None:
    """It is known; where this host is too busy for that, it says so."""
    try:
        noise = way.noise()
    except (TimeoutError, ConnectionLost):
        return
    assert noise.rtt_s is not None
    assert noise.rtt_s > 0 or noise.is_estimate
    assert noise.how


def hold() -> float:
    """Let a peer keep an answer for a while; returns for how long at least, in seconds."""
    began_s = time.monotonic()
    time.sleep(0.02)
    return time.monotonic() - began_s


def session_at(host: str, port: int) -> ClientSession:
    session = ClientSession(Location("ftp", "/", host, port), SessionOptions(WITHIN_S, WITHIN_S))
    session.greet()
    return session


@contextmanager
def scripted_ftp() -> Iterator[tuple[ClientSession, socket.socket]]:
    """A session with a server that greets; the test is the rest of it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = ClientSession(
            Location("ftp", "/", *listening.getsockname()), SessionOptions(WITHIN_S, WITHIN_S)
        )
        server, _ = listening.accept()
        with server, client:
            server.settimeout(WITHIN_S)
            server.sendall(b"220 ready\r\n")
            client.greet()
            yield client, server
