"""Which path sets a change of the network concerns, and that those are all."""

from collections.abc import Callable
from pathlib import Path

import pytest
from graphs import THESIS_A, capacities, plain
from mpx_controller.controller import SETS_AT_ONCE
from mpx_controller.flows import SendOut
from mpx_controller.graph import Port
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import SILENT_S
from mpx_controller.path_sets.sets import PathSets
from running_controller import Running, controller
from stream_wans import DST, LIMITS, SRC, current_paths, put, steered
from switches import Wan, arp_from
from wans import ENDS, known
from wire_switches import held, wire_wan


def start(between: int) -> Port:
    """Return the port of the link from the first switch to one of those between."""
    ends = ((link.start.switch, link.end.switch, link.start) for link in THESIS_A.links)
    return next(port for at, to, port in ends if (at, to) == (1, between))


def lose(wan: Wan, port: Port) -> None:
    wan.carrier(port, up=False)
    wan.wait(0)


def test_only_sets_with_a_path_over_what_has_changed_are_affected() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    one, all_four = (sets.assign(SRC, DST, count, "me", wan.now_s).number for count in (1, 4))
    assert [each.path[0].end.switch for each in sets.get(one).paths] == [2]
    assert put(wan, sets, one, 4000) == [0]
    assert put(wan, sets, all_four, 5000, 5001, 5002, 5003) == [0, 1, 2, 3]
    sets.affected(wan.now_s)
    wan.network.rates_changed({}, {})
    wan.wait(5)
    assert sets.affected(wan.now_s) == []
    lose(wan, start(5))
    assert sets.affected(wan.now_s) == [all_four]
    lose(wan, start(2))
    concerned = sets.affected(wan.now_s)
    assert set(concerned) == {one, all_four}
    wan.do(sets.reroute(wan.now_s, concerned))
    assert sets.affected(wan.now_s) == [one]  # on none of its paths: any change can lead to a shorter way
    wan.carrier(start(2), up=True)
    wan.wait(1)
    assert set(sets.affected(wan.now_s)) == {one, all_four}
    sets.release(one)
    wan.network.switch_down(2, wan.now_s)
    assert sets.affected(wan.now_s) == [all_four]
    wan.connect(wan.network, [2])
    sets.release(all_four)
    assert sets.affected(wan.now_s) == []


def test_streams_that_stay_where_they_are_are_not_told_anew() -> None:
    wan, sets = steered(THESIS_A)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, 4001, 4002, 4003)
    wan.do(sets.reroute(wan.now_s))
    lost = made.paths[1].path[0].start
    lose(wan, lost)
    messages = [message for _, message in sets.reroute(wan.now_s) if not isinstance(message, SendOut)]
    assert {str(message) for message in messages} == {text for text in map(str, messages) if "4001" in text}
    assert sets.reroute(wan.now_s) == []


def test_a_switch_that_was_forgotten_gets_its_streams_again() -> None:
    wan = known(plain((1, 2)), {"src": 1, "dst": 1})
    assert wan.network is not None
    sets = PathSets(wan.network, Bands(), LIMITS)
    made = sets.assign(SRC, DST, 1, "me", wan.now_s)
    put(wan, sets, made.number, 4000)
    wan.do(sets.reroute(wan.now_s))
    before = dict(wan.switches[1].entries)
    wan.network.switch_down(1, wan.now_s)
    wan.wait(SILENT_S + 1)
    wan.do(sets.reroute(wan.now_s))
    wan.switches[1].entries.clear()
    wan.connect(wan.network, [1])
    wan.wait(2)
    wan.do(sets.reroute(wan.now_s))
    for host in ENDS:
        wan.send(host, arp_from(host))
    assert wan.switches[1].entries == before


def test_streams_follow_a_host_whose_new_port_is_lost_too() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000)
    wan.do(sets.reroute(wan.now_s))
    home = next(port for port, host in wan.hosts.items() if host == "dst")
    there = Port(6, 2000)
    del wan.hosts[home]
    wan.hosts[there] = "dst"
    wan.connect(wan.network, [6])
    wan.wait(2)
    wan.send("dst", arp_from("dst"))
    wan.do(sets.reroute(wan.now_s))
    assert current_paths(wan, 4000)[0][-1] == 6 and wan.received[-1][0] == "src"
    del wan.hosts[there]
    wan.hosts[home] = "dst"
    wan.network.port_gone(there)
    wan.wait(0)
    assert sets.affected(wan.now_s) == [made.number]


@pytest.mark.parametrize("count", [SETS_AT_ONCE // 2, 2 * SETS_AT_ONCE + 1])
def test_however_many_there_are_all_leave_a_link_that_is_lost(
    tmp_path: Path, eventually: Callable[..., None], count: int
) -> None:
    (tmp_path / "capacities.json").write_text(capacities(THESIS_A))
    config = f"[path_sets]\nsets = {count}\n[api]\nrequests_per_s = 1000"
    with (
        controller(tmp_path / "state.json", 0, config, errors=tmp_path / "log") as running,
        wire_wan(running.port, THESIS_A, ENDS) as switches,
    ):
        eventually(lambda: running.get("topology")["edges"] == ["1:1000", "6:1000"])
        ports = range(4000, 4000 + count)
        for port in ports:
            assigned(running, port)
        lost = [held(switches, port)[1] for port in ports]
        assert len(set(lost)) == 1
        switches[1].carrier(start(lost[0]).number, up=False)
        eventually(lambda: not any(lost[0] in held(switches, port) for port in ports))
        eventually(lambda: all(len(held(switches, port)) == 3 for port in ports))  # others may be later


def assigned(running: Running, port: int) -> None:
    number = running.ask("POST", "path-sets", {"source": SRC, "sink": DST})["id"]
    running.ask("POST", f"path-sets/{number}/streams", {"ports": [port], "path": 0})
