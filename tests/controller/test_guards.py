"""Budgets, and whose connections are whose."""

import pytest
from graphs import THESIS_A
from hypothesis import given
from hypothesis import strategies as st
from mpx_controller.errors import Taken
from mpx_controller.frame_budget import ALL_BURST, ALL_RATE, PORT_BURST, SWITCH_BURST, FrameBudget
from mpx_controller.graph import Port
from mpx_controller.network.discovery_frame import discovery_frame
from mpx_controller.path_sets.path_set import StreamKey
from switches import arp_from
from test_path_sets import DST, SRC, put, steered

from mpx.engine.token_bucket import TokenBucket

HOST = arp_from("src")
QUESTION = discovery_frame(Port(1, 1), "02:00:00:00:00:01", 0.0, b"secret")


@given(st.floats(0.1, 1e4), st.floats(1, 1e4), st.lists(st.floats(0, 10), max_size=200))
def test_a_budget_is_never_exceeded(rate: float, burst: float, waits: list[float]) -> None:
    budget, now_s, taken = TokenBucket(rate, burst), 1000.0, 0
    assert budget.take(now_s)
    for wait_s in waits:
        now_s += wait_s
        taken += budget.take(now_s)
        assert taken + 1 <= burst + rate * (now_s - 1000.0) + 1e-3
    assert budget.take(now_s + burst / rate + 1)


def test_a_flood_at_a_port_leaves_others_theirs_and_links_too() -> None:
    budget = FrameBudget(TokenBucket(ALL_RATE, ALL_BURST))
    assert sum(budget.allows(1, HOST, 5.0) for _ in range(100_000)) == PORT_BURST
    assert budget.allows(2, HOST, 5.0) and budget.allows(1, QUESTION, 5.0)
    every = sum(budget.allows(port, HOST, 5.0) for port in range(3, 1000) for _ in range(10))
    assert every == SWITCH_BURST - PORT_BURST - 1
    assert budget.allows(1000, QUESTION, 5.0) and not budget.allows(1000, HOST, 5.0)
    assert budget.allows(1, HOST, 6.0)


def test_floods_at_many_switches_are_no_more_than_can_be_looked_at() -> None:
    of_all = TokenBucket(ALL_RATE, ALL_BURST)
    switches = [FrameBudget(of_all) for _ in range(64)]
    every = sum(switch.allows(port, HOST, 5.0) for switch in switches for port in range(1000))
    assert every == ALL_BURST
    assert all(switch.allows(1, QUESTION, 5.0) for switch in switches)


def test_ports_that_are_made_up_need_no_room() -> None:
    budget = FrameBudget(TokenBucket(ALL_RATE, ALL_BURST))
    for port in range(100_000):
        budget.allows(port, QUESTION, 5.0)
    assert len(budget._ports) <= 10_000


def test_a_connection_is_steered_by_one_set_whichever_end_names_it() -> None:
    wan, sets = steered(THESIS_A)
    mine, theirs = sets.assign(SRC, DST, 4, "me", wan.now_s), sets.assign(DST, SRC, 4, "you", wan.now_s)
    put(wan, sets, mine.number, 4000)
    with pytest.raises(Taken, match="port 4000 of the sink"):
        sets.place(theirs.number, [StreamKey(4000, "sink")], "you", wan.now_s)
    sets.place(theirs.number, [StreamKey(4000, "source")], "you", wan.now_s)  # of the other host
    wan.do(sets.release(mine.number, "me"))
    sets.place(theirs.number, [StreamKey(4000, "sink")], "you", wan.now_s)
