"""Probing by ICMP echo and by the echo of mpx serve, against real sockets: what is an answer to us."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_peers import (
    HOSTS,
    TOKEN,
    WITHIN_S,
    answered,
    asks_many,
    hold,
    scripted_ftp,
    session_at,
)

from mpx.endpoints.ftp.extensions import echo as echo_wire
from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.wire import command, parse_features
from mpx.errors import ConnectionLost, Interrupted, UsageError
from mpx.location import Location
from mpx.rtt.methods import datagrams
from mpx.rtt.methods.echo import EchoMethod
from mpx.rtt.methods.icmp import IcmpMethod, checksum
from mpx.rtt.runner import Run
from mpx.rtt.schedule import single
from mpx.rtt.series import summary
from mpx.serve import Server


def test_what_is_lost_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "_KEEP_S", 0.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        sent = datagrams.Datagrams(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), *silent.getsockname())
        with closing(sent):
            times = [sent.send(number, b"?") for number in range(3)]
            assert [sent.take_sent(number) for number in range(3)] == [None, None, times[2]]


# --- ICMP echo -------------------------------------------------------------------------------------


@contextmanager
def icmp(host: str, *, raw: bool = False) -> Iterator[IcmpMethod]:
    try:
        way = IcmpMethod(host)
    except UsageError as error:
        pytest.skip(str(error))
    with closing(way):
        if raw and "raw" not in way.name:
            pytest.skip(
                "needs a raw socket, which only root has, where net.ipv4.ping_group_range leaves root out"
            )
        yield way


@pytest.mark.parametrize("host", HOSTS)
def test_icmp_echo(host: str) -> None:
    with icmp(host) as way:
        asks_many(way)


@pytest.mark.parametrize("host", HOSTS)
def test_a_raw_socket_does_not_take_the_answers_of_others(host: str) -> None:
    with icmp(host, raw=True) as way, icmp(host, raw=True) as other:
        other.ask(1)
        way.ask(1)
        (answer,) = answered(way, 1)
        assert answer.rtt_s > 0  # the other's came before this was asked
        assert len(answered(other, 1)) == 1


@given(st.binary(max_size=64).filter(lambda data: len(data) % 2 == 0))
def test_a_message_with_its_checksum_sums_to_nothing(data: bytes) -> None:
    assert checksum(data + struct.pack("!H", checksum(data))) in (0, 0xFFFF)
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2  # the example of RFC 1071


# --- the echo of mpx serve -------------------------------------------------------------------------


def place_of(session: ClientSession) -> EchoPlace:
    place = echo_wire.parse_place(parse_features(session.call(command("FEAT")))[echo_wire.FEATURE])
    assert place
    return place


@pytest.mark.parametrize("host", HOSTS)
def test_the_echo_of_mpx_serve(root, host: str) -> None:
    with Server(root, host=host) as server, session_at(host, server.port) as session:
        place = place_of(session)
        with closing(EchoMethod(session, host, place)) as way:
            asks_many(way)
            assert str(place.port) in way.name


@pytest.fixture
def echoing(server: Server) -> Iterator[tuple[EchoMethod, socket.socket]]:
    """A way to an echo that the test plays."""
    with session_at("127.0.0.1", server.port) as session, socket.socket(type=socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))
        echo.settimeout(WITHIN_S)
        with closing(EchoMethod(session, "127.0.0.1", EchoPlace(echo.getsockname()[1], TOKEN))) as way:
            yield way, echo


def test_answers_in_any_order_and_twice(echoing: tuple[EchoMethod, socket.socket]) -> None:
    way, echo = echoing
    for number in range(3):
        way.ask(number)
    asked = [echo.recvfrom(100) for _ in range(3)]
    for data, sender in reversed(asked + asked):
        echo.sendto(echo_wire.answer(data, 0.0), sender)
    assert [answer.number for answer in answered(way, 3)] == [2, 1, 0]
    assert way.answers(time.monotonic()) == []


def test_the_time_that_the_server_held_a_question_is_taken_out(
    echoing: tuple[EchoMethod, socket.socket],
) -> None:
    way, echo = echoing
    for says_so in (False, True):
        began_s = way.ask(int(says_so))
        data, sender = echo.recvfrom(100)
        held_s = hold()
        echo.sendto(echo_wire.answer(data, held_s if says_so else 0.0), sender)
        (answer,) = answered(way, 1)
        took_s = time.monotonic() - began_s
        if says_so:
            assert 0 < answer.rtt_s <= took_s - held_s
        else:
            assert held_s <= answer.rtt_s <= took_s


def test_an_echo_that_claims_to_have_held_a_question_for_longer_than_it_took_is_not_believed(
    echoing: tuple[EchoMethod, socket.socket],
) -> None:
    way, echo = echoing
    way.ask(0)
    data, sender = echo.recvfrom(100)
    echo.sendto(echo_wire.answer(data, 3000.0), sender)
    assert way.answers(time.monotonic()) == []
    assert "longer" in way.trouble


def test_what_is_no_answer_to_us_does_not_count(echoing: tuple[EchoMethod, socket.socket]) -> None:
    way, echo = echoing
    way.ask(5)
    data, sender = echo.recvfrom(100)
    good = echo_wire.answer(data, 0.0)
    wrong = [b"", b"x", data, good[:-1], good + b"x", echo_wire.answer(echo_wire.question(bytes(8), 5), 0.0)]
    wrong += [
        echo_wire.answer(data, float("nan")),
        echo_wire.answer(data, -1.0),
        good[:16] + b"\xff" + good[17:],
    ]
    for datagram in wrong:
        echo.sendto(datagram, sender)
    with socket.socket(type=socket.SOCK_DGRAM) as stranger:
        stranger.sendto(good, sender)
    assert way.answers(time.monotonic()) == []
    echo.sendto(good, sender)
    assert [answer.number for answer in answered(way, 1)] == [5]
    assert way.answers(time.monotonic()) == []


def test_an_echo_that_was_not_there_and_comes(server: Server) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as gone, session_at("127.0.0.1", server.port) as session:
        gone.bind(("127.0.0.1", 0))
        address = gone.getsockname()
        place = EchoPlace(address[1], TOKEN)
        with (
            closing(EchoMethod(session, "127.0.0.1", place)) as way,
            socket.socket(type=socket.SOCK_DGRAM) as echo,
        ):
            gone.close()
            way.ask(0)
            echo.bind(address)
            echo.settimeout(WITHIN_S)
            way.ask(1)  # what the first one met does not keep it from leaving
            assert "refused" in way.trouble
            data, sender = echo.recvfrom(100)
            echo.sendto(echo_wire.answer(data, 0.0), sender)
            assert [answer.number for answer in answered(way, 1)] == [1]


def test_however_much_comes_it_stops_to_send_the_next_probe(
    echoing: tuple[EchoMethod, socket.socket],
) -> None:
    """An unfriendly echo must not keep us, nor fill our memory."""
    way, echo = echoing
    way.ask(0)
    data, sender = echo.recvfrom(100)
    for _ in range(100):
        echo.sendto(b"junk", sender)
    echo.sendto(echo_wire.answer(data, 0.0), sender)
    assert way.answers(time.monotonic()) == []
    assert [answer.number for answer in answered(way, 1)] == [0]


def test_where_no_way_leads_the_first_reason_stays(server: Server) -> None:
    place = EchoPlace(9, TOKEN)
    with (
        session_at("127.0.0.1", server.port) as session,
        closing(EchoMethod(session, "255.255.255.255", place)) as way,
    ):
        assert (why := way.trouble)
        way.ask(0)
        assert way.trouble == why


def test_a_session_that_keeps_an_echo_is_not_idle() -> None:
    with scripted_ftp() as (session, server), pytest.MonkeyPatch.context() as patch:
        patch.setattr("mpx.rtt.methods.echo.KEEP_ALIVE_S", -1.0)
        with closing(EchoMethod(session, "127.0.0.1", EchoPlace(9, TOKEN))) as way:
            way.ask(0)
            assert server.recv(100) == b"NOOP\r\n"
            server.sendall(b"200 one\r\n")
            assert way.answers(time.monotonic()) == []
            way.ask(1)
            assert server.recv(100) == b"NOOP\r\n"
            server.sendall(b"200 two\r\n200 three, that nobody asked for\r\n")
            with pytest.raises(ConnectionLost, match="three, that nobody asked for"):
                way.answers(time.monotonic())


def test_a_session_that_never_falls_silent_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a reply that does not end there is always more to be read."""
    with scripted_ftp() as (session, server), socket.socket(type=socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))
        with closing(EchoMethod(session, "127.0.0.1", EchoPlace(echo.getsockname()[1], TOKEN))) as way:
            monkeypatch.setattr("mpx.net.tcp.receive", lambda *_: b"200-goes on\r\n")
            server.sendall(b"200-begins\r\n")
            assert way.answers(time.monotonic()) == []


