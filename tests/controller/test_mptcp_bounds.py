"""Multipath TCP: floods, switches that cannot, restarts, whatever may come."""

import itertools
import json
from dataclasses import replace

import pytest
from graphs import THESIS_A, graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from mptcp_frames import capable, segment
from mptcp_wans import BETWEEN, KEY_B, MORE, add, connect, end, of, spread, steering, way
from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import Gone
from mpx_controller.graph import Graph, Port
from mpx_controller.mptcp import connections
from mpx_controller.mptcp.connections import ANSWER_S, MOST_WAITING
from mpx_controller.mptcp.entries import subflow_entries
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.mptcp.segment import ACK, SYN
from mpx_controller.mptcp.subflow import FIRST_IDLE_S, IDLE_S
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import SETTLED_S
from mpx_controller.path_sets.selection import SELECTORS
from mpx_controller.state_file import read_state, state_text
from switches import tcp_frame
from wans import ENDS, network


def test_late_answers_count_for_nothing() -> None:
    wan = spread(THESIS_A)
    wan.send("src", segment("src", "dst", (4000, 5001), SYN, capable(1)))
    wan.now_s += ANSWER_S + 1
    wan.send("dst", segment("dst", "src", (5001, 4000), SYN | ACK, capable(1, KEY_B)))
    assert not of(wan).connections.all


def test_a_flood_of_syns_pushes_out_nobody_elses() -> None:
    wan = spread(THESIS_A, {**ENDS, "other": 1})
    wan.send("src", segment("src", "dst", (4000, 5001), SYN, capable(1)))
    for n in range(2 * MOST_WAITING):
        wan.send("other", segment("other", "dst", (1 + n, 5001), SYN, capable(1)))
    wan.send("dst", segment("dst", "src", (5001, 4000), SYN | ACK, capable(1, KEY_B)))
    assert way(wan) == BETWEEN[0] and len(of(wan).subflows) == 1
    assert len(steering(wan)) == 10


def test_one_port_has_a_bounded_number_of_subflows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_SUBFLOWS", 3)
    wan = spread(THESIS_A, {**ENDS, "other": 6})
    connect(wan)
    for source in MORE[:4]:
        add(wan, source)
    assert len(of(wan).subflows) == 3 and of(wan).connections.refused == 2
    end(wan, MORE[0])
    add(wan, MORE[5])
    assert len(of(wan).subflows) == 3
    wan.send("other", segment("other", "src", (1, 5001), SYN, capable(1)))
    wan.send("src", segment("src", "other", (5001, 1), SYN | ACK, capable(1, 3)))
    assert len(of(wan).subflows) == 4


def test_a_switch_that_cannot_match_on_flags() -> None:
    wan = spread(THESIS_A)
    assert any(entry.cookie == cookie(Kind.MPTCP) for entry in wan.switches[1].entries.values())
    wan.do(of(wan).refused(1, cookie(Kind.MPTCP), wan.now_s))
    assert not any(entry.cookie == cookie(Kind.MPTCP) for entry in wan.switches[1].entries.values())
    assert any(entry.cookie == cookie(Kind.MPTCP) for entry in wan.switches[6].entries.values())
    connect(wan)
    assert not of(wan).subflows and way(wan) == BETWEEN[0]


def test_a_switch_without_room_for_a_subflow() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    (connection,) = of(wan).connections.all
    wan.do(of(wan).refused(2, cookie(Kind.MPTCP, connection.number), wan.now_s))
    assert not steering(wan) and not of(wan).off


def test_two_hosts_with_one_token() -> None:
    wan = spread(THESIS_A, {**ENDS, "other": 6})
    connect(wan)
    wan.send("src", segment("src", "other", (4000, 5001), SYN, capable(1)))
    wan.send("other", segment("other", "src", (5001, 4000), SYN | ACK, capable(1, KEY_B)))
    add(wan, MORE[0])
    first, second = of(wan).connections.all
    assert (len(first.subflows), len(second.subflows)) == (2, 1)


def test_path_sets_come_first_and_both_entries_fit() -> None:
    bands = Bands()
    assert bands.copies < bands.mptcp and bands.mptcp + 3 < bands.path_sets


