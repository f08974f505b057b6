"""Which frame goes where, in simulated switches that a Network of ours steers."""

from collections import Counter
from collections.abc import Callable

import pytest
from graphs import THESIS_A, THESIS_B, all_simple_paths, graphs, plain
from hypothesis import given, settings
from mpx_controller.cookies import is_ours
from mpx_controller.flows import CONTROLLER, Entry, match
from mpx_controller.graph import Graph, Port
from mpx_controller.network.discovery import FIRST_S, LOST_S, UNDECIDED_S, Discovery
from mpx_controller.network.discovery_frame import discovery_frame
from mpx_controller.network.forwarding import ETH_LLDP
from mpx_controller.network.heard_frame import announced_by
from mpx_controller.network.host_question import OUR_ADDRESS
from mpx_controller.network.network import SETTLED_S, SILENT_S
from mpx_controller.network.ports import PortState
from switches import Wan, address, address6, arp_from, hardware, tcp_frame
from wans import ENDS, SECRET, known, network, ready


@pytest.mark.parametrize("graph", [THESIS_A, THESIS_B])
def test_links_are_found_and_frames_to_all_arrive_once(graph: Graph) -> None:
    wan = ready(graph, {**ENDS, "third": 2})
    assert wan.network is not None
    assert {(link.start, link.end) for link in wan.network.graph.links} == {
        (k.start, k.end) for k in graph.links
    }
    wan.send("src", arp_from("src"))
    assert Counter(host for host, _ in wan.received) == {"dst": 1, "third": 1}


def test_known_hosts_are_reached_on_the_shortest_path_and_by_nobody_else() -> None:
    wan = known(THESIS_B, {**ENDS, "third": 5})
    assert wan.switches_passed("src", tcp_frame("src", "dst", (1, 2))) == [1, 5, 6]
    assert wan.switches_passed("dst", tcp_frame("dst", "src", (2, 1))) == [6, 5, 1]
    assert [host for host, _ in wan.received] == ["dst", "src"]
    assert wan.network is not None and wan.network.hosts.at(address("dst")).hardware == hardware("dst")  # type: ignore[union-attr]


def test_unknown_hosts_are_looked_for_everywhere_once() -> None:
    wan = ready(THESIS_B, ENDS)
    wan.send("src", tcp_frame("src", "dst", (1, 2)))
    assert [host for host, _ in wan.received] == ["dst"]


def test_a_link_that_is_cut_is_left_at_once_and_used_again() -> None:
    wan = known(THESIS_B, ENDS)
    cut = next(link.start for link in THESIS_B.links if (link.start.switch, link.end.switch) == (1, 5))
    wan.carrier(cut, up=False)
    wan.wait(0)
    assert len(wan.switches_passed("src", tcp_frame("src", "dst", (1, 2)))) == 4
    wan.received.clear()
    wan.send("src", arp_from("src"))
    assert [host for host, _ in wan.received] == ["dst"]
    wan.carrier(cut, up=True)
    wan.wait(1)
    assert wan.switches_passed("src", tcp_frame("src", "dst", (1, 2))) == [1, 5, 6]


def test_a_link_that_loses_all_without_a_word_is_left_later() -> None:
    wan = known(THESIS_B, ENDS)
    cut = next(link for link in THESIS_B.links if (link.start.switch, link.end.switch) == (5, 6))
    wan.cut |= {cut.start, cut.end}
    wan.wait(LOST_S + 1)
    wan.send("src", tcp_frame("src", "dst", (1, 2)))
    wan.send("src", arp_from("src"))
    assert [host for host, _ in wan.received] == ["dst", "dst"]


def test_one_direction_that_is_lost_keeps_floods_off_both() -> None:
    wan = known(THESIS_B, {**ENDS, "fifth": 5})
    wan.cut.add(next(ln.start for ln in THESIS_B.links if (ln.start.switch, ln.end.switch) == (5, 6)))
    wan.wait(LOST_S + 1)
    for host in ("src", "dst", "fifth"):
        wan.received.clear()
        wan.send(host, arp_from(host))
        assert Counter(name for name, _ in wan.received) == Counter({*ENDS, "fifth"} - {host})


def test_hosts_move() -> None:
    wan = known(THESIS_B, {**ENDS, "other": 2})
    there = next(port for port, name in wan.hosts.items() if name == "dst")
    other = next(port for port, name in wan.hosts.items() if name == "other")
    wan.hosts[there], wan.hosts[other] = "other", "dst"
    wan.send("dst", arp_from("dst"))
    wan.received.clear()
    assert wan.switches_passed("src", tcp_frame("src", "dst", (1, 2)))[-1] == 2
    assert [host for host, _ in wan.received] == ["dst"]


def test_nothing_needs_us_once_it_is_there() -> None:
    wan = known(THESIS_B, ENDS)
    wan.network = None
    wan.send("src", tcp_frame("src", "dst", (1, 2)))
    wan.send("dst", arp_from("dst"))
    assert [host for host, _ in wan.received] == ["dst", "src"]


