"""Topologies are values: what fits together, which addresses come out, and the named ones."""

import math
from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_topologies import topologies
from mpx_lab.topologies import TOPOLOGIES, named
from mpx_lab.topology import Link, Topology, wan

from mpx.errors import UsageError


def reachable(topology: Topology, host: str, first: Link) -> set[tuple[str, str]]:
    """Walk from one interface over switches, and return the interfaces that are met."""
    met = {(host, first.name)}
    other = first.b if first.a == host else first.a
    waiting, seen = deque([(other, first)]), set()
    while waiting:
        end, link = waiting.popleft()
        if end not in topology.switches:
            met.add((end, link.name))
        elif end not in seen:
            seen.add(end)
            for way in topology.ports(end):
                waiting.append((way.b if way.a == end else way.a, way))
                if way.a in topology.hosts or way.b in topology.hosts:
                    met.add((way.a if way.a in topology.hosts else way.b, way.name))
    return met


@given(topologies())
def test_two_interfaces_share_a_network_exactly_when_frames_get_from_one_to_the_other(
    topology: Topology,
) -> None:
    faces = [face for host in topology.hosts for face in topology.interfaces(host)]
    links = {link.name: link for link in topology.links}
    for face in faces:
        met = reachable(topology, face.host, links[face.link])
        same = {(other.host, other.link) for other in faces if other.network == face.network}
        assert same == met
    assert {(a.network, b.network) for a, b in topology.neighbours()} <= {(n, n) for n in range(250)}


@given(topologies())
def test_devices_and_hardware_addresses_are_unique(topology: Topology) -> None:
    for host in topology.hosts:
        devices = [face.device for face in topology.interfaces(host)]
        assert devices == [f"eth{i}" for i in range(len(devices))]
    macs = [face.mac for host in topology.hosts for face in topology.interfaces(host)]
    assert len(macs) == len(set(macs))


@given(topologies(), st.floats(0.01, 10))
def test_scaling_keeps_delays_and_the_ratio_of_queue_and_rate(topology: Topology, scale: float) -> None:
    scaled = topology.scaled(scale)
    assert scaled.scale == pytest.approx(topology.scale * scale)
    for before, after in zip(topology.links, scaled.links, strict=True):
        assert after.delay_s == before.delay_s
        assert (after.rate_bps is None) == (before.rate_bps is None)
        if before.rate_bps:
            assert after.rate_bps == pytest.approx(before.rate_bps * scale, abs=1)
        assert scaled.emulated(after) == topology.emulated(before)


def test_scaling_keeps_the_queue_in_packets() -> None:
    link = Link("a", "b", rate_bps=100, queue_packets=500).scaled(0.5)
    assert (link.rate_bps, link.queue_packets) == (50, 500)


