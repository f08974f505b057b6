"""The echo of the server: what it answers, and that nobody can turn it against others."""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from free_ports import free_ports
from hypothesis import given
from hypothesis import strategies as st
from raw_client import RawClient

from mpx.endpoints.ftp.extensions import echo as echo_wire
from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.endpoints.ftp.wire import Reply, ReplyReader, parse_features
from mpx.engine.token_bucket import TokenBucket
from mpx.net import tcp
from mpx.serve import Server, echo
from mpx.serve.echo import BORNE_BURST, BURST, RATE
from mpx.serve.echo_filter import MOST_TOKENS, attach

TIMEOUT_S = 30
WRONG = bytes(8)  # a token that nobody was told


def told(reply: Reply) -> EchoPlace:
    place = echo_wire.parse_place(parse_features(reply)[echo_wire.FEATURE])
    assert place
    return place


def place_of(client: RawClient) -> EchoPlace:
    return told(client.do("FEAT"))


@contextmanager
def session_from(source: str, server: Server) -> Iterator[EchoPlace]:
    """A session from an address of this host, and where its client asks."""
    host = "::1" if ":" in source else "127.0.0.1"
    with socket.create_connection((host, server.port), TIMEOUT_S, (source, 0)) as control:
        control.sendall(b"FEAT\r\n")
        reader, replies = ReplyReader(), []
        while len(replies) < 2:
            replies += reader.feed(control.recv(65536))
        yield told(replies[1])


class Asker:
    """Asks an echo and says what came back; a last question that is answered ends the wait."""

    def __init__(self, place: EchoPlace, host: str = "127.0.0.1", source: str = "127.0.0.1") -> None:
        self.token = place.token
        self.sock = socket.socket(tcp.family_of(host), socket.SOCK_DGRAM)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.bind((source, 0))
        self.sock.connect((host, place.port))

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def ask(self, *datagrams: bytes) -> list[bytes]:
        """Send them all; return what came back before the answer to a good one after them."""
        for datagram in datagrams:
            self.sock.send(datagram)
        self.sock.send(echo_wire.question(self.token, 99))
        found = []
        while True:
            data = self.sock.recv(65536)
            answer = echo_wire.parse_answer(data)
            if answer and answer.number == 99:
                return found
            found.append(data)

    def question(self) -> bytes:
        return echo_wire.question(self.token, 1)

    def waiting(self) -> int:
        """Take what has come, and return how many datagrams it was."""
        count = 0
        self.sock.setblocking(False)
        with suppress(BlockingIOError):
            while self.sock.recv(100):
                count += 1
        self.sock.settimeout(TIMEOUT_S)
        return count


@pytest.fixture
def asker(client: RawClient) -> Iterator[Asker]:
    with Asker(place_of(client)) as asker:
        yield asker


def test_a_question_is_answered_with_as_many_bytes(asker: Asker) -> None:
    (data,) = asker.ask(asker.question())
    assert len(data) == len(asker.question()) == echo_wire.BYTES
    answer = echo_wire.parse_answer(data)
    assert answer
    assert (answer.token, answer.number) == (asker.token, 1)
    assert 0 <= answer.held_s < TIMEOUT_S


def test_the_datagrams_are_as_the_page_draws_them(asker: Asker) -> None:
    asked = b"mpx?" + bytes(4) + asker.token + (258).to_bytes(8, "big") + bytes(40)
    assert echo_wire.question(asker.token, 258) == asked
    (data,) = asker.ask(asked)
    assert data[:4] == b"mpx!"
    assert data[8:24] == asked[8:24]
    assert 0 <= struct.unpack_from("!d", data, 24)[0] < TIMEOUT_S
    assert data[32:] == bytes(32)


GOOD = echo_wire.question(b"8 bytes.", 1)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"x",
        lambda good: good[:-1],
        lambda good: good + b"x",
        lambda good: good * 20,
        lambda _: bytes(64),
        lambda good: b"mpx!" + good[4:],  # an answer: two echoes would send it to and fro for ever
        lambda good: good[::-1],
        lambda good: good[:15] + bytes([good[15] ^ 1]) + good[16:],  # one bit of the token
        lambda good: good[:8] + WRONG + good[16:],
    ],
)
def test_what_is_no_question_of_ours_is_not_answered(asker: Asker, spoil: Callable[[bytes], bytes]) -> None:
    assert asker.ask(spoil(asker.question())) == []


@given(st.binary(max_size=200))
def test_no_answer_is_a_question(datagram: bytes) -> None:
    if echo_wire.is_question(datagram):
        datagram = echo_wire.answer(datagram, 0.0)
        assert len(datagram) == echo_wire.BYTES
        assert not echo_wire.is_question(datagram)
    assert not echo_wire.is_question(echo_wire.answer(GOOD, 0.0))