def test_a_restart_is_not_noticed() -> None:
    wan = known(THESIS_B, ENDS)
    before = {switch: dict(state.entries) for switch, state in wan.switches.items()}
    wan.connect(network(wan.now_s))
    frame = tcp_frame("src", "dst", (1, 2))
    for _ in range(30):
        wan.received.clear()
        assert wan.switches_passed("src", frame) == [1, 5, 6]
        wan.wait(SETTLED_S / 20)
    assert {switch: dict(state.entries) for switch, state in wan.switches.items()} == before


@pytest.mark.parametrize("when_s", [0.2, 1.5])
def test_a_switch_that_is_started_anew_while_it_is_left_alone_gets_its_entries(when_s: float) -> None:
    wan = known(THESIS_B, ENDS)
    steering = network(wan.now_s)
    wan.connect(steering)
    wan.wait(when_s)
    wan.switches[1].entries.clear()
    steering.switch_down(1, wan.now_s)
    wan.wait(0.2)
    wan.connect(steering, [1])
    wan.wait(1.5)
    for host in ENDS:
        wan.send(host, arp_from(host))
    wan.wait(SETTLED_S)
    assert wan.switches[1].entries == steering.rules(1).wanted
    wan.received.clear()
    assert wan.switches_passed("src", tcp_frame("src", "dst", (1, 2))) == [1, 5, 6]


def test_what_nobody_wants_any_more_is_removed_when_a_start_has_settled() -> None:
    wan = known(THESIS_B, {**ENDS, "left": 2})
    gone = next(port for port, name in wan.hosts.items() if name == "left")
    del wan.hosts[gone]
    wan.connect(network(wan.now_s))
    wan.wait(SETTLED_S + 1)
    entries = [entry for switch in wan.switches.values() for entry in switch.entries.values()]
    assert entries and all(is_ours(entry.cookie) for entry in entries)
    assert not [entry for entry in entries if ("eth_dst", hardware("left")) in entry.match]


def test_a_switch_that_is_away_for_a_moment_goes_on_forwarding() -> None:
    wan = known(THESIS_B, ENDS)
    assert wan.network is not None
    wan.network.switch_down(5, wan.now_s)
    wan.wait(SILENT_S - 1)
    assert wan.switches_passed("src", tcp_frame("src", "dst", (1, 2))) == [1, 5, 6]
    wan.wait(2)
    assert len(wan.switches_passed("src", tcp_frame("src", "dst", (1, 2)))) == 4
    wan.connect(wan.network, [5])
    wan.wait(2)
    assert wan.switches_passed("src", tcp_frame("src", "dst", (1, 2))) == [1, 5, 6]


def test_switches_that_come_one_by_one_never_let_frames_circle() -> None:
    wan = Wan(THESIS_A, ENDS)
    steering = network()
    for switch in sorted(wan.switches, reverse=True):
        wan.connect(steering, [switch])
        for _ in range(10):
            for host in ENDS:
                wan.send(host, arp_from(host))
            wan.wait(0.1)
    wan.received.clear()
    wan.send("src", arp_from("src"))
    assert [host for host, _ in wan.received] == ["dst"]


def test_a_host_cannot_make_up_links() -> None:
    wan = known(THESIS_B, ENDS)
    assert wan.network is not None
    links = wan.network.graph.links
    wan.send("src", discovery_frame(Port(6, 1), "02:00:00:00:00:01", wan.now_s, b"a guess"))
    wan.send("src", discovery_frame(Port(6, 1), "02:00:00:00:00:01", wan.now_s, SECRET)[:-20] + bytes(20))
    wan.wait(0)
    assert wan.network.graph.links == links


@pytest.mark.parametrize(("age_s", "found"), [(0.0, 2), (1.0, 2), (3600.0, 0), (-3600.0, 0)])
def test_links_are_made_of_questions_that_have_just_been_asked(age_s: float, found: int) -> None:
    """Those of before the machine was started have times that are still to come."""
    discovery = Discovery(SECRET)
    one, other = Port(1, 1), Port(2, 1)
    for port in (one, other):
        discovery.port(PortState(port, "0e:00:00:00:00:01"), 10_000.0)
    for sender, port in ((one, other), (other, one)):
        frame = discovery_frame(sender, "0e:00:00:00:00:01", 10_000.0 - age_s, SECRET)
        discovery.heard(port, frame, 10_000.0)
    assert len(discovery.links) == found
    assert all(discovery.may_be_edge(port) == (not found) for port in (one, other))


def test_entries_of_an_operator_keep_two_hosts_from_passing_questions_on() -> None:
    """As docs/controller.md says: each drops what looks like LLDP and comes in from a host."""
    wan = known(THESIS_B, ENDS)
    assert wan.network is not None
    links = wan.network.graph.links
    for port in wan.hosts:
        operators = Entry(0, 65_535, match(eth_type=ETH_LLDP, in_port=port.number), 0)
        wan.switches[port.switch].entries[operators.key] = operators
    one, other = wan.hosts
    for sender, host in ((one, wan.hosts[other]), (other, wan.hosts[one])):
        wan.send(host, discovery_frame(sender, "0e:00:00:00:00:01", wan.now_s, SECRET))
    wan.wait(2)
    assert wan.network.graph.links == links and wan.network.edge_ports() == set(wan.hosts)


