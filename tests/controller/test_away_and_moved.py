"""Streams of path sets while switches are away, over a restart, and when hosts move."""

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest
from graphs import THESIS_A, M, capacities, graph_of
from mpx_controller.errors import NoPath
from mpx_controller.graph import Graph, Link, Port
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import SETTLED_S
from mpx_controller.network.ports import PortState
from mpx_controller.path_sets.path_set import StreamKey
from mpx_controller.path_sets.selection import widest_apart
from mpx_controller.path_sets.sets import PathSets
from mpx_controller.path_sets.stream_entries import AGAIN_S
from running_controller import controller
from stream_wans import DST, LIMITS, SRC, current_paths, put, steered
from switches import Wan, address, arp_from
from wans import ENDS, network
from wire_switches import held, wire_wan

Eventually = Callable[..., None]


def ip(host: str) -> bytes:
    return ip_address(address(host)).packed


def test_a_restart_beside_another_controller_keeps_streams_too() -> None:
    wan = Wan(THESIS_A, ENDS)
    wan.answering = True
    first = network(forwarding=False)
    wan.connect(first)
    wan.wait(3)
    for each in (SRC, DST):
        wan.do(first.host_questions(each))
    sets = PathSets(first, Bands(), LIMITS)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, 4001, 4002, 4003)
    passed = [current_paths(wan, port) for port in range(4000, 4004)]
    assert [there for there, _ in passed] == [[1, between, 6] for between in (2, 3, 4, 5)]
    again = network(wan.now_s, forwarding=False)
    again.hosts.restore(first.hosts.all, wan.now_s)
    anew = PathSets(again, Bands(), LIMITS)
    anew.restore(sets.all.values(), sets.last)
    for switches in ((1, 6), (2,), (3,), (4,), (5,)):
        wan.connect(again, switches)
        wan.wait(0.25)
        wan.do(anew.reroute(wan.now_s))
        assert [current_paths(wan, port) for port in range(4000, 4004)] == passed
    wan.wait(SETTLED_S)
    wan.do(anew.reroute(wan.now_s))
    assert [current_paths(wan, port) for port in range(4000, 4004)] == passed


def test_streams_are_put_only_where_all_switches_can_be_told() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, path=1)
    wan.network.switch_down(3, wan.now_s)
    wan.do(sets.reroute(wan.now_s))
    assert current_paths(wan, 4000) == ([1, 3, 6], [6, 3, 1])  # which goes on forwarding
    put(wan, sets, made.number, 4000)
    assert current_paths(wan, 4000) == ([1, 3, 6], [6, 3, 1])
    assert put(wan, sets, made.number, 4001, 4002, 4003, 4004) == [0, 2, 3, 0]
    assert put(wan, sets, made.number, 4001, 4005, path=1) == [1, 1]  # once it is there
    assert current_paths(wan, 4001)[0] == current_paths(wan, 4001)[1][::-1] != [1, 3, 6]
    assert current_paths(wan, 4005)[0] == current_paths(wan, 4005)[1][::-1] != [1, 3, 6]
    for switch in (2, 4, 5):
        wan.network.switch_down(switch, wan.now_s)
    with pytest.raises(NoPath, match="switches connected"):
        put(wan, sets, made.number, 4006)
    assert 4006 not in {key.port for key in sets.get(made.number).placed}
    wan.connect(wan.network, [3])
    wan.wait(0.1)
    wan.do(sets.reroute(wan.now_s))
    assert current_paths(wan, 4001) == current_paths(wan, 4005) == ([1, 3, 6], [6, 3, 1])


