"""Connections of Multipath TCP in networks of simulated switches."""

from mptcp_frames import JOINED, capable, join, segment, token
from mpx_controller.cookies import Kind, cookie, kind_of
from mpx_controller.flows import Entry
from mpx_controller.graph import Graph
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.mptcp.segment import ACK, FIN, SYN
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import SETTLED_S
from mpx_controller.path_sets.selection import SELECTORS
from switches import Wan
from wans import ENDS, known

KEY_A, KEY_B = 11162027875335042360, 18289485781472160503
MORE = [f"10.0.1.{n}" for n in range(1, 9)]


def spread(graph: Graph, hosts: dict[str, int] = ENDS, selection: str = "widest-apart") -> Wan:
    """Return a network that knows its hosts and spreads subflows."""
    wan = known(graph, hosts)
    assert wan.network is not None
    wan.mptcp = MultipathTcp(wan.network, Bands(), SELECTORS[selection])
    wan.wait(SETTLED_S)
    wan.do(wan.mptcp.network_changed(wan.now_s))
    return wan


def of(wan: Wan) -> MultipathTcp:
    assert wan.mptcp is not None
    return wan.mptcp


def connect(wan: Wan, port: int = 4000, version: int = 1, keys: tuple[int, int] = (KEY_A, KEY_B)) -> None:
    """Have src connect to dst."""
    asks = capable(0, keys[0]) if version == 0 else capable(1)
    wan.send("src", segment("src", "dst", (port, 5001), SYN, asks))
    wan.send("dst", segment("dst", "src", (5001, port), SYN | ACK, capable(version, keys[1])))


def add(wan: Wan, source: str, port: int = 4000, named: int | None = None, opener: str = "src") -> None:
    """Have src (or dst) add a subflow from another address."""
    sink = "dst" if opener == "src" else "src"
    name = token(KEY_B, 1) if named is None else named
    wan.send(opener, segment(opener, sink, (port, 5001), SYN, join(name), (source, None)))
    wan.send(sink, segment(sink, opener, (5001, port), SYN | ACK, JOINED, (None, source)))


def way(wan: Wan, source: str | None = None, port: int = 4000) -> tuple[list[int], list[int]]:
    """Return the switches that data passes, there and back."""
    there = wan.switches_passed("src", segment("src", "dst", (port, 5001), ACK, b"", (source, None)))
    return there, wan.switches_passed("dst", segment("dst", "src", (5001, port), ACK, b"", (None, source)))


def steering(wan: Wan) -> list[Entry]:
    """Return the entries of subflows in all switches."""
    return [
        entry
        for switch in wan.switches.values()
        for entry in switch.entries.values()
        if kind_of(entry.cookie) == Kind.MPTCP and entry.cookie != cookie(Kind.MPTCP)
    ]


def end(wan: Wan, source: str | None = None, port: int = 4000) -> None:
    wan.send("src", segment("src", "dst", (port, 5001), FIN | ACK, b"", (source, None)))
    wan.send("dst", segment("dst", "src", (5001, port), FIN | ACK, b"", (None, source)))


BETWEEN = [([1, n, 6], [6, n, 1]) for n in (2, 3, 4, 5)]
