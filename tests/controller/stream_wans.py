"""Simulated networks with path sets: streams are put on paths, and their frames followed."""

from mpx_controller.graph import Graph
from mpx_controller.network.forwarding import Bands
from mpx_controller.path_sets.path_set import StreamKey
from mpx_controller.path_sets.sets import Limits, PathSets
from switches import Wan, address, tcp_frame
from wans import ENDS, known

SRC, DST = address("src"), address("dst")
LIMITS = Limits()


def steered(graph: Graph, limits: Limits = LIMITS) -> tuple[Wan, PathSets]:
    wan = known(graph, ENDS)
    assert wan.network is not None
    rates = {(link.start, link.end): link.rate_bps for link in graph.links}
    delays = {(link.start, link.end): link.delay_s for link in graph.links}
    wan.network.rates_changed(rates, delays)
    wan.wait(0)
    return wan, PathSets(wan.network, Bands(), limits)


def put(wan: Wan, sets: PathSets, number: int, *ports: int, path: int | None = None) -> list[int]:
    keys = [StreamKey(port, "source") for port in ports]
    places, messages = sets.place(number, keys, "me", wan.now_s, path)
    wan.do(messages)
    return places


def current_paths(wan: Wan, port: int) -> tuple[list[int], list[int]]:
    """Return the switches that a stream's frames pass, there and back."""
    there = wan.switches_passed("src", tcp_frame("src", "dst", (port, 2811)))
    return there, wan.switches_passed("dst", tcp_frame("dst", "src", (2811, port)))
