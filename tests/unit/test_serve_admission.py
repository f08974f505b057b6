"""Who may come in to `mpx serve` when it is crowded, and who gives way."""

import contextlib
import socket
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_client import RawClient, connect

from mpx.serve import Limits, Server
from mpx.serve.admission import (
    GIVES_WAY_AFTER_S,
    Full,
    Room,
    party,
    session_to_drop,
    stranger_to_drop,
)
from mpx.serve.buffers import BLOCK_BYTES, SMALL_BLOCK_BYTES, WITH_LARGE_BLOCKS, ConnectionBudget

ROOM = Room(sessions=6, of_party=4, strangers=6, strangers_of_party=4)
NOW_S = 1000.0


@dataclass(eq=False)
class Guest:
    party: str
    since_s: float = 0.0
    user: str = ""
    busy: bool = False


GUESTS = st.builds(
    Guest,
    party=st.sampled_from("abc"),
    since_s=st.floats(0, NOW_S),
    user=st.sampled_from(["", "ftp"]),
    busy=st.booleans(),
)


@given(st.lists(GUESTS, max_size=8), st.sampled_from("abcd"))
def test_a_stranger_always_has_room_and_never_at_the_cost_of_a_smaller_party(strangers, newcomer):
    leaves = stranger_to_drop(strangers, newcomer, ROOM)
    counts = Counter(stranger.party for stranger in strangers)
    if leaves is None:
        assert len(strangers) < ROOM.strangers
        assert counts[newcomer] < ROOM.strangers_of_party
    else:
        assert leaves.party == newcomer or counts[leaves.party] == max(counts.values())
        before = [s for s in strangers if s.party == leaves.party and not s.user]
        assert not before or leaves in before  # who has said nothing goes first


@given(st.lists(GUESTS, max_size=8), st.sampled_from("abcd"))
def test_who_works_never_gives_way(sessions, newcomer):
    counts = Counter(session.party for session in sessions)
    crowded = len(sessions) >= ROOM.sessions or counts[newcomer] >= ROOM.of_party
    try:
        leaves = session_to_drop(sessions, newcomer, ROOM, NOW_S)
    except Full:
        assert crowded
        return
    assert (leaves is not None) == crowded
    if leaves:
        assert not leaves.busy
        assert NOW_S - leaves.since_s >= GIVES_WAY_AFTER_S
        assert leaves.party == newcomer or counts[leaves.party] == max(counts.values())


def test_the_hosts_of_an_ipv6_network_are_one_party():
    assert party("2001:db8::1") == party("2001:db8::2") != party("2001:db8:0:1::1")
    assert party("fe80::1%lo") == party("fe80::2")
    assert party("127.0.0.1") == "127.0.0.1"


def test_data_connections_are_counted_by_address():
    budget = ConnectionBudget(of_address=WITH_LARGE_BLOCKS + 1, of_all=WITH_LARGE_BLOCKS + 2)
    assert [budget.take("a") for _ in range(WITH_LARGE_BLOCKS)] == [BLOCK_BYTES] * WITH_LARGE_BLOCKS
    assert [budget.take("a"), budget.take("a")] == [SMALL_BLOCK_BYTES, 0]
    assert [budget.take("b"), budget.take("b")] == [BLOCK_BYTES, 0]
    budget.give_back("a")
    assert budget.take("b") == BLOCK_BYTES


# --- with a server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_sockets_that_never_log_in_keep_nobody_out(root, source):
    with Server(root) as server, contextlib.ExitStack() as held:
        for _ in range(150):
            held.enter_context(connect(("127.0.0.1", server.port)))
        with socket.create_connection(("127.0.0.1", server.port), 30, (source, 0)) as sock:
            sock.sendall(b"USER ftp\r\nPASS x\r\nNOOP\r\n")
            with sock.makefile("rb") as file:
                assert [file.readline()[:3] for _ in range(4)] == [b"220", b"331", b"230", b"200"]


def test_the_oldest_socket_that_says_nothing_gives_way(root):
    room = Room(strangers_of_party=2)
    with (
        Server(root, limits=Limits(room=room)) as server,
        RawClient(server.port, login=False) as polite,
        RawClient(server.port, login=False) as silent,
    ):
        assert polite.do("USER ftp").code == 331
        with RawClient(server.port, login=False) as late:
            assert silent.reply().code == 421
            assert polite.do("PASS x").code == 230
            assert late.do("NOOP").code == 200


def test_a_session_that_works_stays_and_an_idle_one_gives_way(root, monkeypatch):
    monkeypatch.setattr("mpx.serve.admission.GIVES_WAY_AFTER_S", 0.0)
    limits = Limits(room=Room(of_party=2))
    with (
        Server(root, writable=True, limits=limits) as server,
        RawClient(server.port) as works,
        works.storing(),
        RawClient(server.port) as idle,
        RawClient(server.port) as late,
    ):
        assert idle.reply().code == 421
        with late.storing(), connect(("127.0.0.1", server.port)) as refused:
            assert refused.recv(100).startswith(b"421 ")
        assert late.reply().code in (425, 426)


def test_sessions_of_one_address_leave_room_for_others(root):
    with Server(root, limits=Limits(room=Room(of_party=1))) as server, RawClient(server.port):
        with connect(("127.0.0.1", server.port)) as refused:
            assert refused.recv(100).startswith(b"421 ")
        with socket.create_connection(("127.0.0.1", server.port), 30, ("127.0.0.2", 0)) as sock:
            assert sock.recv(3) == b"220"