def test_nothing_but_questions_beside_another_controller() -> None:
    wan = Wan(THESIS_B, ENDS)
    wan.connect(network(forwarding=False))
    wan.wait(2)
    assert wan.network is not None and len(wan.network.graph.links) == len(THESIS_B.links)
    entries = [entry for switch in wan.switches.values() for entry in switch.entries.values()]
    assert {entry.outputs for entry in entries} == {(CONTROLLER,)} and {entry.goto for entry in entries} == {
        None
    }


@pytest.mark.parametrize("forwarding", [True, False])
@pytest.mark.parametrize("of", [address, address6])
def test_hosts_that_have_not_spoken_are_asked_for(forwarding: bool, of: Callable[[str], str]) -> None:
    wan = Wan(THESIS_B, {**ENDS, "third": 5})
    wan.answering = True
    steering = network(forwarding=forwarding)
    wan.connect(steering)
    wan.wait(2 * (UNDECIDED_S + FIRST_S[-1]))
    assert steering.hosts.at(of("dst")) is None
    wan.do(steering.host_questions(of("dst")))
    (asked,) = {data for _, data in wan.received}
    assert [told.address for told in announced_by(asked)] == [None if of is address else OUR_ADDRESS]
    assert Counter(host for host, _ in wan.received) == {"src": 1, "dst": 1, "third": 1}
    host = steering.hosts.at(of("dst"))
    assert host is not None and wan.hosts[host.port] == "dst" and host.hardware == hardware("dst")
    assert [each.hardware for each in steering.hosts.all] == [hardware("dst")]
    wan.received.clear()
    wan.do(steering.host_questions("10.9.9.9"))
    assert Counter(host for host, _ in wan.received) == {"src": 1, "dst": 1, "third": 1}


@given(graphs())
@settings(max_examples=40)
def test_whatever_the_network_frames_to_all_arrive_once_where_there_is_a_way(graph: Graph) -> None:
    hosts = {f"h{switch}": switch for switch in graph.switches}
    wan = known(graph, hosts)
    for source, start in hosts.items():
        reached = {name for name, at in hosts.items() if at != start and all_simple_paths(graph, start, at)}
        wan.received.clear()
        wan.send(source, arp_from(source))
        assert Counter(host for host, _ in wan.received) == Counter(reached)
        for sink in reached:
            wan.received.clear()
            passed = wan.switches_passed(source, tcp_frame(source, sink, (1, 2)))
            shortest = min(len(path) for path in all_simple_paths(graph, start, hosts[sink]))
            assert [host for host, _ in wan.received] == [sink] and len(passed) == shortest + 1


def test_a_port_with_one_more_link_is_no_edge() -> None:
    wan = known(plain((1, 2)), {"one": 1, "two": 2})
    assert wan.network is not None
    assert wan.network.edge_ports() == frozenset(wan.hosts)


def test_delays_are_those_of_links_alone() -> None:
    """What it takes to tell a switch something, and to be told, is not the link's."""
    discovery = Discovery(SECRET, to_all=False)
    one, other = Port(1, 1), Port(2, 1)
    for port in (one, other):
        discovery.port(PortState(port, "0e:00:00:00:00:01"), 100.0)
    frames = dict(discovery.questions(100.0))
    discovery.heard(other, frames[one], 100.045)
    discovery.heard(one, frames[other], 100.012)
    discovery.heard(other, frames[one], 100.060)
    found = discovery.delays_s({1: 0.010, 2: 0.030})
    assert found[one, other] == pytest.approx(0.025) and found[other, one] == 0.0
    assert discovery.delays_s({})[one, other] == pytest.approx(0.045)


def test_delays_that_turn_out_shorter_are_taken_up() -> None:
    wan = known(plain((1, 2)), {"one": 1})
    assert wan.network is not None
    wan.cut |= set(wan.cables)
    for port in wan.cables:
        wan.network.port_gone(port)
    for port in wan.cables:
        wan.do(wan.network.port_changed(PortState(port, "0e:00:00:00:00:01"), wan.now_s))
    for start, end in wan.cables.items():
        wan.network.frame_in(
            end, discovery_frame(start, "02:00:00:00:00:01", wan.now_s - 0.2, SECRET), wan.now_s
        )
    wan.wait(0)
    (link,) = (link for link in wan.network.graph.links if link.start.switch == 1)
    assert link.delay_s == pytest.approx(0.2, abs=0.01)
    wan.cut.clear()
    wan.wait(3)
    assert [link.delay_s for link in wan.network.graph.links] == [0.0, 0.0]
