"""Topologies of any kind, for hypothesis."""

from hypothesis import strategies as st
from mpx_lab.topology import LINK_SEEDS, Link, Topology


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Some hosts, some switches, and links between any two, with all of them linked."""
    hosts = [f"h{i}" for i in range(draw(st.integers(2, 6)))]
    switches = [f"s{i}" for i in range(draw(st.integers(0, 4)))]
    ends = hosts + switches
    pairs = [(a, b) for i, a in enumerate(ends) for b in ends[i + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=8))
    chosen += [(end, ends[(i + 1) % len(ends)]) for i, end in enumerate(ends)]
    rates = st.one_of(st.none(), st.integers(1_000_000, 1_000_000_000))
    seeds = st.integers(0, LINK_SEEDS - 1)
    links = tuple(
        Link(a, b, f"l{i}", draw(rates), delay_s=draw(st.sampled_from([0.0, 0.01])), seed=draw(seeds))
        for i, (a, b) in enumerate(chosen)
    )
    split = draw(st.integers(1, len(hosts) - 1))
    return Topology("any", tuple(hosts[:split]), tuple(hosts[split:]), links, tuple(switches))