def test_a_session_whose_markers_never_end_is_left_when_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stops = threading.Event()
        options = SessionOptions(WITHIN_S, WITHIN_S, stop=stops.is_set)
        client = ClientSession(Location("ftp", "/", *listening.getsockname()), options)
        server, _ = listening.accept()
        with server, client:
            monkeypatch.setattr("mpx.net.tcp.receive", lambda *_: b"112-\r\n112 End\r\n")
            stops.set()
            with pytest.raises(Interrupted):
                client.call(command("FEAT"))


@pytest.mark.parametrize("said", [b"", b"421 Idle.\r\n", b"nonsense\r\n"])
def test_an_echo_whose_session_ends_is_lost(said: bytes) -> None:
    """At once, though nothing was to be said over the session."""
    with scripted_ftp() as (session, server), socket.socket(type=socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))
        with closing(EchoMethod(session, "127.0.0.1", EchoPlace(echo.getsockname()[1], TOKEN))) as way:
            way.ask(0)
            server.sendall(said) if said else server.close()
            with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1"):
                answered(way, 1)


def test_when_the_server_goes_away_what_was_under_way_is_not_lost(server: Server) -> None:
    """Its echo goes, too, and the port refuses: that is no loss of the path."""
    looks = 0

    def stop() -> bool:
        nonlocal looks
        looks += 1
        if looks == 20:
            server.close()
        return False

    with (
        session_at("127.0.0.1", server.port) as session,
        closing(EchoMethod(session, "127.0.0.1", place_of(session))) as way,
    ):
        run = Run(way)
        with pytest.raises(ConnectionLost):
            run.go(single(60.0), stop)
    told = summary(run.probes())
    assert told.sent >= 1
    assert told.lost == 0
