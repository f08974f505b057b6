"""Puts the subflows of each connection on different paths; the messages that it returns are for switches.

Each new subflow goes where its connection has the fewest, in the order in which the paths were chosen.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mpx_controller.cookies import number_of
from mpx_controller.flows import Entry, Gone, Messages
from mpx_controller.graph import Graph, Path, Port, Route, route
from mpx_controller.mptcp.connections import MptcpConnection, MptcpConnections
from mpx_controller.mptcp.entries import copies, four_tuple_of, subflow_entries
from mpx_controller.mptcp.segment import ACK, FIN, RST, SYN, FourTuple, Segment, read_segment
from mpx_controller.mptcp.subflow import Subflow
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import Network
from mpx_controller.path_sets.path_set import alive
from mpx_controller.path_sets.selection import Select
from mpx_controller.steering import Ends

FEW_PACKETS = 10  # a connection that is over before its entries are there leaves no more on them
MOST_PATHS = 8  # of one connection; Linux makes at most 8 subflows
LOST_S = 60.0  # a subflow is forgotten when nothing has led from one host to the other for so long

log = logging.getLogger(__name__)


class MultipathTcp:
    """Decides, and keeps the state. SYNs come from edge ports, all else from entries of subflows."""

    def __init__(self, network: Network, bands: Bands, select: Select) -> None:
        self._network, self._bands, self._select = network, bands, select
        self.connections = MptcpConnections()
        self.off: set[int] = set()  # switches that refuse what it needs
        self._subflows: dict[FourTuple, Subflow] = {}
        self._choices: dict[tuple[int, int], list[Path]] = {}
        self._chosen_in = network.ready_graph
        self._seen: tuple[Graph, bool] | None = None
        self._moves = 0  # of hosts, that subflows have followed
        self._copied: set[int] = set()  # switches that hand us copies

    @property
    def subflows(self) -> Mapping[FourTuple, Subflow]:
        """All subflows that are steered."""
        return dict(self._subflows)

    def frame_in(self, port: Port, data: bytes, now_s: float) -> Messages:
        """A switch has sent us a copy of a frame from one of its ports."""
        segment = read_segment(data)
        if segment is None or not segment.flags & (SYN | FIN | RST):
            return []
        sender = self._network.hosts.with_hardware(segment.sender)
        if sender is None or sender.port != port:
            return []
        if segment.flags & (FIN | RST):
            return self._ending(segment, now_s)
        if self._is_anothers(segment):
            return []
        receiver = self._network.hosts.with_hardware(segment.receiver)
        found = self.connections.handshake(segment, port, receiver.port if receiver else None, now_s)
        if receiver is None or found is None:
            return []
        connection, four = found
        hosts = (receiver, sender) if segment.flags & ACK else (sender, receiver)
        ends = Ends(four.source, four.sink, hosts[0].port, hosts[1].port)
        hardware = hosts[0].hardware, hosts[1].hardware
        return self._begin(connection.number, four, Subflow(hardware, ends), now_s)

    def network_changed(self, now_s: float) -> Messages:
        """Update the entries for copies at the ports of hosts, and the paths of affected subflows."""
        seen = (self._network.graph, self._network.settled)
        is_same = self._seen is not None and self._seen[0] is seen[0] and self._seen[1] == seen[1]
        self._seen = seen
        messages = [] if is_same else self._copies()
        if not is_same:
            affected = list(self._subflows)
        elif self._moves != self._network.hosts.moves:
            affected = [four for four, known in self._subflows.items() if self._where_it_is(known) != known]
        else:
            affected = []
        self._moves = self._network.hosts.moves
        for four in affected:
            messages += self._steer(four, now_s)
        return messages

    def entry_gone(self, gone: Gone, now_s: float) -> Messages:
        """A switch has removed an entry as nothing has matched: its subflow is over, unless it just waits."""
        four = four_tuple_of(gone.key.match)
        if four is None or gone.key.priority != self._bands.mptcp:
            return []
        four = four if four in self._subflows else four.reverse
        known = self._subflows.get(four)
        if known is None or gone.idle_s != known.idle_s:
            return []
        if known.is_used or gone.packets < FEW_PACKETS or self.connections.has_begun_to_end(four):
            return self._end(four, f"no data for {gone.idle_s} s", now_s)
        self._subflows[four] = replace(known, is_used=True)
        return self._steer(four, now_s)

    def refused(self, switch: int, cookie: int, now_s: float) -> Messages:
        """Handle that a switch has refused an entry, for copies or of a connection."""
        number = number_of(cookie)
        if number == 0:
            if switch not in self.off:
                log.warning(
                    "switch %x cannot match on TCP flags: connections of its hosts are not spread",
                    switch,
                )
            self.off.add(switch)
            return self._copies()
        lost = [four for four in self._subflows if self._number(four) == number]
        return [
            message
            for four in lost
            for message in self._end(four, f"switch {switch:x} refuses its entries", now_s)
        ]

    def expire(self, now_s: float) -> Messages:
        """End subflows that have had no path for too long; forget old connections."""
        lost = [
            four
            for four, known in self._subflows.items()
            if known.lost_s is not None and known.lost_s + LOST_S <= now_s
        ]
        messages = [message for four in lost for message in self._end(four, "there is no path", now_s)]
        self.connections.expire(now_s)
        return messages

    def restore(
        self, connections: Iterable[MptcpConnection], last: int, subflows: Mapping[FourTuple, Subflow]
    ) -> None:
        """Restore what was known before a restart; `network_changed` steers it once links are found.

        Its entries count their packets anew where switches have removed them meanwhile, so none of it is
        taken for a connection that was over before it was steered.
        """
        self.connections.restore(connections, last)
        self._subflows = {four: replace(known, is_used=True) for four, known in subflows.items()}

    # --- what follows --------------------------------------------------------------------------------

    def _is_anothers(self, segment: Segment) -> bool:
        """Whether its sender has no right to open this: its address, or the connection, is another host's.

        An address of no known host is accepted.
        """
        owner = self._network.hosts.at(segment.ends.source)
        if owner is not None and owner.hardware != segment.sender:
            return True
        between = {segment.sender, segment.receiver}
        alive = (self._subflows.get(four) for four in (segment.ends, segment.ends.reverse))
        return any(known is not None and set(known.hardware) != between for known in alive)

    def _begin(self, number: int, four: FourTuple, new: Subflow, now_s: float) -> Messages:
        messages: Messages = []
        for old in {four, four.reverse} & self._subflows.keys():  # its end was not seen
            messages += self._have(old, {})
            del self._subflows[old]
        home = self._fewest(four, new)
        if home is None:
            self.connections.ended(four, now_s)
            return messages
        self._subflows[four] = replace(new, home=home, path=home)
        log.info(
            "connection %d: subflow %s on %s, where it has the fewest of %d paths",
            number,
            four,
            "-".join(f"{each:x}" for each in self._subflows[four].switches),
            len(self._paths(new)),
        )
        return messages + self._steer(four, now_s)

    def _ending(self, segment: Segment, now_s: float) -> Messages:
        four = segment.ends if segment.ends in self._subflows else segment.ends.reverse
        known = self._subflows.get(four)
        if known is None or segment.sender not in known.hardware or not self.connections.ends(segment):
            return []
        return self._end(four, "reset" if segment.flags & RST else "finished", now_s)

    def _end(self, four: FourTuple, why: str, now_s: float) -> Messages:
        log.info("connection %d: subflow %s is over: %s", self._number(four), four, why)
        messages = self._have(four, {})
        del self._subflows[four]
        self.connections.ended(four, now_s)
        return messages

    def _number(self, four: FourTuple) -> int:
        connection = self.connections.of(four)
        return connection.number if connection is not None else 0

    def _paths(self, known: Subflow) -> list[Path]:
        """Return the paths between the switches of its hosts that it can be put on now."""
        graph = self._network.ready_graph
        if graph is not self._chosen_in:
            self._chosen_in, self._choices = graph, {}
        if known.between not in self._choices:
            there = set(known.between) <= graph.switches
            found = self._select(graph, *known.between, MOST_PATHS) if there else []
            self._choices[known.between] = [path for path in found if graph.reverse(path) is not None]
        return self._choices[known.between]

    def _fewest(self, four: FourTuple, known: Subflow) -> Path | None:
        """Return the path on which its connection has the fewest others, the first of equals."""
        connection = self.connections.of(four)
        others = connection.subflows - {four} if connection is not None else ()
        filled: Counter[Route] = Counter(
            route(self._subflows[each].path) for each in others if each in self._subflows
        )
        return min(self._paths(known), key=lambda path: filled[route(path)], default=None)

    def _steer(self, four: FourTuple, now_s: float) -> Messages:
        """Put a subflow on its path; where that is gone, on the path with the fewest of its connection.

        After a start it is left as it is until its own path is found, or is late. Where a host has moved to
        another switch that is its new home.
        """
        before = self._subflows[four]
        known = self._where_it_is(before)
        if known.between == before.between:
            path = self._way(four, known)
        else:
            path = self._fewest(four, known) if self._network.settled else None
            known = replace(known, home=path if path is not None else known.home)
        back = self._network.graph.reverse(path) if path is not None else None
        if path is None or back is None:
            self._subflows[four] = replace(before, lost_s=now_s if before.lost_s is None else before.lost_s)
            return []
        self._subflows[four] = known = replace(known, path=path, lost_s=None)
        entries = subflow_entries(self._bands, four, known, (path, back), self._number(four))
        return self._have(four, entries)

    def _way(self, four: FourTuple, known: Subflow) -> Path | None:
        """Return the path that a subflow belongs on: over a switch that is away only where it is already."""
        graph = self._network.graph
        if alive(self._network.ready_graph, known.home) or (
            route(known.home) == route(known.path) and alive(graph, known.home)
        ):
            return known.home
        if not self._network.settled:
            return None
        path = self._fewest(four, known)
        return known.path if path is None and alive(graph, known.path) else path

    def _have(self, four: FourTuple, entries: Mapping[int, list[Entry]]) -> Messages:
        """Set the entries of a subflow, those furthest from the source first."""
        before = self._subflows[four].on
        self._subflows[four] = replace(self._subflows[four], on=frozenset(entries))
        messages: Messages = []
        for switch in [*reversed(list(entries)), *(before - set(entries))]:
            messages += self._network.change(switch, ("subflow", four), entries.get(switch, []))
        return messages

    def _copies(self) -> Messages:
        edges: dict[int, list[Port]] = {switch: [] for switch in self._copied}
        for port in self._network.edge_ports():
            if port.switch not in self.off:
                edges.setdefault(port.switch, []).append(port)
        self._copied = {switch for switch, ports in edges.items() if ports}
        messages: Messages = []
        for switch, ports in edges.items():
            messages += self._network.change(switch, "copies of SYNs", copies(self._bands, ports))
        return messages

    def _where_it_is(self, known: Subflow) -> Subflow:
        """Return a subflow with the ports where its hosts are now."""
        source, sink = (self._network.hosts.with_hardware(each) for each in known.hardware)
        ends = replace(
            known.ends,
            source_port=source.port if source else known.ends.source_port,
            sink_port=sink.port if sink else known.ends.sink_port,
        )
        return known if ends == known.ends else replace(known, ends=ends)