def test_a_new_set_has_a_path_over_a_switch_that_is_away_only_where_so_there_are_more() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    wan.network.switch_down(3, wan.now_s)
    made = sets.assign(SRC, DST, 3, "me", wan.now_s)
    assert [each.path[0].end.switch for each in made.paths] == [2, 4, 5]
    assert made.max_flow_bps == 300 * M
    made = sets.assign(SRC, DST, 0, "me", wan.now_s)
    assert [each.path[0].end.switch for each in made.paths] == [2, 4, 5, 3]
    put(wan, sets, made.number, 4000, path=3)
    assert current_paths(wan, 4000)[0] != [1, 3, 6]
    wan.connect(wan.network, [3])
    wan.wait(0.1)
    wan.do(sets.reroute(wan.now_s))
    assert current_paths(wan, 4000) == ([1, 3, 6], [6, 3, 1])


def over(sets: PathSets, count: int, now_s: float) -> set[int]:
    """Return the switches that the paths of a new set lead over first."""
    made = sets.assign(SRC, DST, count, "me", now_s)
    return {each.path[0].end.switch for each in made.paths}


@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_new_set_has_paths_that_can_be_used_at_once_where_those_away_do_not_carry_much_more(
    count: int,
) -> None:
    both_wide = [(1, 2, 100 * M, 0.001), (2, 6, 100 * M, 0.001)] * 2  # two links beside each other
    wan, sets = steered(graph_of(*both_wide, *((at, to, 90 * M, 0.01) for at, to in pairs(3, 4))))
    assert wan.network is not None
    assert over(sets, 2, wan.now_s) == {2}
    wan.network.switch_down(2, wan.now_s)
    assert over(sets, count, wan.now_s) == ({3, 4} if count == 2 else {2, 3, 4})


def test_a_new_set_waits_a_moment_for_what_carries_far_more() -> None:
    wan, sets = steered(graph_of(*((at, to, 1000 * M, 0.01) for at, to in pairs(2)), *narrow(3)))
    assert wan.network is not None
    wan.network.switch_down(2, wan.now_s)
    assert over(sets, 1, wan.now_s) == {2}
    assert over(sets, 0, wan.now_s) == {2, 3}
    wan, sets = steered(graph_of(*((at, to, 1000 * M, 0.01) for at, to in pairs(2)), *narrow(3)))
    assert wan.network is not None
    wan.network.switch_down(3, wan.now_s)
    assert over(sets, 1, wan.now_s) == {2}


def test_paths_are_chosen_once_while_a_switch_is_away() -> None:
    chosen: list[int] = []

    def select(graph: Graph, start: int, destination: int, count: int) -> list[tuple[Link, ...]]:
        chosen.append(len(graph.switches))
        return widest_apart(graph, start, destination, count)

    wan, _ = steered(THESIS_A)
    assert wan.network is not None
    sets = PathSets(wan.network, Bands(), LIMITS, select)
    wan.network.switch_down(3, wan.now_s)
    for _ in range(5):
        sets.assign(SRC, DST, 4, "me", wan.now_s)
    assert chosen == [6, 5]


def pairs(*between: int) -> list[tuple[int, int]]:
    """Return the links of a path of one switch each between those of the hosts."""
    return [(at, to) for each in between for at, to in ((1, each), (each, 6))]


def narrow(*between: int) -> list[tuple[int, int, float, float]]:
    return [(at, to, 10 * M, 0.01) for at, to in pairs(*between)]


def test_a_host_whose_switch_is_away_for_a_moment_has_its_paths_when_that_is_back() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    wan.network.switch_down(6, wan.now_s)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    assert len(made.paths) == 4
    with pytest.raises(NoPath, match="switches connected; try again"):
        put(wan, sets, made.number, 4000)
    wan.connect(wan.network, [6])
    put(wan, sets, made.number, 4000, path=1)
    assert current_paths(wan, 4000) == ([1, 3, 6], [6, 3, 1])


def refuse(wan: Wan, sets: PathSets, number: int, key: StreamKey, switch: int) -> None:
    """Have a switch refuse the entries that it was told for a stream, as that is told of."""
    assert wan.network is not None
    for entry in wan.network.rules(switch).wanted.values():
        if key.port in dict(entry.match).values():
            wan.network.refused(switch, entry)


