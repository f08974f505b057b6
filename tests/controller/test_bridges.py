"""Ordinary bridges that join ports of our switches: no frame circles, and all hosts are reached."""

from collections import Counter

import pytest
from graphs import THESIS_A, graphs, plain
from hypothesis import given, settings
from hypothesis import strategies as st
from mpx_controller.frame_budget import LINK_BURST, TO_ALL_BURST, FrameBudget
from mpx_controller.graph import Graph, Port
from mpx_controller.network.bridged import LOST_S
from mpx_controller.network.discovery import ASK_EVERY_S, TO_ALL_EACH
from mpx_controller.network.discovery_frame import discovery_frame, to_all_frame
from mpx_controller.network.network import SILENT_S
from mpx_controller.network.stray_hosts import STRAY_S
from switches import Wan, address, arp_from, hardware, tcp_frame
from wans import ENDS, SECRET, network

from mpx.engine.token_bucket import TokenBucket

FOUND_S = TO_ALL_EACH * ASK_EVERY_S + 1
HARDWARE = "02:00:00:00:00:01"


def bridged(graph: Graph, hosts: dict[str, int], *bridges: str) -> Wan:
    """Return a network that has been found; each bridge joins the ports of some hosts."""
    wan = Wan(graph, hosts)
    wan.bridges = [{port for port, host in wan.hosts.items() if host in names} for names in bridges]
    wan.connect(network())
    wan.wait(FOUND_S)
    return wan


def reached(wan: Wan, host: str) -> Counter[str]:
    """Return how often each host gets a frame to all."""
    wan.received.clear()
    wan.send(host, arp_from(host))
    return Counter(name for name, _ in wan.received)


def unused(wan: Wan) -> set[str]:
    assert wan.network is not None
    return {wan.hosts[port] for port in wan.network.unused_ports()}


def test_of_the_ports_that_a_bridge_joins_one_is_used() -> None:
    wan = bridged(THESIS_A, {**ENDS, "v": 5, "x": 2, "y": 3}, "xyv")
    assert unused(wan) == {"y", "v"}
    for host in ENDS:
        assert reached(wan, host) == Counter({*ENDS, "v", "x", "y"} - {host})
    assert reached(wan, "x") == Counter([*ENDS])
    host = wan.network.hosts.at(address("x")) if wan.network else None
    assert host is not None and wan.hosts[host.port] == "x"


def test_frames_for_a_host_that_its_bridge_does_not_know_do_not_come_back() -> None:
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3}, "xy")
    for host in (*ENDS, "x", "y"):
        wan.send(host, arp_from(host))
    wan.received.clear()
    for host in ("x", "y"):
        assert wan.switches_passed("src", tcp_frame("src", host, (1, 2))) == [1, 2]
    assert Counter(host for host, _ in wan.received) == {"x": 2, "y": 2}
    wan.received.clear()
    wan.send("y", tcp_frame("y", "src", (2, 1)))
    assert [host for host, _ in wan.received] == ["src"]


def test_answers_of_hosts_beyond_a_bridge_place_them_at_the_port_that_is_used() -> None:
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3}, "xy")
    assert wan.network is not None
    wan.answering = True
    wan.do(wan.network.host_questions(address("y")))
    host = wan.network.hosts.at(address("y"))
    assert host is not None and wan.hosts[host.port] == "x"


def test_another_port_takes_over() -> None:
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3}, "xy")
    wan.send("x", arp_from("x"))
    lost = next(port for port, host in wan.hosts.items() if host == "x")
    wan.carrier(lost, up=False)
    wan.wait(0)
    assert unused(wan) == set() and reached(wan, "src") == {"dst": 1, "x": 1, "y": 1}
    wan.send("x", arp_from("x"))
    assert wan.switches_passed("src", tcp_frame("src", "x", (1, 2))) == [1, 3]
    wan.carrier(lost, up=True)
    for _ in range(30):
        wan.wait(0.1)
        assert reached(wan, "src")["x"] == 1
    assert unused(wan) == {"y"}
    wan.carrier(lost, up=False)
    wan.bridges.clear()
    wan.carrier(lost, up=True)
    wan.wait(LOST_S / 4)
    assert unused(wan) == set()


def test_a_bridge_that_comes_later_is_found_and_one_that_goes_is_forgotten() -> None:
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3})
    assert unused(wan) == set()
    wan.send("y", arp_from("y"))
    wan.bridges = [{port for port, host in wan.hosts.items() if host in "xy"}]
    wan.wait(FOUND_S)
    assert wan.network is not None and wan.network.hosts.at(address("y")) is None
    assert unused(wan) == {"y"} and reached(wan, "src") == {"dst": 1, "x": 1, "y": 1}
    wan.bridges.clear()
    wan.wait(LOST_S + FOUND_S)
    assert unused(wan) == set() and reached(wan, "src") == {"dst": 1, "x": 1, "y": 1}


