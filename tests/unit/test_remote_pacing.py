"""What a client asks `mpx serve` to send it more slowly: over which way, and what the answer says."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from raw_client import RawClient
from test_serve_echo import TIMEOUT_S, place_of

from mpx.endpoints.ftp.extensions import echo
from mpx.endpoints.ftp.extensions.echo import EchoPlace
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.location import Location
from mpx.recognition.pulses.remote_pacing import RemotePacer
from mpx.rtt.methods.echo import EchoMethod
from mpx.rtt.methods.session import SessionMethod
from mpx.serve import Server


@pytest.fixture
def session(server: Server) -> Iterator[ClientSession]:
    with ClientSession(Location("ftp", "/", "127.0.0.1", server.port), SessionOptions()) as session:
        session.greet()
        yield session


def test_only_an_echo_that_says_so_can(session: ClientSession, client: RawClient) -> None:
    pacer = RemotePacer(lambda: [])
    assert not pacer.can and not pacer.slow(0.25, 0.02) and pacer.depth() == 0
    place = place_of(client)
    for can in (False, True, False):
        with closing(EchoMethod(session, "127.0.0.1", place, can_pulse=can)) as way:
            pacer.over(way)
            assert pacer.can is can
    pacer.over(SessionMethod(session))
    assert not pacer.can


@pytest.mark.parametrize("depth", [5e-324, 0.29, 0.76, 1.0])
def test_a_depth_that_cannot_be_is_not_believed(session: ClientSession, depth: float) -> None:
    """Our share of the link is what the queue fell by, divided by it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        way = EchoMethod(
            session, "127.0.0.1", EchoPlace(server.getsockname()[1], b"8 bytes."), can_pulse=True
        )
        pacer = RemotePacer(lambda: [])
        pacer.over(way)
        for told, believed in (0.75, 0.75), (depth, 0.0):
            assert pacer.slow(0.25, 0.02)
            data, sender = server.recvfrom(100)
            server.sendto(echo.answer_pulse(data, told), sender)
            way.answers(time.monotonic() + TIMEOUT_S)
            assert pacer.depth() == believed
        way.close()


def test_the_depth_is_that_of_the_last_dip_and_nobody_elses(session: ClientSession) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        way = EchoMethod(
            session, "127.0.0.1", EchoPlace(server.getsockname()[1], b"8 bytes."), can_pulse=True
        )
        pacer = RemotePacer(lambda: [])
        pacer.over(way)

        def asked() -> tuple[bytes, Callable[[bytes], None]]:
            assert pacer.slow(0.25, 0.02)
            data, sender = server.recvfrom(100)
            assert (echo.token_in(data), echo.parse_pulse_request(data)) == (
                b"8 bytes.",
                echo.PulseRequest(0.02, 0.25),
            )

            def answer(what: bytes) -> None:
                server.sendto(what, sender)
                way.answers(time.monotonic() + TIMEOUT_S)  # until it has come

            return data, answer

        first, answer = asked()
        assert pacer.depth() == 0  # not answered
        answer(echo.answer_pulse(first, 0.75))
        assert pacer.depth() == 0.75
        second, answer = asked()
        assert pacer.depth() == 0
        answer(echo.answer_pulse(first, 0.75))  # late
        assert pacer.depth() == 0
        answer(echo.answer_pulse(echo.ask_for_pulse(b"another.", 2, 0.02, 0.25), 0.75))
        assert pacer.depth() == 0
        answer(echo.answer_pulse(second, 0.5))
        assert pacer.depth() == 0.5
        way.close()
