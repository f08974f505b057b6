"""All path sets: their owners, the paths of their streams, and the entries of switches for them."""

import math
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mpx.units import counted
from mpx_controller.errors import NoPath, NotThere, NotYours, Taken, TooMany
from mpx_controller.flows import Messages
from mpx_controller.graph import Path, Route, delay_s, route
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import Network
from mpx_controller.path_sets.affected_sets import AffectedSets
from mpx_controller.path_sets.choices import Choice, Choices
from mpx_controller.path_sets.path_set import PathSet, StreamKey, described
from mpx_controller.path_sets.prediction import (
    BYTES_PER_STREAM,
    LEAST_RATE,
    learnt,
    predicted_streams,
    within,
)
from mpx_controller.path_sets.selection import Select, widest_apart
from mpx_controller.path_sets.shares import bottleneck_groups, shares_bps
from mpx_controller.path_sets.stream_entries import StreamEntries
from mpx_controller.steering import Ends

LEASES, LEAST_IDLE_S = (
    10,
    600,
)  # leases and seconds: a stream that is idle for so long has no lease any more
MOST_IDLE_S = 65_535  # the maximum of OpenFlow
MOST_PATHS = 64  # of one set, also with `count` 0


@dataclass(frozen=True)
class Limits:
    """Limits of one owner, and the length of a lease."""

    lease_s: float = 60.0
    streams: int = 256  # of one set
    sets: int = 64  # of one owner
    all_sets: int = 10_000

    @property
    def idle_s(self) -> int:
        """The idle timeout of entries: switches remove them where no controller is left to do so."""
        return min(MOST_IDLE_S, max(LEAST_IDLE_S, math.ceil(LEASES * self.lease_s)))