@given(st.binary(min_size=8, max_size=8), st.integers(0, 2**64 - 1), st.floats(0, 3599))
def test_answers_carry_what_was_asked(token: bytes, number: int, held_s: float) -> None:
    asked = echo_wire.question(token, number)
    assert echo_wire.is_question(asked) and echo_wire.token_in(asked) == token
    answer = echo_wire.answer(asked, held_s)
    assert echo_wire.parse_answer(answer) == echo_wire.EchoAnswer(token, number, held_s)


# --- what FEAT says --------------------------------------------------------------------------------


@given(st.integers(1, 65535), st.binary(min_size=8, max_size=8))
def test_the_feature_reads_back(port: int, token: bytes) -> None:
    place = EchoPlace(port, token)
    name, _, parameters = place.feature.partition(" ")
    assert name == "MPX-ECHO"
    assert echo_wire.parse_place(parameters) == place


@pytest.mark.parametrize(
    "parameters",
    ["", "2811", "0 " + "0" * 16, "65536 " + "0" * 16, "2811 " + "0" * 15, "2811 " + "G" * 16,
     "\u0663 " + "0" * 16, "9" * 5000 + " " + "0" * 16, "2811  " + "0" * 16],
)  # fmt: skip
def test_what_is_no_such_feature(parameters: str) -> None:
    assert echo_wire.parse_place(parameters) is None


@given(st.text(max_size=40))
def test_no_feature_breaks_the_reader(parameters: str) -> None:
    echo_wire.parse_place(parameters)


def test_every_session_has_a_token_of_its_own_and_keeps_it(server: Server) -> None:
    with RawClient(server.port) as one, RawClient(server.port) as other:
        first = place_of(one)
        assert first == place_of(one)
        assert first.token != place_of(other).token


# --- whom it answers -------------------------------------------------------------------------------


def test_only_clients_with_a_session_are_answered(server: Server, eventually: Callable[..., None]) -> None:
    with session_from("127.0.0.3", server) as stays, Asker(stays, source="127.0.0.3") as other:
        with session_from("127.0.0.2", server) as ends, Asker(ends, source="127.0.0.2") as one:
            assert len(one.ask(one.question())) == len(other.ask(other.question())) == 1
        with Asker(ends, source="127.0.0.2") as gone:
            eventually(lambda: sessions() == 1)
            gone.sock.send(gone.question())
            assert len(other.ask(other.question())) == 1  # which came later
            assert gone.waiting() == 0


def sessions() -> int:
    return len([thread for thread in threading.enumerate() if thread.name == "mpx-serve-session"])


def test_a_token_is_of_no_use_elsewhere(server: Server) -> None:
    """A client that forges the address of somebody else does not have the answers sent there."""
    with (
        session_from("127.0.0.2", server) as place,
        Asker(place, source="127.0.0.2") as client,
        Asker(place, source="127.0.0.3") as elsewhere,
    ):
        elsewhere.sock.send(elsewhere.question())
        assert len(client.ask(client.question())) == 1
        assert elsewhere.waiting() == 0


def test_who_forges_the_address_of_a_client_does_not_use_up_what_it_may_ask(asker: Asker) -> None:
    """Its address is no secret: who sits beside it has the same, and can ask as often as he likes."""
    with Asker(EchoPlace(asker.sock.getpeername()[1], WRONG)) as forger:
        for _ in range(4 * BURST):
            forger.sock.send(forger.question())
        assert len(asker.ask(asker.question())) == 1
        assert forger.waiting() == 0


@pytest.mark.parametrize("asks_for_pulse", [False, True])
def test_no_session_is_answered_too_often_and_none_loses_by_it(server: Server, asks_for_pulse: bool) -> None:
    """Also where both are at the same address, as behind one gateway."""
    with (
        RawClient(server.port) as one,
        RawClient(server.port) as other,
        Asker(place_of(one)) as greedy,
        Asker(place_of(other)) as modest,
    ):
        pulse = echo_wire.ask_for_pulse(greedy.token, 1, 0.02, 0.25)
        asked = pulse if asks_for_pulse else greedy.question()
        began_s, answers = time.monotonic(), 0
        for _ in range(20):
            for _ in range(100):
                greedy.sock.send(asked)
            assert len(modest.ask(modest.question())) == 1  # when those before have been seen
            answers += greedy.waiting()
        elapsed_s = time.monotonic() - began_s
    assert BURST <= answers <= BURST + RATE * elapsed_s


MANY = 2000  # more than the kernel holds for the echo


@pytest.mark.parametrize(
    "junk",
    [b"junk", bytes(64), GOOD, echo_wire.ask_for_pulse(b"8 bytes.", 1, 0.02, 0.5), GOOD[:-1]],
    ids=["short", "zeros", "another token", "a pulse with another token", "cut off"],
)
def test_a_flood_of_what_is_not_its_business_costs_nobody_an_answer(asker: Asker, junk: bytes) -> None:
    with Asker(EchoPlace(asker.sock.getpeername()[1], WRONG)) as forger:
        for _ in range(10):
            for _ in range(MANY):
                forger.sock.send(junk)
            assert len(asker.ask(asker.question())) == 1


