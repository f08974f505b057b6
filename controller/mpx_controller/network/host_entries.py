"""The entries by which switches forward frames to hosts that are at edges."""

from collections.abc import Iterable, Mapping

from mpx_controller.flows import Messages
from mpx_controller.graph import Graph, Port
from mpx_controller.network.forwarding import Bands, host_entry
from mpx_controller.network.hosts import Host
from mpx_controller.network.switch_tables import SwitchTables
from mpx_controller.shortest import next_links


class HostEntries:
    """Entries for each host in each switch from which there is a path to it, along the shortest path."""

    def __init__(self, tables: SwitchTables, bands: Bands) -> None:
        self._tables, self._bands = tables, bands
        self._graph = Graph.of((), ())
        self._towards: dict[int, dict[int, Port]] = {}  # for each switch with hosts: the port in each other
        self._placed: dict[str, Host] = {}  # those that have entries, by their hardware address

    def __contains__(self, hardware: str) -> bool:
        return hardware in self._placed

    def place(self, host: Host) -> Messages:
        """Set the entries for a host in all switches with a path to it."""
        self._placed[host.hardware] = host
        changes: Messages = []
        for switch in self._graph.switches:
            entry = host_entry(self._bands, host, switch, self._to(host.port.switch))
            changes += self._tables.forward(switch, ("host", host.hardware), [entry] if entry else [])
        return changes

    def remove(self, hosts: Iterable[str]) -> Messages:
        """Remove the entries for hosts with these hardware addresses."""
        changes: Messages = []
        for hardware in hosts:
            if self._placed.pop(hardware, None) is not None:
                for switch in self._tables.switches:
                    changes += self._tables.forward(switch, ("host", hardware), [])
        return changes

    def rebuild(self, graph: Graph, hosts: Mapping[str, Host]) -> Messages:
        """Replace all entries by those for these hosts (by hardware address), along the paths of `graph`."""
        self._graph = graph
        before, self._towards = self._towards, {}
        changes = self.remove(self._placed.keys() - hosts.keys())
        for host in hosts.values():
            at = host.port.switch
            if self._placed.get(host.hardware) != host or before.get(at) != self._to(at):
                changes += self.place(host)
        return changes

    def _to(self, destination: int) -> dict[int, Port]:
        if destination not in self._towards:
            towards = next_links(self._graph, destination)
            self._towards[destination] = {switch: link.start for switch, link in towards.items()}
        return self._towards[destination]
