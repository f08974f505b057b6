"""Rate pulses that a client asks `mpx serve` for: the datagrams, who may ask, what becomes of the data."""

import math
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_client import RawClient
from test_pulse import sending
from test_serve_echo import Asker, place_of, session_from

import mpx
from mpx.endpoints.ftp.extensions import echo
from mpx.endpoints.ftp.extensions.echo import BYTES, PULSE_FEATURE, PulseRequest
from mpx.endpoints.ftp.wire import parse_features
from mpx.errors import Interrupted
from mpx.net.connection_pacer import ConnectionPacer
from mpx.net.pacing import limit_pace
from mpx.options import CopyOptions
from mpx.serve import Server
from mpx.serve.buffers import BLOCK_BYTES, ConnectionBudget
from mpx.serve.data import Connection, DataChannel
from mpx.serve.pacing_requests import PulseService

TOKEN = b"8 bytes."


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is a long way here."""
    monkeypatch.setattr("mpx.net.connection_pacer.SHORTEST_RTT_S", 0.0)


@given(st.integers(0, 2**64 - 1), st.floats(0.001, 0.04), st.floats(0.25, 0.99), st.floats(0, 1))
def test_what_is_asked_and_answered_reads_back(
    number: int, seconds: float, share: float, depth: float
) -> None:
    asked = echo.ask_for_pulse(TOKEN, number, seconds, share)
    assert echo.token_in(asked) == TOKEN
    assert echo.parse_pulse_request(asked) == PulseRequest(seconds, share)
    answered = echo.answer_pulse(asked, depth)
    assert len(asked) == len(answered) == BYTES
    assert echo.parse_pulse_answer(answered, TOKEN) == (number, depth)
    assert echo.parse_pulse_answer(answered, b"another.") is None
    for each in (asked, answered):  # neither is taken for a probe, nor an answer for a question
        assert not echo.is_question(each) and echo.parse_answer(each) is None
    assert echo.parse_pulse_request(answered) is None and echo.parse_pulse_answer(asked, TOKEN) is None


def test_the_datagrams_are_as_the_page_draws_them() -> None:
    asked = b"mpx~" + bytes(4) + TOKEN + (258).to_bytes(8, "big") + struct.pack("!dd", 0.02, 0.25) + bytes(24)
    assert echo.ask_for_pulse(TOKEN, 258, 0.02, 0.25) == asked
    answered = b"mpx-" + asked[4:24] + struct.pack("!d", 0.75) + bytes(32)
    assert echo.answer_pulse(asked, 0.75) == answered


@pytest.mark.parametrize(
    ("seconds", "share"),
    [(0.05, 0.25), (0.0, 0.25), (-1.0, 0.25), (math.nan, 0.25), (math.inf, 0.25), (0.02, 0.2), (0.02, 0.0),
     (0.02, 1.0), (0.02, math.nan), (0.02, -1.0)],
)  # fmt: skip
def test_nobody_can_ask_for_more_than_a_moment(seconds: float, share: float) -> None:
    assert echo.parse_pulse_request(echo.ask_for_pulse(TOKEN, 1, seconds, share)) is None


@given(st.binary(max_size=200))
def test_no_datagram_breaks_the_reader(datagram: bytes) -> None:
    echo.parse_pulse_request(datagram)
    echo.parse_pulse_answer(datagram, TOKEN)


def test_a_client_to_whom_nothing_is_sent_is_told_so(client: RawClient) -> None:
    assert PULSE_FEATURE in parse_features(client.do("FEAT"))
    place = place_of(client)
    with Asker(place) as asker:
        (data,) = asker.ask(echo.ask_for_pulse(place.token, 7, 0.02, 0.25))
        assert echo.parse_pulse_answer(data, place.token) == (7, 0.0)
        assert asker.ask(echo.ask_for_pulse(TOKEN, 8, 0.02, 0.25)) == []  # nobody's


@given(st.lists(st.floats(0, 1), min_size=2, max_size=100))
def test_all_sessions_of_an_address_share_one_allowance(gaps: list[float]) -> None:
    """Each looks what is sent to it, and only those that may are counted by who is looked for."""
    now_s, looks = 0.0, []
    pulses = PulseService(lambda host: looks.append((host, now_s)) or [], clock=lambda: now_s)
    for gap in gaps:
        now_s += gap
        pulses.begin("client", 0.04, 0.25)
        pulses.begin("another", 0.04, 0.25)
    for who in ("client", "another"):
        times = [at_s for host, at_s in looks if host == who]
        assert times[0] == gaps[0]
        assert all(later - earlier > 0.79 for earlier, later in pairwise(times))
    assert len(looks) >= 2 * int(sum(gaps[1:]) / 1.8)


@pytest.mark.parametrize(("congestion", "most"), [("cubic", 600), ("bbr", 20 + 0.4 * 600)])
def test_where_bbr_sends_there_are_as_many_as_a_copy_makes_that_rests(
    congestion: str, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[float] = []

    class Noted(ConnectionPacer):
        def slow(self, share: float, seconds: float) -> bool:
            made.append(now_s)
            return False  # so that nothing is waited for

    monkeypatch.setattr("mpx.serve.pacing_requests.ConnectionPacer", Noted)
    monkeypatch.setattr("mpx.net.congestion_control.congestion_of", lambda _: congestion)
    now_s = 0.0
    with sending(2) as sent:
        pulses = PulseService(lambda _: sent.connections(), clock=lambda: now_s)
        for _ in range(600):
            now_s += 1.0
            pulses.begin("client", 0.04, 0.25)
    assert 0.95 * most < len(made) <= most
    assert made[:20] == [1.0 + number for number in range(20)]  # a window is full before it rests


def test_only_the_clients_own_data_are_slowed(
    root: Path, server: Server, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with (root / "zeros").open("wb") as file:
        file.truncate(24_000_000)
    cancel = threading.Event()
    options = CopyOptions(rate_bps=16e6, checksum="none", congestion="kernel")
    words = (f"{server.url}zeros", str(tmp_path / "here"))

    def copy() -> None:
        with suppress(Interrupted):
            mpx.copy(*words, options, cancel=cancel)

    copying = threading.Thread(target=copy)
    copying.start()
    with ExitStack() as stack:
        askers = []
        for source in ("127.0.0.1", "127.0.0.2"):
            place = stack.enter_context(session_from(source, server))
            askers.append((place, stack.enter_context(Asker(place, source=source))))
        depths: list[list[float]] = [[], []]

        def asked() -> bool:
            for (place, asker), found in zip(askers, depths, strict=True):
                asker.sock.send(echo.ask_for_pulse(place.token, 1, 0.04, 0.25))
                told = echo.parse_pulse_answer(asker.sock.recv(100), place.token)
                found.extend([told[1]] if told else [])
            return sum(depth > 0 for depth in depths[0]) > 2 and len(depths[1]) > 2

        eventually(asked)
    cancel.set()
    copying.join()
    assert set(depths[1]) == {0.0}


def test_data_are_slowed_and_then_not_any_more(eventually: Callable[..., None]) -> None:
    with sending(1) as sent, sending(1) as others:
        pulses = PulseService(
            lambda host: (sent if host == "client" else others).connections(), clock=lambda: sent.now_s
        )
        assert pulses.begin("client", 0.04, 0.25) == 0  # nobody knows yet what is sent
        free = sent.paces()
        depths: list[float] = []

        def made() -> bool:
            sent.now_s += 1
            sent.pass_on(400_000)
            depths.append(pulses.begin("client", 0.04, 0.25))
            return depths[-1] > 0

        eventually(made)
        assert depths[-1] == pytest.approx(0.75)
        eventually(lambda: sent.paces() == [1 << 62])
        assert others.paces() == free
        sent.now_s += 1
        sent.pass_on(400_000)
        pulses.forget("client")
        assert pulses.begin("client", 0.04, 0.25) == 0  # known no more


def test_further_retrieves_over_connections_that_are_kept_end_no_pulse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mpx.net.pacing.PACED_RTT_S", 0.0)
    with sending(1) as sent:
        (sock,) = sent.connections()
        connection = Connection(sock, BLOCK_BYTES, lambda: None)
        connection.connect()  # as it is accepted
        assert sent.paces() == [1 << 62]
        channel = DataChannel("127.0.0.1", "127.0.0.1", socket.AF_INET, ConnectionBudget())
        channel.keep([connection])
        limit_pace(sock, 8e6)
        for kept in channel.take_kept():
            kept.connect()
        assert sent.paces() == [1_000_000]


def test_one_lasts_until_its_end_though_another_is_asked_for(eventually: Callable[..., None]) -> None:
    with sending(1) as sent:
        pulses = PulseService(lambda _: sent.connections(), clock=lambda: sent.now_s)

        def asked(seconds: float) -> float:
            sent.now_s += 1
            sent.pass_on(400_000)
            return pulses.begin("client", seconds, 0.25)

        eventually(lambda: asked(30) > 0)
        assert asked(0.04) == 0
        assert sent.paces() != [1 << 62]