def test_a_switch_that_has_refused_a_stream_is_asked_again_when_it_may_have_changed() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    number, key = sets.assign(SRC, DST, 4, "me", wan.now_s).number, StreamKey(4000, "source")

    def changed() -> list[int]:
        wan.do(sets.reroute(wan.now_s))
        return current_paths(wan, 4000)[0]

    put(wan, sets, number, 4000, path=1)
    refuse(wan, sets, number, key, 3)
    keys, messages = sets.route_around(number, (), wan.now_s)
    wan.do(messages)
    assert keys == [key] and current_paths(wan, 4000)[0] == [1, 2, 6]
    assert sets.route_around(number, (), wan.now_s) == ([], [])
    assert changed() == [1, 2, 6]  # something else
    wan.wait(AGAIN_S - 1)
    assert changed() == [1, 2, 6]
    wan.wait(2)
    assert changed() == [1, 3, 6]
    refuse(wan, sets, number, key, 3)
    wan.do(sets.route_around(number, (), wan.now_s)[1])
    wan.wait(AGAIN_S + 1)  # it is left alone for longer when it refuses again
    assert sets.ask_again(wan.now_s) == ({}, []) and changed() == [1, 2, 6]
    wan.wait(AGAIN_S)
    asked, messages = sets.ask_again(wan.now_s)  # where nothing else changes
    wan.do(messages)
    assert asked == {number: [key]} and current_paths(wan, 4000)[0] == [1, 3, 6]
    assert sets.ask_again(wan.now_s) == ({}, [])
    refuse(wan, sets, number, key, 3)
    wan.do(sets.route_around(number, (), wan.now_s)[1])
    wan.wait(1)
    wan.connect(wan.network, [3])
    assert changed() == [1, 3, 6]


def test_a_stream_that_is_taken_back_goes_round_who_has_just_refused_it() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    number, key = sets.assign(SRC, DST, 4, "me", wan.now_s).number, StreamKey(4000, "source")
    put(wan, sets, number, 4000, path=1)
    for asked in (1, 2):
        before = sets.get(number).placed
        put(wan, sets, number, 4000, path=asked)
        refuse(wan, sets, number, key, 3)
        refuse(wan, sets, number, key, 4)
        wan.do(sets.take_back(number, [key], before, wan.now_s))
        assert sets.get(number).placed == before
        assert current_paths(wan, 4000)[0] == {1: [1, 2, 6], 2: [1, 3, 6]}[asked]


def test_without_a_path_of_the_set_only_a_way_of_connected_switches_is_taken() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    made = sets.assign(SRC, DST, 1, "me", wan.now_s)
    put(wan, sets, made.number, 4000)
    wan.network.switch_down(2, wan.now_s)
    put(wan, sets, made.number, 4001)
    assert (current_paths(wan, 4000)[0], current_paths(wan, 4001)) == ([1, 2, 6], ([1, 3, 6], [6, 3, 1]))


def test_frames_do_not_circle_where_a_switch_cannot_be_told() -> None:
    graph = graph_of(
        *((1, 6, 100 * M, 0.0), (1, 3, 1e9, 0.0), (3, 4, 1e9, 0.0)),
        *((4, 1, 10 * M, 0.0), (4, 5, 1e9, 0.0), (5, 7, 1e9, 0.0), (7, 6, 1e9, 0.0)),
    )
    wan, sets = steered(graph)
    assert wan.network is not None
    made = sets.assign(SRC, DST, 0, "me", wan.now_s)
    longest = max(range(len(made.paths)), key=lambda place: len(made.paths[place].path))
    assert len(made.paths[longest].path) > 3
    wan.network.switch_down(4, wan.now_s)
    put(wan, sets, made.number, 4000, path=longest)
    assert current_paths(wan, 4000) == ([1, 6], [6, 1])