class PathSets:
    """Decides, and keeps the state; the messages that it returns are for the switches."""

    def __init__(self, network: Network, bands: Bands, limits: Limits, select: Select = widest_apart) -> None:
        self._network, self._limits = network, limits
        self._choices = Choices(select)
        self._steered = StreamEntries(network, bands, limits.idle_s)
        self._affected = AffectedSets()
        self._moves = 0  # of hosts, at the last call of `affected`
        self._sets: dict[int, PathSet] = {}
        self._taken: dict[tuple[str, str, int], int] = {}
        self._bytes_each: dict[Route, float] = {}
        self._last = 0

    @property
    def all(self) -> Mapping[int, PathSet]:
        """All path sets, by number."""
        return dict(self._sets)

    def restore(self, sets: Iterable[PathSet], last: int) -> Messages:
        """Restore the sets of before a restart, after the hosts; numbers go on after `last`."""
        self._last = last
        messages: Messages = []
        for each in map(self._with_hardware, sets):
            self._sets[each.number] = each
            self._affected.add(each)
            for key in each.placed:
                self._taken[_claim(each, key)] = each.number
            messages += self._steered.steer(each, each.placed)
        return messages

    @property
    def last(self) -> int:
        """The largest number given to a set so far."""
        return self._last

    def assign(self, source: str, sink: str, count: int, owner: str, now_s: float) -> PathSet:
        """Return a new path set of at most `count` paths (0: as many as help) between two hosts.

        Raises NotThere for a host that has not been seen, NoPath where nothing leads from one to the other,
        TooMany beyond the owner's quota.
        """
        if sum(each.owner == owner for each in self._sets.values()) >= self._limits.sets:
            raise TooMany(f"{owner} has {counted(self._limits.sets, 'path set')}, the maximum; release some")
        if len(self._sets) >= self._limits.all_sets:
            raise TooMany(f"there are {self._limits.all_sets} path sets already; try again later")
        ends = self._ends(source, sink)
        choice = self._choice(ends, count)
        most = min(MOST_PATHS, self._limits.streams)  # a path without a stream is of no use
        paths = list(choice.paths)[:most]
        if not paths:
            raise NoPath(f"there is no path from {source} to {sink} and back at present")
        back_s = [delay_s(self._network.graph.reverse(path) or ()) for path in paths]
        rates = shares_bps(paths)
        streams = [
            self._predicted(path, rate, delay_s(path) + back)
            for path, rate, back in zip(paths, rates, back_s, strict=True)
        ]
        streams = within(streams, self._limits.streams)
        self._last += 1
        made = self._with_hardware(
            PathSet(
                self._last,
                owner,
                ends,
                described(paths, bottleneck_groups(paths), back_s, streams),
                choice.max_flow_bps,
                now_s + self._limits.lease_s,
            )
        )
        self._sets[made.number] = made
        self._affected.add(made)
        return made

    def get(self, number: int, owner: str | None = None) -> PathSet:
        """Return a set; raises NotThere, or NotYours where its owner is not `owner`."""
        found = self._sets.get(number)
        if found is None:
            raise NotThere(f"there is no path set {number}; it may have expired")
        if owner is not None and found.owner != owner:
            raise NotYours(f"path set {number} belongs to another owner")
        return found

    def place(
        self, number: int, keys: Sequence[StreamKey], owner: str | None, now_s: float, path: int | None = None
    ) -> tuple[list[int], Messages]:
        """Put streams on paths; return the number of the path of each, and messages for switches.

        `path`: on this one; None: each on the path that is furthest behind its share. A stream that is in the
        set already is moved if another path is given. Raises NotThere, NotYours, Taken, TooMany, NoPath.
        """
        known = self.get(number, owner)
        if path is not None and not 0 <= path < len(known.paths):
            raise NotThere(f"path set {number} has paths 0 to {len(known.paths) - 1}, and no path {path}")
        new = set(keys) - set(known.placed)
        if len(known.placed) + len(new) > self._limits.streams:
            raise TooMany(
                f"path set {number} may have at most {counted(self._limits.streams, 'stream')}; remove some"
            )
        for key in new:
            other = self._taken.get(_claim(known, key), number)
            if other != number:
                raise Taken(f"port {key.port} of the {key.side} is steered by another path set")
        if new and not self._steered.leads(known):
            raise NoPath(f"no path of path set {number} has all its switches connected; try again")
        usable = self._steered.ready(known)
        for key in keys:
            if key in new or path is not None:
                at = path if path is not None else known.next_path(usable or None)
                known = known.with_stream(key, at)
            self._taken[_claim(known, key)] = number
        self._sets[number] = replace(known, expires_s=now_s + self._limits.lease_s)
        self._steered.avoid_none_with(number, keys)
        messages = self._steered.steer(known, keys)
        for key in keys:
            self._steered.asked_anew(number, key)
        return [known.placed[key] for key in keys], messages

    def check_held(self, number: int, keys: Iterable[StreamKey]) -> None:
        """Raise NotThere or NoPath unless the switches that have confirmed hold what these streams need."""
        placed = self.get(number).placed
        if any(key not in placed or self._steered.lacks(number, key) for key in keys):
            raise NoPath(f"a switch refuses entries of path set {number}; see the controller's log")

    def take_back(
        self, number: int, keys: Iterable[StreamKey], before: Mapping[StreamKey, int], now_s: float
    ) -> Messages:
        """Undo a failed placement: streams return to where they were `before`, or are removed.

        They avoid switches that have just refused them.
        """
        messages: Messages = []
        known = self._sets.get(number)
        for key in keys:
            if known is None or key not in known.placed:
                continue
            if key in before:
                known = known.with_stream(key, before[key])
                self._steered.avoid(number, key, now_s)
                messages += self._steered.steer(known, [key])
            else:
                messages += self._unsteer(known, key)
                known = known.without_stream(key)
            self._sets[number] = known
        return messages

    def remove_streams(self, number: int, keys: Iterable[StreamKey], owner: str | None) -> Messages:
        """Remove streams that have ended; unknown ones are ignored."""
        known = self.get(number, owner)
        messages: Messages = []
        for key in keys:
            messages += self._unsteer(known, key)
            known = known.without_stream(key)
        self._sets[number] = known
        return messages

    def renew(self, number: int, owner: str | None, now_s: float) -> PathSet:
        """Renew the lease of a set."""
        self._sets[number] = replace(self.get(number, owner), expires_s=now_s + self._limits.lease_s)
        return self._sets[number]

    def used(self, numbers: Iterable[int], now_s: float) -> None:
        """Renew the leases of sets whose entries have counted bytes."""
        for number in numbers:
            if number in self._sets:
                self.renew(number, None, now_s)

    def current_paths(self, number: int) -> dict[StreamKey, int | None]:
        """Return the path that each stream takes now; None: none of the set."""
        return self._steered.current_paths(number)

    def bytes_per_stream(self, path: Path) -> float:
        """Return 1/a of a path, as learnt from feedback."""
        return self._bytes_each.get(route(path), BYTES_PER_STREAM)

    def switches_of(self, number: int, keys: Sequence[StreamKey] | None = None) -> frozenset[int]:
        """Return the switches that are to hold entries of a set; `keys`: of these of its streams."""
        return self._steered.switches_of(number, keys)

    def release(self, number: int, owner: str | None = None) -> Messages:
        """Release a set."""
        known = self.get(number, owner)
        messages: Messages = []
        for key in known.placed:
            messages += self._unsteer(known, key)
        del self._sets[number]
        self._affected.remove(known)
        return messages

    def expire(self, now_s: float) -> tuple[list[int], Messages]:
        """Release sets whose lease has ended; return their numbers."""
        ended = [number for number, known in self._sets.items() if known.expires_s <= now_s]
        return ended, [message for number in ended for message in self.release(number)]

    def next_s(self) -> float:
        """Return when the next lease ends."""
        return min((known.expires_s for known in self._sets.values()), default=float("inf"))

    def alive(self, known: PathSet) -> frozenset[int]:
        """Return the numbers of the paths of a set that the network has now."""
        return self._steered.alive(known)

    def affected(self, now_s: float) -> list[int]:
        """Return the sets affected by changes of the network since the last call, lost paths first.

        Then those with streams on none of their paths, or whose hosts have moved, and those with found paths.
        """
        lost, found = self._affected.take(self._network)
        moved = self._network.hosts.moves != self._moves
        self._moves = self._network.hosts.moves
        hosts = [number for number, known in self._sets.items() if moved and self._steered.has_moved(known)]
        refused = self._steered.ask_again(now_s)
        return list(dict.fromkeys((*lost, *self._steered.off_path, *hosts, *refused, *found)))

    def reroute(self, now_s: float, numbers: Iterable[int] | None = None) -> Messages:
        """Put all streams on paths that the network has now.

        After a restart the network is found piece by piece, and streams would take whatever the first pieces
        allow: so switches that are left alone get changes only when it has settled. `numbers`: only these
        sets, of those of `affected`.
        """
        messages: Messages = []
        for number in self.affected(now_s) if numbers is None else numbers:
            if (known := self._sets.get(number)) is not None:
                messages += self._steered.steer(known, known.placed)
        return self._without_left_alone(messages)

    def route_around(
        self, number: int, but: Container[Hashable], now_s: float
    ) -> tuple[list[StreamKey], Messages]:
        """Route the streams of a set around switches that have refused them; return these streams.

        `but`: set and stream of placements under way.
        """
        known = self._sets.get(number)
        if known is None:
            return [], []
        there = [key for key in known.placed if (number, key) not in but]
        keys = [key for key in there if self._steered.avoid(number, key, now_s)]
        return keys, self._steered.steer(known, keys) if keys else []

    def ask_again(self, now_s: float) -> tuple[dict[int, list[StreamKey]], Messages]:
        """Put streams on their paths again whose switches refused them long ago; return these streams."""
        asked = self._steered.ask_again(now_s)
        messages: Messages = []
        for number, keys in asked.items():
            messages += self._steered.steer(self._sets[number], keys)
        return asked, self._without_left_alone(messages)

    def follow(self) -> tuple[list[int], Messages]:
        """Follow hosts that have moved; return the sets that this affects."""
        moved = [known for known in self._sets.values() if self._steered.has_moved(known)]
        messages = [message for known in moved for message in self._steered.steer(known, known.placed)]
        return [known.number for known in moved], self._without_left_alone(messages)

    def feedback(
        self, number: int, owner: str | None, path: int, streams: int, rate_bps: float, rtt_s: float
    ) -> None:
        """Learn from a transfer how many streams are best on a path, for later predictions.

        Values that cannot be, or that something else than the path has limited, are ignored, as they would
        affect the predictions of all. Raises NotThere, NotYours.
        """
        known = self.get(number, owner)
        if not 0 <= path < len(known.paths):
            raise NotThere(f"path set {number} has no path {path}")
        if streams > self._limits.streams or rate_bps < LEAST_RATE * known.paths[path].rate_bps:
            return
        on = known.paths[path].path
        self._bytes_each[route(on)] = learnt(self.bytes_per_stream(on), rate_bps, rtt_s, streams)

    # --- what follows --------------------------------------------------------------------------------

    def _choice(self, ends: Ends, count: int) -> Choice:
        """Return the paths of a new set."""
        start, destination = ends.source_port.switch, ends.sink_port.switch
        graph, ready = self._network.graph, self._network.ready_graph
        if ready is graph:
            return self._choices.of(graph, start, destination, count)
        return self._choices.beside_absent(graph, ready, start, destination, count)

    def _without_left_alone(self, messages: Messages) -> Messages:
        left_alone = self._network.left_alone
        return [(switch, message) for switch, message in messages if switch not in left_alone]

    def _with_hardware(self, known: PathSet) -> PathSet:
        """Return a set with the hardware addresses of its hosts; one of an older state file has none."""
        source, sink = (self._network.hosts.at(each) for each in (known.ends.source, known.ends.sink))
        if known.hardware is not None or source is None or sink is None:
            return known
        return replace(known, hardware=(source.hardware, sink.hardware))

    def _ends(self, source: str, sink: str) -> Ends:
        found = []
        for address in (source, sink):
            host = self._network.hosts.at(address)
            if host is None:
                raise NotThere(f"no host with the address {address} is known")
            found.append(host.port)
        return Ends(source, sink, found[0], found[1])

    def _predicted(self, path: Path, rate_bps: float, rtt_s: float) -> int:
        if not path:
            return 1
        return predicted_streams(rate_bps, rtt_s, self.bytes_per_stream(path))

    def _unsteer(self, known: PathSet, key: StreamKey) -> Messages:
        if key not in known.placed:
            return []
        self._taken.pop(_claim(known, key), None)
        return self._steered.unsteer(known, key)


def _claim(known: PathSet, key: StreamKey) -> tuple[str, str, int]:
    """Return the port and the hosts of a stream, which only one path set may steer."""
    ends = known.ends
    host, other = (ends.source, ends.sink) if key.side == "source" else (ends.sink, ends.source)
    return host, other, key.port