@pytest.mark.parametrize("scale", [0, -1, 101, math.nan])
def test_an_impossible_scale_is_refused(scale: float) -> None:
    with pytest.raises(UsageError, match="scale"):
        named("path").scaled(scale)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ((Link("a", "b"), Link("a", "c")), "'c', which is neither"),
        ((Link("a", "b"), Link("a", "b")), "two links .* called 'a-b'"),
        ((), "'a' has no link"),
    ],
)
def test_links_that_do_not_fit_are_refused(links: tuple[Link, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Topology("t", ("a",), ("b",), links)


@pytest.mark.parametrize("name", ["switches", "localhost", "A", "", "-a", "a.b", "a" * 16, "a\n"])
def test_a_host_that_cannot_be_called_so_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        Topology("t", (name,), ("b",), (Link(name, "b", "l"),))


def test_one_thing_has_one_name() -> None:
    with pytest.raises(UsageError, match="twice"):
        Topology("t", ("a",), ("b",), (Link("a", "b"),), ("a",))
    with pytest.raises(UsageError, match="both ends"):
        Link("a", "a", "loop")
    with pytest.raises(UsageError, match="not a valid name for the link"):
        Link("a-long-name", "another-one")


def test_a_useful_topology_takes_six_lines() -> None:
    topology = Topology(
        "mine",
        sources=("src",),
        sinks=("dst",),
        links=(wan("src", "dst", rate_bps=100_000_000, rtt_s=0.040),),
    )
    assert topology.links[0].queue_bytes == 500_000
    assert [face.ipv4 for face in topology.interfaces("dst")] == ["10.0.0.2"]


MAX_FLOW_MBIT = {
    "path": 200,
    "dumbbell": 200,
    "thesis-v": 50,
    "thesis-a": 400,
    "thesis-b": 200,
    "thesis-c": 200,
    "thesis-t1": 150,
    "thesis-t2": 250,
    "pragma-4": 200,
    "pragma-2": 200,
    "two-links": 200,
    "uneven-links": 150,
    "switched-links": 200,
    "switched-uneven": 150,
    "ceph6": 200,
    "star": 100,
}


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.name)
def test_the_named_topologies_carry_what_the_papers_say(topology: Topology) -> None:
    assert max_flow(topology, topology.sources[0], topology.sinks[0]) == MAX_FLOW_MBIT[topology.name] * 1e6
    assert named(topology.name) is topology
    assert topology.text


def test_a_name_that_is_none_says_which_there_are() -> None:
    with pytest.raises(UsageError, match="path, dumbbell, thesis-a"):
        named("nosuch")


@pytest.mark.parametrize(
    ("name", "path", "rtt_ms", "rate_mbit"),
    [
        ("path", "src dst", 60, 200),
        ("dumbbell", "src3 left right dst3", 128, 200),
        ("thesis-v", "src s1 s2 dst", 100, 50),
        ("thesis-a", "src s1 s4 s6 dst", 0, 100),
        ("thesis-b", "src s1 s2 s4 s6 dst", 0, 100),
        ("thesis-c", "src s1 s2 s3 s6 dst", 30, 50),
        ("thesis-c", "src s1 s5 s6 dst", 120, 100),
        ("thesis-t1", "src s1 s2 s3 s4 s7 dst", 60, 100),
        ("thesis-t1", "src s1 s2 s6 s7 dst", 110, 50),
        ("thesis-t2", "src s1 s5 s7 dst", 160, 100),
        ("pragma-4", "naist s-naist ucsd s-uf uf", 191, 166),
        ("pragma-4", "naist s-naist osaka ucsd s-uf uf", 183, 40),
        ("pragma-4", "naist s-naist tokyo la s-uf uf", 211, 148),
        ("pragma-4", "naist s-naist ucsd la s-uf uf", 191, 34),
        ("pragma-2", "naist s-naist tokyo la s-uf uf", 191, 100),
        ("pragma-2", "naist s-naist s-uf uf", 191, 100),
        ("switched-links", "src s1 s2 s3 dst", 0, 100),
        ("star", "src1 hub dst2", 40, 100),
    ],
)
def test_paths_of_the_named_topologies(name: str, path: str, rtt_ms: float, rate_mbit: float) -> None:
    topology = named(name)
    ends = path.split()
    links = [next(link for link in topology.links if set(link.ends) == {a, b}) for a, b in pairwise(ends)]
    assert sum(2 * link.delay_s for link in links) == pytest.approx(rtt_ms / 1000)
    assert min(link.rate_bps or math.inf for link in links) == rate_mbit * 1e6


def test_the_queue_of_the_dumbbell_is_three_quarters_of_its_bdp() -> None:
    assert named("dumbbell").link("wan").queue_bytes == 0.75 * 200e6 / 8 * 0.128


def max_flow(topology: Topology, source: str, sink: str) -> float:
    """Return what the links carry from one host to another (Edmonds and Karp), in bit/s."""
    room: dict[tuple[str, str], float] = {}
    for link in topology.links:
        for a, b in (link.ends, link.ends[::-1]):
            room[a, b] = room.get((a, b), 0) + (link.rate_bps or 1e15)
    total = 0.0
    while True:
        came_from = {source: source}
        waiting = deque([source])
        while waiting and sink not in came_from:
            here = waiting.popleft()
            for (a, b), left in room.items():
                if a == here and left > 0 and b not in came_from:
                    came_from[b] = a
                    waiting.append(b)
        if sink not in came_from:
            return total
        steps, end = [], sink
        while end != source:
            steps.append((came_from[end], end))
            end = came_from[end]
        width = min(room[step] for step in steps)
        for a, b in steps:
            room[a, b] -= width
            room[b, a] += width
        total += width


def test_a_seed_alone_does_not_make_a_cable_an_emulated_link() -> None:
    assert not Link("a", "b", seed=7).shaped
    assert Link("a", "b", seed=7, loss=0.1).shaped


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_an_impossible_seed_is_refused(seed: int) -> None:
    with pytest.raises(UsageError, match="the seed of the link a-b"):
        Link("a", "b", seed=seed)