def test_streams_follow_a_host_that_moves_to_another_switch_and_back() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    old, new = next(port for port, name in wan.hosts.items() if name == "dst"), Port(5, 1500)
    wan.hosts[new] = "nobody"
    wan.do(wan.network.port_changed(PortState(new, "0e:00:00:00:05:99"), wan.now_s))
    wan.wait(3)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, 4001, path=0)
    graph = wan.network.graph
    assert sets.follow() == ([], [])
    wan.hosts |= {old: "nobody", new: "dst"}
    wan.send("dst", arp_from("dst"))
    assert put(wan, sets, made.number, 4002) == [1]  # all of them move
    assert wan.network.graph is graph and sets.follow() == ([], [])
    for port in (4000, 4001, 4002):
        assert current_paths(wan, port) == ([1, 5], [5, 1])
    wan.hosts |= {old: "dst", new: "nobody"}
    wan.send("dst", arp_from("dst"))
    numbers, messages = sets.follow()
    wan.do(messages)
    assert numbers == [made.number]
    assert [current_paths(wan, port)[0][1] for port in (4000, 4001, 4002)] == [2, 2, 3]


@pytest.mark.parametrize("restart", ["", "anew", "with an older state file"])
def test_who_says_to_have_the_address_of_a_host_does_not_get_its_streams(restart: str) -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    at = Port(6, 1500)
    wan.hosts[at] = "other"
    wan.do(wan.network.port_changed(PortState(at, "0e:00:00:00:06:99"), wan.now_s))
    wan.wait(3)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000)
    if restart:
        older = restart == "with an older state file"
        saved = [replace(each, hardware=None) if older else each for each in sets.all.values()]
        sets = PathSets(wan.network, Bands(), LIMITS)
        for switch in wan.switches:
            wan.network.rules(switch).put(("stream", made.number, StreamKey(4000, "source")), [])
        wan.do(sets.restore(saved, made.number))
    wan.send("other", arp_from("other").replace(ip("other"), ip("dst")))
    taker = wan.network.hosts.at(DST)
    assert taker is not None and taker.port == at
    wan.do(sets.follow()[1])
    wan.do(sets.reroute(wan.now_s))
    put(wan, sets, made.number, 4001)
    wan.received.clear()
    for port in (4000, 4001):
        current_paths(wan, port)
    assert [host for host, _ in wan.received] == ["dst", "src"] * 2


def test_a_host_that_moves_is_followed_without_being_asked(tmp_path: Path, eventually: Eventually) -> None:
    (tmp_path / "capacities.json").write_text(capacities(THESIS_A))
    hosts = {**ENDS, "another": 5}
    with controller(tmp_path / "state.json") as running, wire_wan(running.port, THESIS_A, hosts) as switches:
        eventually(lambda: running.get("topology")["edges"] == ["1:1000", "5:1000", "6:1000"])
        number = running.ask("POST", "path-sets", {"source": SRC, "sink": DST})["id"]
        running.ask("POST", f"path-sets/{number}/streams", {"ports": [4000]})
        switches[5].frame_in(1000, arp_from("dst"))
        eventually(lambda: held(switches, 4000) == [1, 5])


def test_a_host_that_a_bridge_has_moved_is_asked_for_and_followed_back(
    tmp_path: Path, eventually: Eventually
) -> None:
    (tmp_path / "capacities.json").write_text(capacities(THESIS_A))
    hosts = {**ENDS, "x": 3, "y": 5}
    with controller(tmp_path / "state.json") as running, wire_wan(running.port, THESIS_A, hosts) as switches:
        eventually(lambda: len(running.get("topology")["edges"]) == 4)
        switches[3].frame_in(1000, arp_from("dst"))
        eventually(lambda: [each["port"] for each in running.get("topology")["hosts"]] == ["3:1000"])
        number = running.ask("POST", "path-sets", {"source": SRC, "sink": DST})["id"]
        running.ask("POST", f"path-sets/{number}/streams", {"ports": [4000]})
        eventually(lambda: held(switches, 4000) == [1, 3])
        for here, there in ((3, 5), (5, 3)):
            switches[here].bridged[1000] = switches[there], 1000
        eventually(lambda: running.get("topology")["unused"] == ["5:1000"])
        eventually(lambda: held(switches, 4000) == [1, 2, 6])
