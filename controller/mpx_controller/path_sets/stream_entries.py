"""The entries of the streams of path sets in switches."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import Entry, Messages
from mpx_controller.graph import Path, switches_of
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import Network
from mpx_controller.path_sets.path_set import PathSet, StreamKey, alive, least_filled
from mpx_controller.shortest import shortest_path
from mpx_controller.steering import Ends, stream_entries

AGAIN_S = 60.0  # a switch that has refused a stream is asked again after so long, ...
SELDOM_S = 3600.0  # ... twice as long after each time that it refuses again, and so long at most


@dataclass(frozen=True)
class _Refusal:
    """The refusal of a stream's entry by a switch."""

    at_s: float
    rests_s: float = AGAIN_S
    holds: bool = True  # the switch has not been asked again since


class StreamEntries:
    """Decides which switches hold entries of each stream. `idle_s`: idle timeout of the entries, 0: none."""

    def __init__(self, network: Network, bands: Bands, idle_s: int) -> None:
        self._network, self._bands, self._idle_s = network, bands, idle_s
        self._ways: defaultdict[int, dict[StreamKey, int | None]] = defaultdict(dict)
        self.off_path: set[int] = set()  # sets with streams on none of their paths
        self._where: dict[int, Ends] = {}  # between which ports the streams of each set lead
        self._on: defaultdict[int, dict[StreamKey, dict[int, list[Entry]]]] = defaultdict(dict)
        # of each stream the switches that have refused it
        self._refuse: defaultdict[int, dict[StreamKey, dict[int, _Refusal]]] = defaultdict(dict)

    def switches_of(self, number: int, keys: Iterable[StreamKey] | None = None) -> frozenset[int]:
        """Return the switches that are to hold entries of a set; `keys`: of these of its streams."""
        held = self._on.get(number, {})
        return frozenset().union(*(held.get(key, ()) for key in (held if keys is None else keys)))

    def asked_anew(self, number: int, key: StreamKey) -> None:
        """Note a new request for a stream, whose caller waits for the switches."""
        for switch in self.switches_of(number, [key]):
            self._network.rules(switch).asked_anew(_owner(number, key))

    def lacks(self, number: int, key: StreamKey) -> frozenset[int]:
        """Return the switches that have refused an entry of a stream."""
        return frozenset(
            switch
            for switch in self.switches_of(number, [key])
            if self._network.rules(switch).lacks(_owner(number, key))
        )

    def avoid(self, number: int, key: StreamKey, now_s: float) -> bool:
        """Have a stream keep clear of the switches that refuse it; return whether there are any."""
        lacks = self.lacks(number, key)
        if lacks:
            known = self._refuse[number].setdefault(key, {})
            for switch in lacks:
                before = known.get(switch)
                rests_s = min(SELDOM_S, 2 * before.rests_s) if before else AGAIN_S
                known[switch] = _Refusal(now_s, rests_s)
        return bool(lacks)

    def ask_again(self, now_s: float) -> dict[int, list[StreamKey]]:
        """Let switches be asked again that refused streams long ago, or before they reconnected.

        Return the streams of each set that are to be steered for that.
        """
        found: dict[int, list[StreamKey]] = {}
        for number, refused in self._refuse.items():
            for key, switches in refused.items():
                held = {switch for switch, refusal in switches.items() if refusal.holds}
                for switch, refusal in list(switches.items()):
                    if refusal.at_s <= self._network.connected_at_s(switch):
                        del switches[switch]
                    elif now_s >= refusal.at_s + refusal.rests_s:
                        switches[switch] = replace(refusal, holds=False)
                if any(switch not in switches or not switches[switch].holds for switch in held):
                    found.setdefault(number, []).append(key)
        return found

    def avoid_none_with(self, number: int, keys: Iterable[StreamKey]) -> None:
        """Forget which switches refused these streams of a set, so that all are asked again."""
        for key in keys:
            self._refuse[number].pop(key, None)

    def current_paths(self, number: int) -> dict[StreamKey, int | None]:
        """Return on which path of its set each stream is now; None: on none of them."""
        return dict(self._ways[number]) if number in self._ways else {}

    def has_moved(self, known: PathSet) -> bool:
        """Whether one of its hosts is not where its streams lead."""
        now = self._where_they_are(known)
        return self._where.get(known.number, now) != now

    def alive(self, known: PathSet) -> frozenset[int]:
        """Return the places of the paths of a set that are there now, and lead from host to host."""
        graph, now = self._network.graph, self._where_they_are(known)
        if (known.ends.source_port.switch, known.ends.sink_port.switch) != (
            now.source_port.switch,
            now.sink_port.switch,
        ):
            return frozenset()
        return frozenset(place for place, each in enumerate(known.paths) if alive(graph, each.path))

    def ready(self, known: PathSet) -> frozenset[int]:
        """Return the places of the paths that a stream can be put on: all their switches are connected."""
        start, connected = known.ends.source_port.switch, self._network.connected
        return frozenset(
            place
            for place in self.alive(known)
            if connected.issuperset(switches_of(known.paths[place].path, start))
        )

    def leads(self, known: PathSet) -> bool:
        """Whether there is any path for a new stream."""
        return bool(self.ready(known)) or self._shortest_ready(self._where_they_are(known)) is not None

    def steer(self, known: PathSet, keys: Iterable[StreamKey]) -> Messages:
        """Put the entries of streams on their paths; where a path is not ready, on another of the set.

        Where none is ready, on the shortest path that is; where there is none, on none. A stream that
        is on a path stays there while a switch of it is away, as that goes on forwarding. Where a host has
        moved all streams of the set follow. Where a switch refuses a stream, the stream avoids it, or has no
        entries: then it is forwarded as unassigned traffic.
        """
        there, ready = self.alive(known), self.ready(known)
        ends = self._where_they_are(known)
        moved = self.has_moved(known)
        if moved:
            keys = known.placed
        if known.placed:
            self._where[known.number] = ends
        filled = Counter(place for place in known.placed.values() if place in there)
        messages: Messages = []
        for key in keys:
            refusals = self._refuse[known.number].get(key, {})
            refuse = frozenset(switch for switch, refusal in refusals.items() if refusal.holds)
            usable = frozenset(
                place
                for place in ready | there.intersection([self._ways[known.number].get(key)])
                if refuse.isdisjoint(switches_of(known.paths[place].path, ends.source_port.switch))
            )
            place = known.placed[key]
            if place not in usable and usable:
                place = least_filled(known.paths, filled, usable)
                filled[place] += 1
            before = self._ways[known.number].get(key)
            self._ways[known.number][key] = place if place in usable else None
            if place in usable and place == before and not moved and self._is_held(known.number, key):
                continue
            if place in usable:
                entries = self._entries(known, key, ends, known.paths[place].path)
            else:
                entries = {} if refuse else self._shortest(known, key, ends)
            messages += self._have(known.number, key, entries)
        self._note_stray(known.number)
        return messages

    def unsteer(self, known: PathSet, key: StreamKey) -> Messages:
        """Remove the entries of a stream."""
        self._ways[known.number].pop(key, None)
        self._refuse[known.number].pop(key, None)
        if not self._ways[known.number]:
            del self._ways[known.number], self._refuse[known.number]
            self._where.pop(known.number, None)
        self._note_stray(known.number)
        return self._have(known.number, key, {})

    def _note_stray(self, number: int) -> None:
        if None in self._ways.get(number, {}).values():
            self.off_path.add(number)
        else:
            self.off_path.discard(number)

    def _is_held(self, number: int, key: StreamKey) -> bool:
        """Whether all switches of its path have the entries of a stream, as far as is known."""
        switches = self._on.get(number, {}).get(key, {})
        owner = _owner(number, key)
        return bool(switches) and all(self._network.rules(switch).holds(owner) for switch in switches)

    def _have(self, number: int, key: StreamKey, entries: dict[int, list[Entry]]) -> Messages:
        """Set the entries of a stream, those furthest from the source first."""
        held = self._on[number]
        before = held.pop(key, {})
        if entries:
            held[key] = entries
        if not held:
            del self._on[number]
        messages: Messages = []
        for switch in [*reversed(list(entries)), *(before.keys() - entries.keys())]:
            messages += self._network.change(switch, _owner(number, key), entries.get(switch, []))
        return messages

    def _shortest(self, known: PathSet, key: StreamKey, ends: Ends) -> dict[int, list[Entry]]:
        """Return the entries of a stream on the shortest path; switches that are away have theirs already."""
        graph = self._network.graph
        path = shortest_path(graph, ends.source_port.switch, ends.sink_port.switch)
        entries = self._entries(known, key, ends, path)
        held = self._on.get(known.number, {}).get(key, {})
        if all(held.get(switch) == entries[switch] for switch in entries.keys() - self._network.connected):
            return entries
        return self._entries(known, key, ends, self._shortest_ready(ends))

    def _shortest_ready(self, ends: Ends) -> Path | None:
        """Return the shortest path whose switches are all connected."""
        graph = self._network.ready_graph
        path = None
        if {ends.source_port.switch, ends.sink_port.switch} <= graph.switches:
            path = shortest_path(graph, ends.source_port.switch, ends.sink_port.switch)
        return path if path is not None and graph.reverse(path) is not None else None

    def _entries(
        self, known: PathSet, key: StreamKey, ends: Ends, path: Path | None
    ) -> dict[int, list[Entry]]:
        """Return the entries of a stream on a path, by switch; none where it does not lead back as well."""
        back = self._network.graph.reverse(path) if path is not None else None
        if path is None or back is None:
            return {}
        return stream_entries(
            ends,
            key.port,
            key.side,
            (path, back),
            table=self._bands.table,
            priority=self._bands.path_sets + (key.side == "source"),
            cookie=cookie(Kind.PATH_SET, known.number),
            idle_s=self._idle_s,
        )

    def _where_they_are(self, known: PathSet) -> Ends:
        """Return where the two hosts of a set are now; where they were if that is not known."""
        ends = known.ends
        if known.hardware is None:
            return ends
        source, sink = (self._network.hosts.with_hardware(each) for each in known.hardware)
        return replace(
            ends,
            source_port=source.port if source else ends.source_port,
            sink_port=sink.port if sink else ends.sink_port,
        )


def _owner(number: int, key: StreamKey) -> object:
    return "stream", number, key
