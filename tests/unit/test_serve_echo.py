"""The echo of the server: what it answers, and that nobody can turn it against others."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_client import RawClient

from mpx import echo_wire
from mpx.gridftp_wire import parse_features
from mpx.serve import Server
from mpx.serve.echo import Allowance

TIMEOUT_S = 30
QUESTION = echo_wire.question(7, 1)


def port_of(client: RawClient) -> int:
    return int(parse_features(client.do("FEAT"))[echo_wire.FEATURE])


class Asker:
    """Asks an echo and says how many datagrams came back; a last question that is answered ends the wait."""

    def __init__(self, port: int, host: str = "127.0.0.1", source: str = "127.0.0.1") -> None:
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.bind((source, 0))
        self.sock.connect((host, port))

    def ask(self, *datagrams: bytes) -> list[bytes]:
        """Send them all; return what came back before the answer to a good one after them."""
        for datagram in datagrams:
            self.sock.send(datagram)
        last = echo_wire.question(99, 99)
        self.sock.send(last)
        found = []
        while True:
            data = self.sock.recv(65536)
            answer = echo_wire.parse_answer(data)
            if answer and answer.token == 99:
                return found
            found.append(data)


@pytest.fixture
def asker(client: RawClient) -> Iterator[Asker]:
    asker = Asker(port_of(client))
    with asker.sock:
        yield asker


def test_a_question_is_answered_with_as_many_bytes(asker: Asker) -> None:
    (data,) = asker.ask(QUESTION)
    assert len(data) == len(QUESTION) == echo_wire.BYTES
    answer = echo_wire.parse_answer(data)
    assert answer
    assert (answer.token, answer.number) == (7, 1)
    assert 0 <= answer.held_s < TIMEOUT_S


def test_the_datagrams_are_as_the_page_draws_them(asker: Asker) -> None:
    asked = b"mpx?" + bytes(4) + bytes(range(8)) + (258).to_bytes(8, "big") + bytes(40)
    assert echo_wire.question(0x0001020304050607, 258) == asked
    (data,) = asker.ask(asked)
    assert data[:4] == b"mpx!"
    assert data[8:24] == asked[8:24]
    assert data[32:] == bytes(32)


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"x",
        QUESTION[:-1],
        QUESTION + b"x",
        QUESTION * 20,
        bytes(64),
        b"mpx!" + QUESTION[4:],  # an answer: two echoes would send it to and fro for ever
        QUESTION[::-1],
    ],
)
def test_what_is_no_question_is_not_answered(asker: Asker, datagram: bytes) -> None:
    assert asker.ask(datagram) == []


@given(st.binary(max_size=200))
def test_no_answer_is_longer_than_its_question_or_answered_itself(datagram: bytes) -> None:
    answer = echo_wire.answer(datagram, 0.0)
    assert answer is None or len(answer) == len(datagram)
    assert answer is None or echo_wire.answer(answer, 0.0) is None


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.floats(0, 3599))
def test_answers_carry_what_was_asked(token: int, number: int, held_s: float) -> None:
    answer = echo_wire.answer(echo_wire.question(token, number), held_s)
    assert answer
    assert echo_wire.parse_answer(answer) == echo_wire.EchoAnswer(token, number, held_s)


# --- whom it answers -------------------------------------------------------------------------------


def session_from(source: str, port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), TIMEOUT_S, (source, 0))
    assert client.recv(100).startswith(b"220")
    return client


def waiting(sock: socket.socket) -> int:
    """Take what has come, and return how many datagrams it was."""
    count = 0
    sock.setblocking(False)
    with suppress(BlockingIOError):
        while sock.recv(100):
            count += 1
    sock.settimeout(TIMEOUT_S)
    return count


def test_only_an_address_that_has_a_session_is_answered(server: Server, eventually) -> None:
    """Whoever forges the address of somebody else cannot have opened a session from there."""
    one, other = Asker(server.port, source="127.0.0.2"), Asker(server.port, source="127.0.0.3")
    with one.sock, other.sock, session_from("127.0.0.3", server.port):
        with session_from("127.0.0.2", server.port):
            assert len(one.ask(QUESTION)) == len(other.ask(QUESTION)) == 1
        eventually(lambda: len([t for t in threading.enumerate() if t.name == "mpx-serve-session"]) == 1)
        one.sock.send(QUESTION)
        assert len(other.ask(QUESTION)) == 1  # which came later
        assert waiting(one.sock) == 0


def test_no_source_is_answered_too_often_and_none_loses_by_it(server: Server, client: RawClient) -> None:
    greedy, modest = Asker(server.port), Asker(server.port, source="127.0.0.2")
    with greedy.sock, modest.sock, session_from("127.0.0.2", server.port):
        began_s, answers = time.monotonic(), 0
        for _ in range(20):
            for _ in range(100):
                greedy.sock.send(QUESTION)
            assert len(modest.ask(QUESTION)) == 1  # when those before have been seen
            answers += waiting(greedy.sock)
        elapsed_s = time.monotonic() - began_s
        assert Allowance.BURST <= answers <= Allowance.BURST + Allowance.RATE * elapsed_s


@given(st.lists(st.floats(0, 0.1), min_size=1, max_size=400), st.floats(0, 1e6))
def test_an_allowance_is_kept_over_any_stretch_of_time(gaps: list[float], now_s: float) -> None:
    allowance, taken = Allowance(), []
    for gap in gaps:
        now_s += gap
        if allowance.take("source", now_s):
            taken.append(now_s)
    assert taken[0] == pytest.approx(now_s - sum(gaps[1:]))
    for i in range(0, len(taken), 7):
        for j in range(i, len(taken), 7):
            stretch_s = taken[j] - taken[i]
            assert j - i + 1 <= Allowance.BURST + stretch_s * Allowance.RATE + 1e-3
    assert all(first <= second for first, second in pairwise(taken))


def test_who_keeps_to_the_rate_is_always_answered_whatever_others_do() -> None:
    allowance = Allowance()
    for i in range(2000):
        now_s = i / (Allowance.RATE / 2)
        for _ in range(3):
            allowance.take("greedy", now_s)
        assert allowance.take("modest", now_s)


def test_sources_of_long_ago_are_forgotten() -> None:
    allowance = Allowance()
    for i in range(5000):
        assert allowance.take(f"source {i}", float(i))
    assert len(allowance._free_s) <= 1024


# --- where it is -----------------------------------------------------------------------------------


def test_it_is_at_the_port_of_the_server_and_at_no_other_address(server: Server, client: RawClient) -> None:
    assert port_of(client) == server.port
    elsewhere = Asker(server.port, host="127.0.0.2")
    with elsewhere.sock:
        elsewhere.sock.send(QUESTION)
        with pytest.raises(ConnectionRefusedError):
            elsewhere.sock.recv(100)


def test_another_port_where_that_one_is_taken(root: Path) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        with Server(root, port=taken.getsockname()[1]) as server, RawClient(server.port) as client:
            port = port_of(client)
            assert port != server.port
            asker = Asker(port)
            with asker.sock:
                assert len(asker.ask(QUESTION)) == 1


def test_a_server_at_all_addresses_answers_from_the_one_that_was_asked(root: Path) -> None:
    everywhere = Server(root, host="0.0.0.0", insecure=True, allow_from=["127.0.0.0/8"])
    with everywhere as server, RawClient(server.port) as client:
        asker = Asker(port_of(client), host="127.0.0.3")
        with asker.sock:
            assert len(asker.ask(QUESTION)) == 1


@pytest.mark.parametrize("host", ["::1", "::"])
def test_ipv6(root: Path, host: str) -> None:
    more = {"insecure": True, "allow_from": ["::1"]} if host == "::" else {}
    with Server(root, host=host, **more) as server, socket.create_connection(("::1", server.port)) as control:
        assert control.recv(3) == b"220"
        asker = Asker(server.port, host="::1", source="::1")
        with asker.sock:
            assert len(asker.ask(QUESTION)) == 1


def test_it_ends_with_the_server(root: Path) -> None:
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    server = Server(root)
    server.close()
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", server.port))
