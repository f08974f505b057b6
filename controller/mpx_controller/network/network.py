"""The network by what its switches tell, and what is to be sent to them because of it. No I/O, no clock."""

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
    graph_of,
    host_entry,
    questions_entries,
    unused_entries,
)
from mpx_controller.network.heard_frame import told_by
from mpx_controller.network.host_question import host_question
from mpx_controller.network.hosts import Host, Hosts
from mpx_controller.network.ports import PortState
from mpx_controller.network.stray_hosts import StrayHosts
from mpx_controller.shortest import next_links, tree_links

SETTLED_S = 5.0  # after a start: until then a switch that holds entries of ours forwards as they say
SILENT_S = 10.0  # a switch whose connection to us is lost counts as there for so long: it goes on forwarding
MOST_ASKED = 3  # addresses of a host that is silent, the newest
STILL_S = 2.0  # without a tick, while questions are due each second: we were stopped, or had no processor
DELAYS_EVERY_S = 1.0  # links are looked at again, as the first delays are of a start, when much else is done
LEAST_CHANGE_S, CHANGE = 0.001, 0.2  # of a delay, in seconds and of what it was: less makes no other paths
DEFAULT_BPS = 1e9  # of a link that nobody has told us the rate of

Rates = Mapping[tuple[Port, Port], float]


