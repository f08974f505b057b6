"""Probing over a session that is idle: its replies are the answers."""

import time

import pytest
from probe_peers import answered, asks_many, hold, scripted_ftp, session_at

from mpx.errors import ConnectionLost
from mpx.rtt.methods.session import SessionMethod
from mpx.serve import Server


def test_the_session_of_mpx_serve(server: Server) -> None:
    with session_at("127.0.0.1", server.port) as session:
        way = SessionMethod(session)
        asks_many(way)
        noise = way.noise()
        assert noise.is_estimate
        assert "server" in noise.how
        assert not way.sees_loss  # the kernel may send a segment again on a busy machine


def test_the_time_of_the_server_is_in_the_rtt_of_a_session_and_told() -> None:
    with scripted_ftp() as (session, server):
        way = SessionMethod(session)
        assert way.noise().rtt_s is None
        began_s = way.ask(0)
        server.recv(100)
        held_s = hold()
        server.sendall(b"200 one\r\n")
        (answer,) = answered(way, 1)
        assert held_s <= answer.rtt_s <= time.monotonic() - began_s
        noise_s = way.noise().rtt_s
        assert noise_s is not None
        assert 0 < noise_s < answer.rtt_s


def test_replies_belong_to_the_commands_in_their_order() -> None:
    with scripted_ftp() as (session, server):
        way = SessionMethod(session)
        for number in (7, 8, 9):
            way.ask(number)
        server.sendall(b"200 one\r\n530-not\r\n")
        assert [answer.number for answer in answered(way, 1)] == [7]
        server.sendall(b"530 allowed\r\n500 what?\r\n")
        assert [answer.number for answer in answered(way, 2)] == [8, 9]  # whatever the reply says


@pytest.mark.parametrize(
    "said", [b"", b"421 Idle.\r\n", b"nonsense\r\n", b"200 one\r\n200 that nobody asked for\r\n"]
)
def test_a_session_that_ends_is_lost(said: bytes) -> None:
    with scripted_ftp() as (session, server):
        way = SessionMethod(session)
        way.ask(0)
        server.recv(100)
        server.sendall(said) if said else server.close()
        with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1"):
            answered(way, 2)