def places(wan: Wan, *hosts: str) -> dict[str, str]:
    """Return at whose port each host is known to be."""
    assert wan.network is not None
    found = {host: wan.network.hosts.at(address(host)) for host in hosts}
    return {host: wan.hosts[there.port] for host, there in found.items() if there is not None}


def test_hosts_that_circling_frames_have_moved_are_found_again() -> None:
    """A bridge is put in while its ports are up; what is under way then comes in a moment later."""
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3, "z": 4})
    network = wan.network
    assert network is not None
    for host in ENDS:
        wan.send(host, arp_from(host))
    x, y = (next(port for port, host in wan.hosts.items() if host == name) for name in "xy")
    wan.bridges = [{x, y}]
    network.frame_in(x, arp_from("src"), wan.now_s)
    wan.do(network.frame_in(x, arp_from("dst"), wan.now_s))
    assert places(wan, *ENDS) == {"src": "x", "dst": "x"}
    while not unused(wan):
        wan.wait(0.1)
    wan.do(network.frame_in(x, arp_from("src"), wan.now_s))
    assert places(wan, *ENDS) == {}
    wan.received.clear()
    wan.send("y", tcp_frame("y", "src", (1, 2)))
    assert Counter(host for host, _ in wan.received) == {"src": 1, "dst": 1, "z": 1}
    wan.answering = True
    wan.do(network.ask_stray(lambda: {hardware("src"), hardware("z")}, wan.now_s))
    assert places(wan, *ENDS) == {"src": "src"}
    wan.send("dst", arp_from("dst"))
    wan.send("x", arp_from("x"))
    assert places(wan, *ENDS, "x") == {"src": "src", "dst": "dst"}
    wan.wait(STRAY_S)
    wan.send("x", arp_from("x"))
    assert places(wan, *ENDS, "x") == {"src": "src", "dst": "dst", "x": "x"}


def test_who_does_not_answer_while_frames_are_under_way_is_asked_once_more() -> None:
    wan = bridged(plain((1, 2)), {"a": 1, "x": 1, "y": 2})
    assert wan.network is not None
    x, y = (next(port for port, host in wan.hosts.items() if host == name) for name in "xy")
    wan.do(wan.network.frame_in(y, arp_from("a"), wan.now_s))
    wan.bridges = [{x, y}]
    while not unused(wan):
        wan.wait(0.1)
    asked = [bool(wan.network.ask_stray(lambda: {hardware("a")}, wan.now_s + n / 2)) for n in range(5)]
    assert asked == [True, False, True, False, False]


def test_hosts_heard_over_a_bridge_while_it_was_the_only_way_are_found_again() -> None:
    wan = bridged(plain((1, 2)), {"a": 1, "b": 2, "x": 1, "y": 2}, "xy")
    assert unused(wan) == {"y"}
    cable = next(iter(wan.cables))
    wan.carrier(cable, up=False)
    wan.wait(1)
    for host in "ab":
        wan.send(host, arp_from(host))
    assert unused(wan) == set() and set(places(wan, "a", "b").values()) & {"x", "y"}
    wan.carrier(cable, up=True)
    wan.wait(1)
    assert unused(wan) == {"y"}
    for one, other in ("ab", "ba"):
        wan.received.clear()
        wan.send(one, tcp_frame(one, other, (1, 2)))
        assert other in {host for host, _ in wan.received}


def test_what_a_switch_has_that_is_away_stays_as_it_is() -> None:
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3}, "xy")
    assert wan.network is not None
    wan.bridges.clear()
    wan.wait(LOST_S / 2)
    wan.network.switch_down(2, wan.now_s)
    wan.network.switch_down(3, wan.now_s)
    wan.wait(SILENT_S - 1)
    assert unused(wan) == {"y"}


@pytest.mark.parametrize("heard_first", [False, True])
def test_frames_do_not_circle_when_the_controller_has_stood_still(heard_first: bool) -> None:
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3}, "xy")
    network = wan.network
    assert network is not None
    links = network.graph.links
    wan.now_s += 3 * LOST_S
    if heard_first:
        wan.send("x", to_all_frame(min(wan.hosts), HARDWARE, wan.now_s - 2 * LOST_S, SECRET))
    messages = network.tick(wan.now_s)  # before what waits is read
    assert unused(wan) == {"y"} and network.graph.links == links
    wan.do(messages)
    wan.bridges.clear()
    wan.wait(LOST_S - FOUND_S)
    assert unused(wan) == {"y"}
    wan.wait(2 * FOUND_S)
    assert unused(wan) == set()


