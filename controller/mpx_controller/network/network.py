"""The network as its switches report it, and what is to be sent to them because of that. No I/O, no clock."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from mpx_controller.cookies import Kind, kind_of
from mpx_controller.flows import Add, Entry, Gone, Key, Messages, SendOut, SwitchRules
from mpx_controller.graph import Graph, Port
from mpx_controller.network.bridged import closes_a_loop
from mpx_controller.network.discovery import Discovery
from mpx_controller.network.discovery_frame import is_to_all
from mpx_controller.network.forwarding import (
    Bands,
    base_entries,
    flood_entries,
    questions_entries,
    unused_entries,
)
from mpx_controller.network.heard_frame import announced_by
from mpx_controller.network.host_entries import HostEntries
from mpx_controller.network.host_question import host_question
from mpx_controller.network.hosts import Hosts
from mpx_controller.network.link_figures import LinkFigures, Rates
from mpx_controller.network.ports import PortState
from mpx_controller.network.stray_hosts import StrayHosts
from mpx_controller.network.switch_tables import SwitchTables
from mpx_controller.shortest import tree_links

SETTLED_S = 5.0  # after a start: until then a switch with entries of ours is left alone
SILENT_S = 10.0  # a switch whose connection to us is lost counts as there for so long: it goes on forwarding
MOST_ASKED = 3  # addresses of a silent host that are asked for, the newest
STILL_S = 2.0  # without a tick, although there is one each second: this program was suspended


class Network:
    """Switches, links and hosts, and the entries that forward unassigned traffic.

    Every method that changes something returns what is to be sent, in order, to switches that are connected.
    `forwarding`: False beside another controller, whose entries do that.
    """

    def __init__(self, bands: Bands, secret: bytes, now_s: float, *, forwarding: bool = True) -> None:
        self.hosts = Hosts()
        self._bands, self._forwarding = bands, forwarding
        self._discovery = Discovery(secret, to_all=forwarding)
        self._figures = LinkFigures(self._discovery, now_s)
        self._tables = SwitchTables(bands, forwarding=forwarding)
        self._host_entries = HostEntries(self._tables, bands)
        self._connected_at_s: dict[int, float] = {}
        self._silent_s: dict[int, float] = {}  # since when the connection to a switch has been lost
        self._settles_s = now_s + SETTLED_S
        self._ticked_s = now_s
        self._graph = self._ready_graph = Graph.of((), ())
        self._ready_from: tuple[Graph, frozenset[int]] = self._graph, frozenset()
        self._edges: set[Port] = set()
        self._unused: frozenset[Port] = frozenset()  # edges that bridges join to others
        self._bridged: frozenset[Port] = frozenset()  # these, and the others
        self._stray = StrayHosts()
        self._stale = False  # something has changed since the graph was made

    # --- what is known -------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """Switches and links, with what each carries."""
        return self._graph

    @property
    def ready_graph(self) -> Graph:
        """The part of it whose switches are connected to us: new paths can lead there only."""
        seen = self._graph, self.connected
        if seen[0] is not self._ready_from[0] or seen[1] != self._ready_from[1]:
            all_there = seen[1] >= self._graph.switches
            self._ready_graph = self._graph if all_there else Graph.of(seen[1], self._graph.links)
            self._ready_from = seen
        return self._ready_graph

    @property
    def connected(self) -> frozenset[int]:
        """The switches that are connected to us."""
        return frozenset(self._tables.connected)

    def connected_at_s(self, switch: int) -> float:
        """Return when a switch has last connected."""
        return self._connected_at_s.get(switch, -float("inf"))

    @property
    def tables(self) -> int:
        """How many tables a switch has to have."""
        return 1 + (self._bands.second if self._forwarding else self._bands.table)

    @property
    def settled(self) -> bool:
        """Whether discovery has had enough time since the start to have found the whole network."""
        return self._ticked_s >= self._settles_s

    @property
    def left_alone(self) -> frozenset[int]:
        """The switches that forward as they did before a restart, until the network has settled."""
        return frozenset(self._tables.left_alone)

    def edge_ports(self) -> frozenset[Port]:
        """Return the ports where hosts may be."""
        return frozenset(self._edges)

    def unused_ports(self) -> frozenset[Port]:
        """Return the ports that are not used, as frames would circle over bridges: others lead there."""
        return self._unused

    def ports(self, switch: int) -> list[PortState]:
        """Return the ports of a switch that are up."""
        return self._discovery.ports(switch)

    def rules(self, switch: int) -> SwitchRules:
        """Return what a switch is to hold."""
        return self._tables.rules(switch)

    def next_s(self) -> float:
        """Return when `tick` has something to do again."""
        if self._stale or self._tables.is_clearing:
            return -float("inf")
        waits = [self._settles_s] if self._tables.left_alone else []
        silent = (since_s + SILENT_S for since_s in self._silent_s.values())
        return min((self._discovery.next_s(self._ticked_s), *waits, *silent))

    # --- what switches report ------------------------------------------------------------------------

    def switch_up(
        self, switch: int, ports: Iterable[PortState], found: Mapping[Key, Entry], now_s: float
    ) -> Messages:
        """A switch has connected: with these ports, holding these entries of ours."""
        self._tables.connected.add(switch)
        self._connected_at_s[switch] = now_s
        self._silent_s.pop(switch, None)
        self._figures.forget(switch)
        rules = self.rules(switch)
        rules.put("questions", questions_entries(self._bands))
        rules.put("base", base_entries(self._bands) if self._forwarding else [])
        ports = list(ports)
        there = {state.port for state in ports}
        for known in self._discovery.ports(switch):
            if known.port not in there:
                self._discovery.port_gone(known.port)
        for state in ports:
            self._discovery.port(state, now_s)
        self._stale = True
        changes: Messages = []
        if now_s < self._settles_s and self._tables.forwards(found):
            self._tables.left_alone[switch] = found
        else:  # it may have been left alone until it was restarted, and is empty now
            self._tables.left_alone.pop(switch, None)
            changes = self._tables.reconcile(switch, found)
        return changes + self._questions(now_s)

    def switch_down(self, switch: int, now_s: float) -> None:
        """The connection to a switch is lost; it is forgotten unless it is back in time."""
        self._tables.connected.discard(switch)
        self._silent_s[switch] = now_s

    def switch_answers(self, switch: int, within_s: float) -> None:
        """Note the response time of a switch to an echo request."""
        self._figures.switch_answers(switch, within_s)

    def answers_s(self, switch: int) -> float | None:
        """Return the least time in which a switch has answered; None where it has not."""
        return self._figures.answers_s(switch)

    def port_changed(self, state: PortState, now_s: float) -> Messages:
        """A port has come up, gone down, or changed otherwise."""
        self._stale |= self._discovery.port(state, now_s)
        if not state.up:
            self.hosts.gone([state.port])
        return self._questions(now_s)

    def port_gone(self, port: Port) -> None:
        """A port was removed."""
        self.hosts.gone([port])
        self._stale |= self._discovery.port_gone(port)

    def frame_in(self, port: Port, data: bytes, now_s: float) -> Messages:
        """A switch has forwarded a frame to us from one of its ports."""
        if self._discovery.heard(port, data, now_s):
            self.hosts.gone(end for link in self._discovery.links for end in (link.start, link.end))
            self._stale = True
            return []
        changes: Messages = []
        may_be_there = self._discovery.may_be_edge(port) and port not in self._unused
        if may_be_there and not is_to_all(data) and not self._stray.is_stray(port, data, now_s):
            for announced in announced_by(data):
                sure = self._discovery.is_edge(port, now_s)
                host = self.hosts.heard(announced.hardware, announced.address, port, now_s, sure=sure)
                changes += self._host_entries.remove(self.hosts.take_forgotten())
                if host is not None and port in self._edges and self._forwarding:
                    changes += self._host_entries.place(host)
        return changes

    def entry_gone(self, switch: int, gone: Gone) -> Messages:
        """A switch has removed an entry that nothing matched for long; it has it again if it is wanted."""
        entry = self.rules(switch).wants(gone.key, gone.cookie)
        if entry is None or kind_of(gone.cookie) != Kind.PATH_SET:
            return []
        return [(switch, Add(entry))]

    def refused(self, switch: int, entry: Entry) -> None:
        """A switch has refused an entry."""
        self.rules(switch).refused(entry)

    def tick(self, now_s: float) -> Messages:
        """Send the discovery frames that are due, decide ports, and drop lost links and silent switches.

        Changes since the last call take effect here, all at once. Call it at `next_s`.
        """
        if now_s - self._ticked_s > STILL_S:
            self._discovery.stood_still(now_s - self._ticked_s, now_s)
        self._ticked_s = now_s
        silent = [switch for switch, since_s in self._silent_s.items() if now_s >= since_s + SILENT_S]
        for switch in silent:
            self._forget(switch)
        self._stale |= self._discovery.lost(now_s, self._silent_s) or bool(silent)
        self._stale |= self._figures.have_changed(self._graph, now_s)
        self._stale |= self._discovery.edges(now_s) != self._edges | self._unused
        changes = self._rebuild(now_s) if self._stale else []
        if self._tables.left_alone and now_s >= self._settles_s:
            changes += self._settle(now_s)
        return changes + self._tables.clear() + self._questions(now_s)

    # --- decisions ----------------------------------------------------------------------------------

    def host_questions(self, address: str) -> Messages:
        """Return the frames that ask for the host with an address, at all ports where hosts may be."""
        frame = host_question(address)
        ports: dict[int, list[int]] = defaultdict(list)
        for port in sorted(self._edges):
            if port.switch in self._tables.connected:
                ports[port.switch].append(port.number)
        return [(switch, SendOut(frame, tuple(numbers))) for switch, numbers in ports.items()]

    def forget_silent_hosts(self, used: Iterable[str], now_s: float) -> Messages:
        """Ask for hosts that have said nothing for long, and forget those that were asked for the last time.

        They are asked for where they were heard last. Those with hardware addresses in `used` are kept.
        """
        self.hosts.used(used, now_s)
        questions: Messages = [
            (host.port.switch, SendOut(host_question(address), (host.port.number,)))
            for host in self.hosts.expire(now_s)
            if host.port.switch in self._tables.connected
            for address in host.addresses[-MOST_ASKED:]
        ]
        return self._host_entries.remove(self.hosts.take_forgotten()) + questions

    def ask_stray(self, used: Callable[[], set[str]], now_s: float) -> Messages:
        """Ask for hosts forgotten as other ports of bridges are used now; call it after each change.

        Those whose hardware addresses `used` returns: frames for others are flooded until they are heard.
        """
        due = self._stray.due(now_s)
        some = used() if due else set()
        return [
            message
            for host in due
            if host.hardware in some and self.hosts.with_hardware(host.hardware) is None
            for address in host.addresses
            for message in self.host_questions(address)
        ]

    def change(self, switch: int, owner: object, entries: Iterable[Entry]) -> Messages:
        """Set the entries of `owner` in a switch; see SwitchRules.put."""
        return self._tables.change(switch, owner, entries)

    def rates_changed(self, rates_bps: Rates, delays_s: Rates) -> None:
        """Take new rates and delays of links."""
        self._figures.configure(rates_bps, delays_s)
        self._stale = True

    def _rebuild(self, now_s: float) -> Messages:
        self._stale = False
        switches = self._tables.connected | set(self._silent_s)
        self._graph = self._figures.graph(switches)
        edges, tree = self._discovery.edges(now_s), tree_links(self._graph)
        pairs = self._discovery.bridged
        before = self._edges, self._unused
        self._unused = closes_a_loop(edges, tree, pairs)
        self._edges = edges - self._unused
        if not self._forwarding:
            return []
        self._forget_stray(*before, frozenset(port for pair in pairs for port in pair), now_s)
        changes: Messages = []
        for switch in switches:
            entries = unused_entries(self._bands, switch, self._unused)
            changes += self._tables.forward(switch, "unused", entries)
        for switch, entries in flood_entries(self._bands, switches, tree, self._edges).items():
            changes += self._tables.forward(switch, "flood", entries)
        hosts = {host.hardware: host for host in self.hosts.all if host.port in self._edges}
        return changes + self._host_entries.rebuild(self._graph, hosts)

    def _forget_stray(
        self, edges: set[Port], unused: frozenset[Port], bridged: frozenset[Port], now_s: float
    ) -> None:
        """Forget hosts at ports that are not used, and at all that bridges join where others are used now.

        At all: a host that is heard over one bridge may be behind another. `edges`, `unused`: before.
        """
        gone = self.hosts.gone(self._unused) if self._unused else []
        ports, self._bridged = self._bridged | bridged, bridged
        no_more, anew = edges & self._unused, unused & self._edges
        if no_more or anew:
            gone += self.hosts.gone(ports)
            self._stray.forgotten(gone, ports if no_more else (), now_s)

    def _settle(self, now_s: float) -> Messages:
        """Update the switches that were left alone; the entries that they held also show where hosts are."""
        changes: Messages = []
        left_alone, self._tables.left_alone = self._tables.left_alone, {}
        for switch, found in left_alone.items():
            for entry in found.values():
                hardware = dict(entry.match).get("eth_dst")
                ports = [Port(switch, number) for number in entry.outputs]
                if not isinstance(hardware, str) or hardware in self._host_entries:
                    continue
                for port in ports if self._edges.issuperset(ports) else ():
                    host = self.hosts.heard(hardware, None, port, now_s, sure=True)
                    changes += self._host_entries.place(host) if host and self._forwarding else []
        changes += self._host_entries.remove(self.hosts.take_forgotten())
        for switch, found in left_alone.items():
            changes += self._tables.reconcile(switch, found)
        return changes

    def _forget(self, switch: int) -> None:
        del self._silent_s[switch]
        self._connected_at_s.pop(switch, None)
        self._figures.forget(switch)
        self._tables.forget(switch)
        self.hosts.gone(port for host in self.hosts.all if (port := host.port).switch == switch)
        self._discovery.switch_gone(switch)

    def _questions(self, now_s: float) -> Messages:
        return [
            (port.switch, SendOut(frame, (port.number,)))
            for port, frame in self._discovery.questions(now_s)
            if port.switch in self._tables.connected
        ]
