"""Networks of simulated switches in the states that tests begin with."""

from mpx_controller.graph import Graph
from mpx_controller.network.discovery import FIRST_S, UNDECIDED_S
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import Network
from switches import Wan, arp_from

SECRET = b"nobody knows"
ENDS = {"src": 1, "dst": 6}


def network(now_s: float = 100.0, *, forwarding: bool = True) -> Network:
    return Network(Bands(), SECRET, now_s, forwarding=forwarding)


def ready(graph: Graph, hosts: dict[str, int]) -> Wan:
    """Return a network that has found its links."""
    wan = Wan(graph, hosts)
    wan.connect(network())
    wan.wait(2 * (UNDECIDED_S + FIRST_S[-1]))
    return wan


def known(graph: Graph, hosts: dict[str, int]) -> Wan:
    """Return one that knows its hosts, too."""
    wan = ready(graph, hosts)
    for host in hosts:
        wan.send(host, arp_from(host))
    wan.received.clear()
    return wan