def test_parts_that_only_bridges_join_are_joined_by_one() -> None:
    wan = bridged(plain((1, 2), (3, 4)), {"a": 1, "c": 3, "p": 2, "q": 4, "r": 1, "s": 3}, "pq", "rs")
    assert len(unused(wan)) == 1
    assert reached(wan, "a") == Counter("cpqrs") and reached(wan, "c") == Counter("apqrs")


def test_nobody_can_make_up_what_bridges_join() -> None:
    wan = bridged(THESIS_A, ENDS)
    assert wan.network is not None
    ports = sorted(wan.hosts)
    links = wan.network.graph.links
    for frame in (
        to_all_frame(ports[0], HARDWARE, wan.now_s, b"a guess"),
        to_all_frame(ports[0], HARDWARE, wan.now_s - 60, SECRET),
        to_all_frame(ports[0], HARDWARE, wan.now_s + 60, SECRET),
        to_all_frame(Port(77, 1), HARDWARE, wan.now_s, SECRET),
        to_all_frame(ports[0], HARDWARE, wan.now_s, SECRET)[:30],
        discovery_frame(ports[0], HARDWARE, wan.now_s, SECRET)[:12]
        + to_all_frame(ports[0], HARDWARE, wan.now_s, SECRET)[12:14]
        + discovery_frame(ports[0], HARDWARE, wan.now_s, SECRET)[14:],
    ):
        wan.send("dst", frame)
    wan.wait(0)
    assert unused(wan) == set() and wan.network.graph.links == links
    wan.send("dst", to_all_frame(ports[0], HARDWARE, wan.now_s, SECRET))
    wan.wait(0)
    assert unused(wan) == {"dst"}


def test_who_floods_a_port_with_questions_has_no_frames_circle() -> None:
    """Those of ours are dropped then; what comes in tells that there is something as before."""
    wan = bridged(THESIS_A, {**ENDS, "x": 2, "y": 3}, "xy")
    joined, wan.bridges = wan.bridges, []
    for _ in range(int(2 * LOST_S)):
        for port in joined[0]:
            wan.send(wan.hosts[port], to_all_frame(port, HARDWARE, wan.now_s, b"a guess"))
        wan.wait(1)
    assert unused(wan) == {"y"}


@pytest.mark.parametrize(
    ("frame", "many"),
    [
        (to_all_frame(Port(1, 1), HARDWARE, 0.0, SECRET), TO_ALL_BURST),
        (discovery_frame(Port(1, 1), HARDWARE, 0.0, SECRET), LINK_BURST),
    ],
)
def test_questions_of_each_kind_have_a_budget_of_their_own(frame: bytes, many: float) -> None:
    budget = FrameBudget(TokenBucket(1.0, 1.0))
    assert sum(budget.allows(1, frame, 0.0) for _ in range(1000)) == many
    assert budget.allows(1, arp_from("src"), 0.0)


def test_no_questions_to_all_beside_another_controller() -> None:
    wan = Wan(THESIS_A, {**ENDS, "x": 2, "y": 3})
    wan.bridges = [{port for port, host in wan.hosts.items() if host in "xy"}]
    wan.connect(network(forwarding=False))
    wan.wait(FOUND_S)
    assert unused(wan) == set() and wan.network is not None and len(wan.network.edge_ports()) == 4


@given(graphs(), st.data())
@settings(max_examples=40)
def test_whatever_bridges_join_frames_to_all_arrive_once(graph: Graph, data: st.DataObject) -> None:
    switches = sorted(graph.switches)
    hosts = {
        chr(ord("a") + n): at for n, at in enumerate(switches + switches[: data.draw(st.integers(0, 6))])
    }
    which = {host: data.draw(st.integers(0, 3)) for host in hosts}  # its bridge; 0: none
    bridges = ["".join(host for host in hosts if which[host] == number) for number in (1, 2, 3)]
    wan = bridged(graph, hosts, *bridges)
    joined = {at: {at} for at in switches}
    pairs = [(link.start.switch, link.end.switch) for link in graph.links]
    pairs += [(hosts[one], hosts[other]) for names in bridges for one in names for other in names]
    for one, other in pairs:
        whole = joined[one] | joined[other]
        joined |= dict.fromkeys(whole, whole)
    for host, at in hosts.items():
        mine = [each for each in hosts if which[each] == which[host] != 0] or [host]
        there = {each for each in hosts if hosts[each] in joined[at]}
        assert reached(wan, host) == Counter(there.difference(mine))
        assert hardware(host) in {each.hardware for each in wan.network.hosts.all} if wan.network else False
