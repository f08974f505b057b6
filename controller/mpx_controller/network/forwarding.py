"""The entries that forward unassigned traffic; they also work while no controller runs.

Two tables. The first has the entries of assigned streams (mpx_controller.steering), and those that send us
copies of frames; all else goes to the second, where each switch has an entry for each known host, and the
rest is flooded over a tree. No frame waits for us, and no entry has a timeout.

    first   TOP          discovery frames, and                to us only
                         answers to host questions
            UNUSED       comes in on an edge that would       dropped
                         close a loop over a bridge
            path sets    streams of transfers                 on their paths
            COPIES       ARP, neighbour discovery             to us as well, and on
            0            all                                  on in the second
    second  HOSTS        to a known host                      out towards it
            FLOOD        came in on a port of the tree        out of all its others
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import CONTROLLER, Entry, match
from mpx_controller.graph import Graph, Link, Port
from mpx_controller.network.discovery_frame import ETH_TO_ALL
from mpx_controller.network.host_question import OUR_HARDWARE
from mpx_controller.network.hosts import Host

ETH_ARP, ETH_IPV4, ETH_IPV6, ETH_LLDP = 0x0806, 0x0800, 0x86DD, 0x88CC
ICMPV6, ND_SOLICIT, ND_ADVERT = 58, 135, 136
COOKIE = cookie(Kind.FORWARDING)


@dataclass(frozen=True)
class Bands:
    """Where our entries are: the first of two tables, and the least of 200 priorities there."""

    table: int = 0
    priority: int = 40_000

    @property
    def second(self) -> int:
        """The table of hosts and of flooding."""
        return self.table + 1

    @property
    def top(self) -> int:
        """The priority of discovery frames."""
        return self.priority + 199

    @property
    def unused(self) -> int:
        """The priority of unused edges."""
        return self.priority + 198

    @property
    def path_sets(self) -> int:
        """The least priority of assigned streams."""
        return self.priority + 100

    @property
    def mptcp(self) -> int:
        """The least priority of unassigned subflows."""
        return self.priority + 50

    @property
    def copies(self) -> int:
        """The priority of frames of which we get copies."""
        return self.priority + 10


HOSTS, FLOOD = 20, 10


def questions_entries(bands: Bands) -> list[Entry]:
    """Return the entries that send us discovery frames and answers to host questions."""
    ours = (
        match(eth_type=ETH_LLDP),
        match(eth_dst=OUR_HARDWARE, eth_type=ETH_ARP),
        match(eth_dst=OUR_HARDWARE, eth_type=ETH_IPV6, ip_proto=ICMPV6, icmpv6_type=ND_ADVERT),
    )
    return [Entry(bands.table, bands.top, each, COOKIE, (CONTROLLER,)) for each in ours]


def base_entries(bands: Bands) -> list[Entry]:
    """Return the entries that every switch holds, whatever the network is."""
    copied = [match(eth_type=ETH_ARP)]
    copied += [
        match(eth_type=ETH_IPV6, ip_proto=ICMPV6, icmpv6_type=kind) for kind in (ND_SOLICIT, ND_ADVERT)
    ]
    copies = [
        Entry(bands.table, bands.copies, each, COOKIE, (CONTROLLER,), goto=bands.second) for each in copied
    ]
    to_all = Entry(bands.table, bands.top, match(eth_type=ETH_TO_ALL), COOKIE, (CONTROLLER,))
    return [to_all, *copies, Entry(bands.table, 0, (), COOKIE, goto=bands.second)]


def unused_entries(bands: Bands, switch: int, unused: Iterable[Port]) -> list[Entry]:
    """Return the entries that drop all frames from the unused edges of a switch."""
    numbers = sorted(port.number for port in unused if port.switch == switch)
    return [Entry(bands.table, bands.unused, match(in_port=number), COOKIE) for number in numbers]


def flood_entries(
    bands: Bands, switches: Iterable[int], tree: Iterable[Link], edges: Iterable[Port]
) -> dict[int, list[Entry]]:
    """Return the flood entries of each switch: from any edge or port of the tree out of all others."""
    ports: dict[int, list[int]] = {switch: [] for switch in switches}
    for port in sorted({*edges, *(link.start for link in tree)}):
        if port.switch in ports:
            ports[port.switch].append(port.number)
    return {
        switch: [
            Entry(
                bands.second,
                FLOOD,
                match(in_port=number),
                COOKIE,
                tuple(other for other in numbers if other != number),
            )
            for number in numbers
        ]
        for switch, numbers in ports.items()
    }


def host_entry(bands: Bands, host: Host, switch: int, towards: Mapping[int, Port]) -> Entry | None:
    """Return the entry of a switch for frames to a host; None where no path is known.

    `towards` has for each switch the port where its shortest path to the host's begins.
    """
    if switch == host.port.switch:
        out = host.port.number
    elif switch in towards:
        out = towards[switch].number
    else:
        return None
    return Entry(bands.second, HOSTS, match(eth_dst=host.hardware), COOKIE, (out,))


def graph_of(
    switches: Iterable[int],
    links: Iterable[Link],
    rates_bps: Mapping[tuple[Port, Port], float],
    delays_s: Mapping[tuple[Port, Port], float],
    default_bps: float,
) -> Graph:
    """Return the graph with the known rate and delay of each link."""
    return Graph.of(
        switches,
        (
            Link(
                link.start,
                link.end,
                rates_bps.get((link.start, link.end), default_bps),
                delays_s.get((link.start, link.end), 0.0),
            )
            for link in links
        ),
    )