def test_a_restart_moves_nothing() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    for source in MORE[:3]:
        add(wan, source)
    before = {number: dict(switch.entries) for number, switch in wan.switches.items()}
    assert wan.network is not None
    text = state_text([], 0, wan.network.hosts.all, wan.now_s, wan.mptcp)
    state = read_state(text, wan.now_s)
    assert state.mptcp is not None
    fresh = network(wan.now_s)
    fresh.hosts.restore(state.hosts, wan.now_s)
    wan.mptcp = MultipathTcp(fresh, Bands(), SELECTORS["widest-apart"])
    wan.mptcp.restore(*state.mptcp)
    wan.connect(fresh, [1, 2, 6])
    wan.wait(1)
    assert [way(wan, source) for source in (None, *MORE[:3])] == BETWEEN
    wan.connect(fresh, [3, 4, 5])
    for _ in range(40):
        assert [way(wan, source) for source in (None, *MORE[:3])] == BETWEEN
        wan.wait(SETTLED_S / 20)
    for number, switch in wan.switches.items():
        for key, entry in switch.entries.items():
            assert entry == replace(before[number][key], idle_s=entry.idle_s)
            # No packet since the restart does not mean that it was over before it was steered.
            assert entry.idle_s in (before[number][key].idle_s, IDLE_S)
        assert switch.entries.keys() == before[number].keys()
    steers = next(entry for entry in steering(wan) if entry.priority == Bands().mptcp)
    wan.do(of(wan).entry_gone(Gone(steers.key, steers.cookie, FIRST_IDLE_S, 0), wan.now_s))
    assert len(of(wan).subflows) == 4
    add(wan, MORE[4])
    assert way(wan, MORE[4]) == BETWEEN[0]
    for source in (None, *MORE[:5]):
        end(wan, source)
    assert not steering(wan)


@given(
    graphs(),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), max_size=25),
)
@settings(max_examples=40)
def test_whatever_happens_subflows_arrive_once_and_nothing_is_left(
    graph: Graph, happens: list[tuple[int, int]]
) -> None:
    hosts = {"src": min(graph.switches), "dst": max(graph.switches)}
    wan = spread(graph, hosts)
    reachable = bool(wan.switches_passed("src", tcp_frame("src", "dst", (1, 2)))) and any(
        host == "dst" for host, _ in wan.received
    )
    links = itertools.cycle(graph.links)
    down: set[Port] = set()
    for source, what in happens:
        address_of = None if source == 0 else MORE[source - 1]
        if what == 0:
            connect(wan)
        elif what == 1:
            add(wan, MORE[source - 1])
        elif what == 2:
            end(wan, address_of)
        else:
            link = next(links)
            wan.carrier(link.start, up=link.start in down)
            down ^= {link.start, link.end}
            wan.wait(0)
    for port in list(down):
        wan.carrier(port, up=True)
    wan.wait(1)
    for source in (None, *MORE):
        wan.received.clear()
        way(wan, source)
        assert [host for host, _ in wan.received] == (["dst", "src"] if reachable else [])
    for source in (None, *MORE):
        end(wan, source)
    assert not steering(wan) and not of(wan).subflows


def test_entries_are_for_both_directions_of_one_connection_only() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    ((four, subflow),) = of(wan).subflows.items()
    back = wan.network.graph.reverse(subflow.path) if wan.network is not None else None
    assert back is not None
    found = subflow_entries(Bands(), four, subflow, (subflow.path, back), 1)
    assert {switch: len(entries) for switch, entries in found.items()} == {1: 4, 2: 2, 6: 4}
    assert all(len(entry.match) >= 8 for entries in found.values() for entry in entries)


@given(st.data())
@settings(max_examples=60)
def test_saved_connections_that_are_damaged_are_refused_or_read(data: st.DataObject) -> None:
    wan = spread(THESIS_A)
    connect(wan)
    told = json.loads(state_text([], 0, [], wan.now_s, wan.mptcp))["mptcp"]
    hurt = data.draw(st.none() | st.integers() | st.text() | st.lists(st.integers() | st.text()))
    part = data.draw(st.sampled_from(["last", "connections", "subflows"]))
    if part == "last":
        told[part] = hurt
    else:
        told[part][0][data.draw(st.integers(0, len(told[part][0]) - 1))] = hurt
    whole = {"version": 1, "last": 0, "hosts": [], "path_sets": [], "mptcp": told}
    try:
        state = read_state(json.dumps(whole), 0.0)
    except ValueError:
        return
    assert state.mptcp is not None
    fresh = network()
    again = MultipathTcp(fresh, Bands(), SELECTORS["widest-apart"])
    again.restore(*state.mptcp)
    again.network_changed(100.0)