class Network:
    """Switches, links and hosts, and the entries that forward what nobody has assigned.

    Every method that changes something returns what is to be sent, in order, to switches that are connected.
    `forwarding`: False beside another controller, whose entries do that.
    """

    def __init__(self, bands: Bands, secret: bytes, now_s: float, *, forwarding: bool = True) -> None:
        self.hosts = Hosts()
        self._rates_bps: Rates = {}
        self._told_delays_s: Rates = {}
        self._default_bps = DEFAULT_BPS
        self._bands, self._forwarding = bands, forwarding
        self._discovery = Discovery(secret, to_all=forwarding)
        self._rules: dict[int, SwitchRules] = {}
        self._connected: set[int] = set()
        self._connected_at_s: dict[int, float] = {}
        self._silent_s: dict[int, float] = {}
        self._found: dict[int, Mapping[Key, Entry]] = {}  # in switches that are left alone for now
        self._cleared: set[int] = set()  # switches that may hold entries of ours that are not wanted
        self._settles_s = now_s + SETTLED_S
        self._ticked_s = now_s
        self._answers_s: dict[int, float] = {}  # the least time in which each switch has answered
        self._delays_at_s = now_s
        self._graph = self._ready_graph = Graph.of((), ())
        self._ready_from: tuple[Graph, frozenset[int]] = self._graph, frozenset()
        self._edges: set[Port] = set()
        self._unused: frozenset[Port] = frozenset()  # edges that bridges join to others
        self._bridged: frozenset[Port] = frozenset()  # these, and the others
        self._astray = StrayHosts()
        self._towards: dict[int, dict[int, Port]] = {}  # for each switch with hosts: from each other
        self._placed: dict[str, Host] = {}  # those that have entries, by their hardware address
        self._stale = False  # something has changed since the graph was made

    # --- what is known -------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """Switches and links, with what each carries."""
        return self._graph

    @property
    def ready_graph(self) -> Graph:
        """That of it whose switches are connected to us: new ways can lead there only."""
        seen = self._graph, self.connected
        if seen[0] is not self._ready_from[0] or seen[1] != self._ready_from[1]:
            all_there = seen[1] >= self._graph.switches
            self._ready_graph = self._graph if all_there else Graph.of(seen[1], self._graph.links)
            self._ready_from = seen
        return self._ready_graph

    @property
    def connected(self) -> frozenset[int]:
        """The switches that are connected to us."""
        return frozenset(self._connected)

    def connected_at_s(self, switch: int) -> float:
        """Return when a switch has last connected."""
        return self._connected_at_s.get(switch, -float("inf"))

    @property
    def tables(self) -> int:
        """How many tables a switch has to have."""
        return 1 + (self._bands.second if self._forwarding else self._bands.table)

    @property
    def settled(self) -> bool:
        """Whether so much time has passed since the start that what has not been found is not there."""
        return self._ticked_s >= self._settles_s

    @property
    def left_alone(self) -> frozenset[int]:
        """The switches that forward as they did before a restart, until the network has settled."""
        return frozenset(self._found)

    def edge_ports(self) -> frozenset[Port]:
        """Return the ports where hosts may be."""
        return frozenset(self._edges)

    def unused_ports(self) -> frozenset[Port]:
        """Return the ports that lead where others lead already, over bridges: frames would circle there."""
        return self._unused

    def ports(self, switch: int) -> list[PortState]:
        """Return the ports of a switch that are up."""
        return self._discovery.ports(switch)

    def rules(self, switch: int) -> SwitchRules:
        """Return what a switch is to hold."""
        return self._rules.setdefault(switch, SwitchRules())

    def next_s(self) -> float:
        """Return when `tick` has something to do again."""
        if self._stale or self._cleared & self._connected:
            return -float("inf")
        waits = [self._settles_s] if self._found else []
        silent = (since_s + SILENT_S for since_s in self._silent_s.values())
        return min((self._discovery.next_s(self._ticked_s), *waits, *silent))

    # --- what switches tell --------------------------------------------------------------------------

    def switch_up(
        self, switch: int, ports: Iterable[PortState], found: Mapping[Key, Entry], now_s: float
    ) -> Messages:
        """A switch has connected: with these ports, holding these entries of ours."""
        self._connected.add(switch)
        self._connected_at_s[switch] = now_s
        self._silent_s.pop(switch, None)
        self._answers_s.pop(switch, None)
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
        if now_s < self._settles_s and self._forwards(found):
            self._found[switch] = found
        else:  # it may have been left alone until it was started anew, and is empty now
            self._found.pop(switch, None)
            changes = self._reconciled(switch, found)
        return changes + self._questions(now_s)

    def switch_down(self, switch: int, now_s: float) -> None:
        """The connection to a switch is lost; it is forgotten unless it is back in time."""
        self._connected.discard(switch)
        self._silent_s[switch] = now_s

    def switch_answers(self, switch: int, within_s: float) -> None:
        """A switch has answered a question of ours that it does nothing for."""
        self._answers_s[switch] = min(within_s, self._answers_s.get(switch, within_s))

    def answers_s(self, switch: int) -> float | None:
        """Return the least time in which a switch has answered; None where it has not."""
        return self._answers_s.get(switch)

    def port_changed(self, state: PortState, now_s: float) -> Messages:
        """A port has come up, gone down, or changed otherwise."""
        self._stale |= self._discovery.port(state, now_s)
        if not state.up:
            self.hosts.gone([state.port])
        return self._questions(now_s)

    def port_gone(self, port: Port) -> None:
        """A port is no more."""
        self.hosts.gone([port])
        self._stale |= self._discovery.port_gone(port)

    def frame_in(self, port: Port, data: bytes, now_s: float) -> Messages:
        """A switch hands us a frame that has come in on one of its ports."""
        if self._discovery.heard(port, data, now_s):
            self.hosts.gone(end for link in self._discovery.links for end in (link.start, link.end))
            self._stale = True
            return []
        changes: Messages = []
        may_be_there = self._discovery.may_be_edge(port) and port not in self._unused
        if may_be_there and not is_to_all(data) and not self._astray.is_stray(port, data, now_s):
            for told in told_by(data):
                sure = self._discovery.is_edge(port, now_s)
                host = self.hosts.heard(told.hardware, told.address, port, now_s, sure=sure)
                changes += self._unplace(self.hosts.take_forgotten())
                if host is not None and port in self._edges:
                    changes += self._place(host)
        return changes

    def entry_gone(self, switch: int, gone: Gone) -> Messages:
        """A switch has removed an entry that nothing matched for long; it has it again if it is wanted."""
        entry = self.rules(switch).wants(gone.key, gone.cookie)
        if entry is None or kind_of(gone.cookie) != Kind.PATH_SET:
            return []
        return [(switch, Add(entry))]

    def refused(self, switch: int, entry: Entry) -> None:
        """A switch does not take an entry that it was told to add."""
        self.rules(switch).refused(entry)

    def tick(self, now_s: float) -> Messages:
        """Time has passed: questions are due, links are lost, ports are decided, silent switches gone.

        What was told meanwhile takes effect here, all of it at once: call it when `next_s` says so.
        """
        if now_s - self._ticked_s > STILL_S:
            self._discovery.stood_still(now_s - self._ticked_s, now_s)
        self._ticked_s = now_s
        silent = [switch for switch, since_s in self._silent_s.items() if now_s >= since_s + SILENT_S]
        for switch in silent:
            self._forget(switch)
        self._stale |= self._discovery.lost(now_s, self._silent_s) or bool(silent)
        self._stale |= self._delays_changed(now_s)
        self._stale |= self._discovery.edges(now_s) != self._edges | self._unused
        changes = self._rebuild(now_s) if self._stale else []
        if self._found and now_s >= self._settles_s:
            changes += self._settle(now_s)
        for switch in self._cleared & self._connected:
            changes += self._clear(switch)
        return changes + self._questions(now_s)

    # --- what follows --------------------------------------------------------------------------------

    def host_questions(self, address: str) -> Messages:
        """Return what asks for the host with an address, at all ports where hosts may be."""
        frame = host_question(address)
        ports: dict[int, list[int]] = defaultdict(list)
        for port in sorted(self._edges):
            if port.switch in self._connected:
                ports[port.switch].append(port.number)
        return [(switch, SendOut(frame, tuple(numbers))) for switch, numbers in ports.items()]

    def forget_silent_hosts(self, used: Iterable[str], now_s: float) -> Messages:
        """Ask for hosts that have said nothing for long, and forget those that were asked for the last time.

        Where they are, by what they have said last. Those with hardware addresses in `used` are there.
        """
        self.hosts.used(used, now_s)
        questions: Messages = [
            (host.port.switch, SendOut(host_question(address), (host.port.number,)))
            for host in self.hosts.expire(now_s)
            if host.port.switch in self._connected
            for address in host.addresses[-MOST_ASKED:]
        ]
        return self._unplace(self.hosts.take_forgotten()) + questions

    def ask_astray(self, used: Callable[[], set[str]], now_s: float) -> Messages:
        """Ask for hosts forgotten as other ports of bridges are used now; call it after each change.

        Those whose hardware addresses `used` returns: frames for others are flooded until they are heard.
        """
        due = self._astray.due(now_s)
        some = used() if due else set()
        return [
            message
            for host in due
            if host.hardware in some and self.hosts.with_hardware(host.hardware) is None
            for address in host.addresses
            for message in self.host_questions(address)
        ]

    def change(self, switch: int, owner: object, entries: Iterable[Entry]) -> Messages:
        """Have exactly these entries of `owner` in a switch; see SwitchRules.put."""
        changes = self.rules(switch).put(owner, entries)
        return [(switch, change) for change in changes] if switch in self._connected else []

    def rates_changed(self, rates_bps: Rates, delays_s: Rates) -> None:
        """What links carry and how long they take has been told anew."""
        self._rates_bps, self._told_delays_s = rates_bps, delays_s
        self._stale = True

    def _rebuild(self, now_s: float) -> Messages:
        self._stale = False
        switches = self._connected | set(self._silent_s)
        delays = self._delays_s()
        self._graph = graph_of(switches, self._discovery.links, self._rates_bps, delays, self._default_bps)
        edges, tree = self._discovery.edges(now_s), tree_links(self._graph)
        pairs = self._discovery.bridged
        before = self._edges, self._unused
        self._unused = closes_a_loop(edges, tree, pairs)
        self._edges = edges - self._unused
        if not self._forwarding:
            return []
        self._forget_astray(*before, frozenset(port for pair in pairs for port in pair), now_s)
        changes: Messages = []
        for switch in switches:
            changes += self._forward(switch, "unused", unused_entries(self._bands, switch, self._unused))
        floods = flood_entries(self._bands, switches, tree, self._edges)
        for switch, entries in floods.items():
            changes += self._forward(switch, "flood", entries)
        towards, self._towards = self._towards, {}
        hosts = {host.hardware: host for host in self.hosts.all if host.port in self._edges}
        changes += self._unplace(self._placed.keys() - hosts.keys())
        for host in hosts.values():
            at = host.port.switch
            if self._placed.get(host.hardware) != host or towards.get(at) != self._to(at):
                changes += self._place(host)
        return changes

    def _forget_astray(
        self, edges: set[Port], unused: frozenset[Port], bridged: frozenset[Port], now_s: float
    ) -> None:
        """Forget hosts at ports that are not used, and at all that bridges join where others are used now.

        At all: whoever is heard over one bridge may be beyond another. `edges`, `unused`: before.
        """
        gone = self.hosts.gone(self._unused) if self._unused else []
        ports, self._bridged = self._bridged | bridged, bridged
        no_more, anew = edges & self._unused, unused & self._edges
        if no_more or anew:
            gone += self.hosts.gone(ports)
            self._astray.forgotten(gone, ports if no_more else (), now_s)

    def _delays_s(self) -> Rates:
        return {**self._discovery.delays_s(self._answers_s), **self._told_delays_s}

    def _delays_changed(self, now_s: float) -> bool:
        """Whether links are known to be much quicker than the graph says; looked at once in a while."""
        if now_s < self._delays_at_s + DELAYS_EVERY_S:
            return False
        self._delays_at_s = now_s
        known = self._delays_s()
        now = ((link.delay_s, known.get((link.start, link.end), 0.0)) for link in self._graph.links)
        return any(abs(delay - said) > max(LEAST_CHANGE_S, CHANGE * said) for said, delay in now)

    def _place(self, host: Host) -> Messages:
        """Have entries for a host at an edge wherever there is a way to it."""
        changes: Messages = []
        if self._forwarding:
            self._placed[host.hardware] = host
            for switch in self._graph.switches:
                entry = host_entry(self._bands, host, switch, self._to(host.port.switch))
                changes += self._forward(switch, ("host", host.hardware), [entry] if entry else [])
        return changes

    def _unplace(self, some: Iterable[str]) -> Messages:
        """Have no entries for hosts with these hardware addresses."""
        changes: Messages = []
        for hardware in some:
            if self._placed.pop(hardware, None) is not None:
                for switch in self._rules:
                    changes += self._forward(switch, ("host", hardware), [])
        return changes

    def _to(self, destination: int) -> dict[int, Port]:
        if destination not in self._towards:
            towards = next_links(self._graph, destination)
            self._towards[destination] = {switch: link.start for switch, link in towards.items()}
        return self._towards[destination]

    def _forward(self, switch: int, owner: object, entries: Iterable[Entry]) -> Messages:
        changes = self.change(switch, owner, entries)
        return changes if switch not in self._found else []

    def _settle(self, now_s: float) -> Messages:
        """Have what is wanted in the switches that were left alone; their entries tell of hosts, too."""
        changes: Messages = []
        left_alone, self._found = self._found, {}
        for switch, found in left_alone.items():
            for entry in found.values():
                hardware = dict(entry.match).get("eth_dst")
                ports = [Port(switch, number) for number in entry.outputs]
                if (
                    isinstance(hardware, str)
                    and hardware not in self._placed
                    and self._edges.issuperset(ports)
                ):
                    for port in ports:
                        host = self.hosts.heard(hardware, None, port, now_s, sure=True)
                        changes += self._place(host) if host else []
        changes += self._unplace(self.hosts.take_forgotten())
        for switch, found in left_alone.items():
            changes += self._reconciled(switch, found)
        return changes

    def _reconciled(self, switch: int, found: Mapping[Key, Entry]) -> Messages:
        """Have what is wanted in a switch that holds these entries; what it holds besides goes bit by bit."""
        changes = self.rules(switch).reconciled(found)
        self._cleared.add(switch)
        return [(switch, change) for change in changes] + self._clear(switch)

    def _clear(self, switch: int) -> Messages:
        """Remove some of what a switch has held and is not wanted."""
        removed = self.rules(switch).next_removed()
        if removed is None:
            self._cleared.discard(switch)
        return [(switch, message) for message in removed or ()]

    def _forwards(self, found: Mapping[Key, Entry]) -> bool:
        """Whether a switch with these entries forwards by them: all that comes, or streams of path sets."""
        if self._forwarding:
            return any(key.table == self._bands.second for key in found)
        return any(kind_of(entry.cookie) == Kind.PATH_SET for entry in found.values())

    def _forget(self, switch: int) -> None:
        del self._silent_s[switch]
        self._connected_at_s.pop(switch, None)
        self._answers_s.pop(switch, None)
        self._rules.pop(switch, None)
        self._found.pop(switch, None)
        self._cleared.discard(switch)
        self.hosts.gone(port for host in self.hosts.all if (port := host.port).switch == switch)
        self._discovery.switch_gone(switch)

    def _questions(self, now_s: float) -> Messages:
        return [
            (port.switch, SendOut(frame, (port.number,)))
            for port, frame in self._discovery.questions(now_s)
            if port.switch in self._connected
        ]
