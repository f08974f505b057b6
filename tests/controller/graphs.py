"""The topologies of the papers and random ones, as graphs."""

import json
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st
from mpx_controller.graph import Graph, Link, Path, Port, switches_of

M = 1e6


def graph_of(*edges: tuple[int, int, float, float]) -> Graph:
    """Return a graph of edges (switch, switch, bit/s, one-way delay in seconds), ports in order."""
    ports: dict[int, int] = {}
    links: list[Link] = []

    def port(switch: int) -> Port:
        ports[switch] = ports.get(switch, 0) + 1
        return Port(switch, ports[switch])

    for a, b, rate_bps, delay_s in edges:
        one, other = port(a), port(b)
        links += [Link(one, other, rate_bps, delay_s), Link(other, one, rate_bps, delay_s)]
    return Graph.of(ports, links)


def capacities(graph: Graph, rate_bps: float = 100 * M, delay_s: float = 0.01) -> str:
    """Return what tells a controller of all links: what it would measure itself changes with the machine."""
    one_way = [(link.start, link.end) for link in graph.links if link.start < link.end]
    ends = [[{"datapath_id": each.switch, "port": each.number} for each in link] for link in one_way]
    return json.dumps([{"a": a, "b": b, "rate_bps": rate_bps, "delay_s": delay_s} for a, b in ends])


def plain(*pairs: tuple[int, int], rate_bps: float = 100 * M) -> Graph:
    return graph_of(*((a, b, rate_bps, 0.0) for a, b in pairs))


def hops(paths: Iterable[Path], start: int) -> list[tuple[int, ...]]:
    return [switches_of(path, start) for path in paths]


THESIS_A = plain((1, 2), (1, 3), (1, 4), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6))
THESIS_B = plain((1, 5), (5, 6), (1, 2), (2, 3), (3, 6), (2, 4), (4, 6))


def thought(shared: float, third: float) -> Graph:
    """1) 1-2-3-4-7, 2) 1-2-6-7, 3) 1-5-7, with round trips of 60, 110 and 160 ms."""
    return graph_of(
        (1, 2, shared, 0.0),
        (2, 3, 100 * M, 0.030),
        (3, 4, 1e9, 0.0),
        (4, 7, 1e9, 0.0),
        (2, 6, 50 * M, 0.055),
        (6, 7, 1e9, 0.0),
        (1, 5, third, 0.080),
        (5, 7, 1e9, 0.0),
    )


THESIS_T1, THESIS_T2 = thought(100 * M, 50 * M), thought(150 * M, 100 * M)
T_PATHS = {1: (1, 2, 3, 4, 7), 2: (1, 2, 6, 7), 3: (1, 5, 7)}

RATES = (1 * M, 10 * M, 50 * M, 100 * M)


@st.composite
def graphs(draw: st.DrawFn, most: int = 6, rates: tuple[float, ...] = RATES) -> Graph:
    """Small connected or unconnected graphs, with parallel links."""
    count = draw(st.integers(2, most))
    pairs = st.tuples(st.integers(1, count), st.integers(1, count)).filter(lambda pair: pair[0] != pair[1])
    edge = st.tuples(pairs, st.sampled_from(rates), st.sampled_from((0.0, 0.001, 0.010)))
    edges: Sequence[tuple[tuple[int, int], float, float]] = draw(st.lists(edge, min_size=1, max_size=10))
    made = graph_of(*((a, b, rate, delay) for (a, b), rate, delay in edges))
    return Graph.of(range(1, count + 1), made.links)


def all_simple_paths(graph: Graph, start: int, destination: int) -> list[Path]:
    """Brute force."""

    def longer(path: Path, seen: set[int], at: int) -> list[Path]:
        if at == destination:
            return [path]
        return [
            found
            for link in graph.leaving[at]
            if link.end.switch not in seen
            for found in longer((*path, link), seen | {link.end.switch}, link.end.switch)
        ]

    return longer((), {start}, start)
