"""How a lab is built, as a list of steps, and what is written down about it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_topologies import topologies
from mpx_lab.capacities import capacities
from mpx_lab.own_controller import OWN, missing
from mpx_lab.plan import hosts_file, parse_controller, plan
from mpx_lab.shape import Shape
from mpx_lab.state import Owner, State
from mpx_lab.steps import (
    AddNamespace,
    Configure,
    Controller,
    Ip,
    PlainFrames,
    StartController,
    StartLink,
    StartRelay,
    WaitFound,
    WaitReachable,
    WriteFile,
    netns_name,
)
from mpx_lab.topologies import TOPOLOGIES, named
from mpx_lab.topology import LINK_SEEDS, Link, Topology

from mpx.errors import UsageError


@given(topologies(), st.sampled_from((None, Controller("127.0.0.1", 6653), OWN)))
def test_nothing_is_used_before_it_is_there_and_everything_is_the_labs_own(
    topology: Topology, controller: Controller | None
) -> None:
    namespaces: set[str] = set()
    devices: set[tuple[str, str]] = set()
    for step in plan(topology, "x", controller):
        match step:
            case AddNamespace(netns):
                assert netns.startswith("mpxlab.x.") and netns not in namespaces
                namespaces.add(netns)
            case StartLink():
                made = {step.a[:2], step.b[:2]}
                assert len(made) == 2 and not made & devices
                assert {netns for netns, _ in made} <= namespaces
                assert step.a_to_b.seed != step.b_to_a.seed
                devices |= made
            case Ip(netns, lines):
                assert netns in namespaces
                for line in lines:
                    words = line.split()
                    if words[:2] == ["link", "add"]:
                        made = {(netns, words[2]), (words[-1], words[words.index("name") + 1])}
                        assert len(made) == 2 and not made & devices and words[-1] in namespaces
                        devices |= made
                    elif "dev" in words and words[-1] != "lo":
                        assert (netns, words[words.index("dev") + 1]) in devices
            case PlainFrames(netns, device):
                assert (netns, device) in devices
            case WaitReachable(pairs, within_s):
                assert {netns for pair in pairs for netns, _ in pair} <= namespaces
                assert within_s > 2 * sum(link.delay_s for link in topology.links)
    assert all(len(device) < 16 for _, device in devices)
    ways = len(topology.hosts) if controller == OWN and topology.switches else 0
    assert len(devices) == 2 * (len(topology.links) + ways)


@given(topologies(), st.lists(st.integers(0, LINK_SEEDS - 1), min_size=2, max_size=4, unique=True))
def test_every_direction_of_every_link_has_losses_of_its_own_for_each_seed(
    topology: Topology, seeds: list[int]
) -> None:
    def shapes(seed: int) -> list[Shape]:
        seeded = replace(topology, links=tuple(replace(link, seed=seed) for link in topology.links))
        steps = [step for step in plan(seeded, "x") if isinstance(step, StartLink)]
        return [shape for step in steps for shape in (step.a_to_b, step.b_to_a)]

    drawn = [shape.seed for seed in seeds for shape in shapes(seed)]
    assert len(set(drawn)) == len(drawn)


@given(topologies())
def test_every_switch_gets_its_ports_in_the_order_that_the_capacities_name(topology: Topology) -> None:
    words = [word for step in plan(topology, "x") if isinstance(step, Configure) for word in step.arguments]
    ports: dict[tuple[str, int], str] = {}
    for i, word in enumerate(words):
        if word == "add-port":
            request = next(one for one in words[i:] if one.startswith("ofport_request="))
            ports[words[i + 1], int(request.partition("=")[2])] = words[i + 2]
    told = {}
    for one in capacities(topology, {}):
        for side in ("a", "b"):
            end = one[side]
            assert isinstance(end, dict)
            if "switch" in end:
                told[end["switch"], end["port"]] = f"{one['link']}.{side}"
                assert end["datapath_id"] == topology.datapath_id(end["switch"])
    assert told == ports


def test_only_switches_in_a_circle_speak_the_spanning_tree_protocol() -> None:
    def speaks(topology: Topology, controller: Controller | None = None) -> bool:
        (step,) = (step for step in plan(topology, "x", controller) if isinstance(step, Configure))
        return "rstp_enable=true" in step.arguments

    assert speaks(named("thesis-a"))
    assert not speaks(named("dumbbell"))
    assert not speaks(named("thesis-a"), Controller("127.0.0.1", 6653))


def test_two_links_between_the_same_switches_are_a_circle() -> None:
    links = (Link("a", "s1"), Link("s1", "s2", "one"), Link("s1", "s2", "two"), Link("s2", "b"))
    assert Topology("t", ("a",), ("b",), links, ("s1", "s2")).has_loop
    assert not Topology("t", ("a",), ("b",), (*links[:2], links[3]), ("s1", "s2")).has_loop


def test_with_a_controller_the_switches_wait_for_it_and_up_does_not() -> None:
    steps = plan(named("dumbbell"), "x", Controller("127.0.0.1", 6653))
    (words,) = (step.arguments for step in steps if isinstance(step, Configure))
    assert words.count("fail_mode=secure") == 2 and words.count("set-controller") == 2
    assert words.count("unix:controller.sock") == 2
    for limit in ("controller_rate_limit=1000", "controller_burst_limit=1000"):
        assert words.count(limit) == 2
    assert any(isinstance(step, StartRelay) for step in steps)
    assert not any(isinstance(step, WaitReachable | WaitFound) for step in steps)


def test_with_its_own_controller_a_lab_waits_for_links_then_for_hosts_then_until_it_knows_them() -> None:
    steps = plan(named("dumbbell"), "x", OWN)
    (words,) = (step.arguments for step in steps if isinstance(step, Configure))
    assert words.count("tcp:127.0.0.1:6653") == words.count("controller_rate_limit=1000") == 2
    kinds = [type(step) for step in steps]
    assert StartRelay not in kinds
    assert kinds.index(StartController) < kinds.index(Configure)
    assert kinds[-3:] == [WaitFound, WaitReachable, WaitFound]
    links, _, hosts = steps[-3:]
    assert isinstance(links, WaitFound) and (links.links, links.addresses) == (2, ())
    assert isinstance(hosts, WaitFound) and hosts.links == 2
    assert set(hosts.addresses) == {f"{net}{n}" for net in ("10.0.0.", "fd00::") for n in range(1, 9)}


def test_a_host_asks_from_its_first_address_that_the_controller_knows() -> None:
    links = (Link("a", "b", "direct"), Link("a", "s"), Link("b", "s"), Link("c", "a", "other"))
    topology = Topology("t", ("a", "c"), ("b",), links, ("s",))
    steps = plan(topology, "x", OWN)
    lines = [(step.netns, line) for step in steps if isinstance(step, Ip) for line in step.lines]
    for host, address in (("a", "10.0.1.1"), ("b", "10.0.1.3"), ("c", "10.0.2.2")):
        assert (f"mpxlab.x.{host}", f"route add 10.254.0.254 dev mgmt src {address}") in lines
    back = [line for netns, line in lines if netns == "mpxlab.x.switches" and line.endswith("dev mgmt.1")]
    assert back == [f"route add 10.0.{n}.1 dev mgmt.1" for n in range(3)]
    known = steps[-1]
    assert isinstance(known, WaitFound) and known.links == 0  # a host with no neighbour there says nothing
    assert known.addresses == ("10.0.1.1", "fd00:0:0:1::1", "10.0.1.3", "fd00:0:0:1::3")


def test_what_a_controller_has_not_found_is_said() -> None:
    told = {"links": [{}, {}], "hosts": [{"addresses": ["10.0.0.1"]}, {"addresses": []}]}
    assert missing(told, 4, ()) == "it has found 2 of 4 directions of links"
    assert missing(told, 2, ("10.0.0.1", "fd00::1")) == "it has not heard of fd00::1"
    assert missing(told, 2, ("10.0.0.1",)) == ""


def test_a_direct_link_needs_no_switches() -> None:
    kinds = {type(step) for step in plan(named("path"), "x")}
    assert kinds == {WriteFile, AddNamespace, StartLink, Ip, WaitReachable}


def test_no_lab_is_meant_by_the_names_of_another() -> None:
    assert not netns_name("ab", "c").startswith(netns_name("a", ""))


def test_the_hosts_file_names_every_address() -> None:
    lines = hosts_file(named("two-links")).splitlines()
    assert "10.0.1.2 dst" in lines and "fd00::1 src" in lines and "127.0.0.1 localhost" in lines


@pytest.mark.parametrize(
    "text", ["tcp:6653", "tcp:host:", "ssl:host:6653", "tcp:host:0", "tcp:host:65536", ""]
)
def test_what_names_no_controller_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="tcp:HOST:PORT"):
        parse_controller(text)


def test_controllers() -> None:
    assert parse_controller("tcp:[::1]:6653", "http://r") == Controller("::1", 6653, "http://r")
    assert parse_controller("own") is OWN
    with pytest.raises(UsageError, match="somebody else runs"):
        parse_controller("own", "http://r")


@given(topologies())
def test_the_state_of_any_lab_is_read_as_it_was_written(topology: Topology) -> None:
    for state in (
        State("x", topology),
        State("x", topology, OWN),
        State("x", topology, Controller("127.0.0.1", 6653, None, "http://x"), Owner(1, 2)),
    ):
        assert State.from_json(state.to_json()) == state


def test_capacities_are_plain_json() -> None:
    for topology in TOPOLOGIES:
        assert json.loads(json.dumps(capacities(topology, {})))[0]["link"] == topology.links[0].name