@pytest.mark.parametrize("is_pulse", [False, True])
def test_who_asks_far_too_often_is_not_listened_to_for_a_moment(
    server: Server, eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch, is_pulse: bool
) -> None:
    monkeypatch.setattr(echo, "BORNE_RATE", 1.0)  # so that a slow machine is greedy, too
    monkeypatch.setattr(echo, "MUTED_S", 5.0)
    with (
        RawClient(server.port) as one,
        RawClient(server.port) as other,
        Asker(place_of(one)) as greedy,
        Asker(place_of(other)) as modest,
    ):
        unfit = echo_wire.ask_for_pulse(greedy.token, 1, 9.0, 0.5)  # longer than anybody may have
        for _ in range(20):
            for _ in range((BORNE_BURST + BURST) // 10):
                greedy.sock.send(unfit if is_pulse else greedy.question())
            assert len(modest.ask(modest.question())) == 1
        greedy.waiting()
        greedy.sock.send(greedy.question())
        assert len(modest.ask(modest.question())) == 1
        assert greedy.waiting() == 0

        def is_heard() -> bool:
            greedy.sock.send(greedy.question())
            modest.ask()
            return greedy.waiting() > 0

        eventually(is_heard)


def test_what_the_kernel_lets_through_of_more_sessions_than_a_filter_holds() -> None:
    with (
        socket.socket(type=socket.SOCK_DGRAM) as hears,
        socket.socket(type=socket.SOCK_DGRAM) as asks,
    ):
        hears.bind(("127.0.0.1", 0))
        hears.settimeout(TIMEOUT_S)
        asks.connect(hears.getsockname())
        tokens = [number.to_bytes(8, "little") for number in range(MOST_TOKENS + 1)]
        attach(hears, tokens[:-1])
        for token in (tokens[-1], tokens[-2]):
            asks.send(echo_wire.question(token, 1))
        assert echo_wire.token_in(hears.recv(100)) == tokens[-2]
        attach(hears, tokens)
        for datagram in (GOOD[:-1], GOOD + b"x", b"mpx!" + GOOD[4:], GOOD):
            asks.send(datagram)
        assert hears.recv(100) == GOOD


@given(st.lists(st.floats(0, 0.1), min_size=1, max_size=400), st.floats(0, 1e6))
def test_an_allowance_is_kept_over_any_stretch_of_time(gaps: list[float], now_s: float) -> None:
    allowance, taken = TokenBucket(RATE, BURST), []
    for gap in gaps:
        now_s += gap
        if allowance.take(now_s):
            taken.append(now_s)
    assert taken[0] == pytest.approx(now_s - sum(gaps[1:]))
    for i in range(0, len(taken), 7):
        for j in range(i, len(taken), 7):
            stretch_s = taken[j] - taken[i]
            assert j - i + 1 <= BURST + stretch_s * RATE + 1e-3
    assert all(first <= second for first, second in pairwise(taken))


def test_who_keeps_to_the_rate_is_always_answered() -> None:
    allowance = TokenBucket(RATE, BURST)
    assert all(allowance.take(i / RATE * 1.001) for i in range(2000))


# --- where it is -----------------------------------------------------------------------------------


def test_it_is_at_the_port_of_the_server_and_at_no_other_address(server: Server, client: RawClient) -> None:
    place = place_of(client)
    assert place.port == server.port
    with Asker(place, host="127.0.0.2") as elsewhere:
        elsewhere.sock.send(elsewhere.question())
        with pytest.raises(ConnectionRefusedError):
            elsewhere.sock.recv(100)


def test_another_port_where_that_one_is_taken(root: Path) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        port, _ = free_ports(1)
        taken.bind(("127.0.0.1", port))
        with Server(root, port=port) as server, RawClient(server.port) as client:
            place = place_of(client)
            assert place.port != server.port
            with Asker(place) as asker:
                assert len(asker.ask(asker.question())) == 1


def test_a_server_at_all_addresses_answers_from_the_one_that_was_asked(root: Path) -> None:
    everywhere = Server(root, host="0.0.0.0", insecure=True, allow_from=["127.0.0.0/8"])
    with (
        everywhere as server,
        RawClient(server.port) as client,
        Asker(place_of(client), host="127.0.0.3") as asker,
    ):
        assert len(asker.ask(asker.question())) == 1


@pytest.mark.parametrize("host", ["::1", "::"])
def test_ipv6(root: Path, host: str) -> None:
    more = {"insecure": True, "allow_from": ["::1"]} if host == "::" else {}
    with (
        Server(root, host=host, **more) as server,
        session_from("::1", server) as place,
        Asker(place, host="::1", source="::1") as asker,
    ):
        assert len(asker.ask(asker.question())) == 1


def test_it_ends_with_the_server(root: Path, eventually: Callable[..., None]) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    server = Server(root)
    server.close()
    eventually(lambda: threading.active_count() <= threads)
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
    with socket.socket(type=socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", server.port))
