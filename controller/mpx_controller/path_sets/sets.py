"""All path sets: who has which, on which paths their streams are, and what switches are to hold for them."""

import math
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mpx.units import counted
from mpx_controller.errors import NotThere, NotYours, NoWay, Taken, TooMany
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
)  # leases and seconds: a stream that rests so long has to be far behind its lease
MOST_IDLE_S = 65_535  # OpenFlow knows no more
MOST_PATHS = 64  # of one set, also where as many as help are asked for


@dataclass(frozen=True)
class Limits:
    """What one owner may have, and for how long without a sign of use."""

    lease_s: float = 60.0
    streams: int = 256  # of one set
    sets: int = 64  # of one owner
    all_sets: int = 10_000

    @property
    def idle_s(self) -> int:
        """For how long nothing matches an entry until its switch removes it, should we be gone for good."""
        return min(MOST_IDLE_S, max(LEAST_IDLE_S, math.ceil(LEASES * self.lease_s)))


class PathSets:
    """Decides and remembers; what it returns as messages is for the switches."""

    def __init__(self, network: Network, bands: Bands, limits: Limits, select: Select = widest_apart) -> None:
        self._network, self._limits = network, limits
        self._choices = Choices(select)
        self._steered = StreamEntries(network, bands, limits.idle_s)
        self._concerned = AffectedSets()
        self._moves = 0  # of hosts, when the network was last looked at
        self._sets: dict[int, PathSet] = {}
        self._taken: dict[tuple[str, str, int], int] = {}
        self._bytes_each: dict[Route, float] = {}
        self._last = 0

    @property
    def all(self) -> Mapping[int, PathSet]:
        """All that there are, by number."""
        return dict(self._sets)

    def restore(self, sets: Iterable[PathSet], last: int) -> Messages:
        """Have again what was there before a restart, once hosts are; numbers go on after `last`."""
        self._last = last
        messages: Messages = []
        for each in map(self._with_hardware, sets):
            self._sets[each.number] = each
            self._concerned.add(each)
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

        Raises NotThere for a host that has not been seen, NoWay where nothing leads from one to the other,
        TooMany beyond the owner's quota.
        """
        if sum(each.owner == owner for each in self._sets.values()) >= self._limits.sets:
            raise TooMany(f"{owner} has {counted(self._limits.sets, 'path set')} already; release some")
        if len(self._sets) >= self._limits.all_sets:
            raise TooMany(f"there are {self._limits.all_sets} path sets already; try again later")
        ends = self._ends(source, sink)
        choice = self._choice(ends, count)
        most = min(MOST_PATHS, self._limits.streams)  # a path on which no stream may be is of no use
        paths = list(choice.paths)[:most]
        if not paths:
            raise NoWay(f"no path leads from {source} to {sink} and back now")
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
        self._concerned.add(made)
        return made

    def get(self, number: int, owner: str | None = None) -> PathSet:
        """Return a set; raises NotThere, or NotYours where it belongs to somebody else than `owner`."""
        found = self._sets.get(number)
        if found is None:
            raise NotThere(f"there is no path set {number}; it may have expired")
        if owner is not None and found.owner != owner:
            raise NotYours(f"path set {number} belongs to somebody else")
        return found

    def place(
        self, number: int, keys: Sequence[StreamKey], owner: str | None, now_s: float, path: int | None = None
    ) -> tuple[list[int], Messages]:
        """Put streams on paths; return the place of the path of each, and what switches are to be told.

        `path`: on this one; None: each on that which is furthest behind its share. A stream that is there
        already is moved if another path is asked for. Raises NotThere, NotYours, Taken, TooMany, NoWay.
        """
        known = self.get(number, owner)
        if path is not None and not 0 <= path < len(known.paths):
            raise NotThere(f"path set {number} has the paths 0 to {len(known.paths) - 1}, not {path}")
        new = set(keys) - set(known.placed)
        if len(known.placed) + len(new) > self._limits.streams:
            raise TooMany(
                f"path set {number} may have {counted(self._limits.streams, 'stream')}; release some"
            )
        for key in new:
            other = self._taken.get(_claim(known, key), number)
            if other != number:
                raise Taken(f"port {key.port} of the {key.side} is steered by another path set")
        if new and not self._steered.leads(known):
            raise NoWay(f"no path of path set {number} has all its switches connected; try again")
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
        """Raise NotThere or NoWay unless the switches that have confirmed hold what these streams need."""
        placed = self.get(number).placed
        if any(key not in placed or self._steered.lacks(number, key) for key in keys):
            raise NoWay(f"a switch refuses entries of path set {number}; see the controller's log")

    def take_back(
        self, number: int, keys: Iterable[StreamKey], before: Mapping[StreamKey, int], now_s: float
    ) -> Messages:
        """Have streams that could not be placed where they were `before`: on those paths, or not at all.

        They go round switches that have just refused them.
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
        """Streams have ended; those that are not there are passed over."""
        known = self.get(number, owner)
        messages: Messages = []
        for key in keys:
            messages += self._unsteer(known, key)
            known = known.without_stream(key)
        self._sets[number] = known
        return messages

    def renew(self, number: int, owner: str | None, now_s: float) -> PathSet:
        """Somebody still needs it."""
        self._sets[number] = replace(self.get(number, owner), expires_s=now_s + self._limits.lease_s)
        return self._sets[number]

    def used(self, numbers: Iterable[int], now_s: float) -> None:
        """Bytes were counted on the entries of these."""
        for number in numbers:
            if number in self._sets:
                self.renew(number, None, now_s)

    def ways(self, number: int) -> dict[StreamKey, int | None]:
        """Return on which path of its set each stream is now; None: on none of them."""
        return self._steered.ways(number)

    def bytes_per_stream(self, path: Path) -> float:
        """Return 1/a of a path, as far as transfers have told."""
        return self._bytes_each.get(route(path), BYTES_PER_STREAM)

    def switches_of(self, number: int, keys: Sequence[StreamKey] | None = None) -> frozenset[int]:
        """Return the switches that are to hold entries of a set; `keys`: of these of its streams."""
        return self._steered.switches_of(number, keys)

    def release(self, number: int, owner: str | None = None) -> Messages:
        """It is not needed any more."""
        known = self.get(number, owner)
        messages: Messages = []
        for key in known.placed:
            messages += self._unsteer(known, key)
        del self._sets[number]
        self._concerned.remove(known)
        return messages

    def expire(self, now_s: float) -> tuple[list[int], Messages]:
        """Release what nobody has used for too long; return the numbers."""
        ended = [number for number, known in self._sets.items() if known.expires_s <= now_s]
        return ended, [message for number in ended for message in self.release(number)]

    def next_s(self) -> float:
        """Return when the next lease ends."""
        return min((known.expires_s for known in self._sets.values()), default=float("inf"))

    def alive(self, known: PathSet) -> frozenset[int]:
        """Return the places of the paths of a set that the network has now."""
        return self._steered.alive(known)

    def concerned(self, now_s: float) -> list[int]:
        """Return the sets that changes of the network since the last call concern, what was lost first.

        Then those with streams on none of their paths, or whose hosts have moved, and what was found.
        """
        lost, found = self._concerned.take(self._network)
        moved = self._network.hosts.moves != self._moves
        self._moves = self._network.hosts.moves
        hosts = [number for number, known in self._sets.items() if moved and self._steered.has_moved(known)]
        refused = self._steered.ask_again(now_s)
        return list(dict.fromkeys((*lost, *self._steered.astray, *hosts, *refused, *found)))

    def reroute(self, now_s: float, numbers: Iterable[int] | None = None) -> Messages:
        """The network has changed: have all streams on paths that are there.

        After a restart the network is found piece by piece, and streams would go wherever the first pieces
        lead: switches that are left alone until it has settled are then told what is different. `numbers`:
        only in these sets, of those that are `concerned`.
        """
        messages: Messages = []
        for number in self.concerned(now_s) if numbers is None else numbers:
            if (known := self._sets.get(number)) is not None:
                messages += self._steered.steer(known, known.placed)
        return self._without_left_alone(messages)

    def route_around(
        self, number: int, but: Container[Hashable], now_s: float
    ) -> tuple[list[StreamKey], Messages]:
        """Have the streams of a set go round switches that have refused them; return which these are.

        `but`: set and stream of those that somebody is placing.
        """
        known = self._sets.get(number)
        if known is None:
            return [], []
        there = [key for key in known.placed if (number, key) not in but]
        keys = [key for key in there if self._steered.avoid(number, key, now_s)]
        return keys, self._steered.steer(known, keys) if keys else []

    def ask_again(self, now_s: float) -> tuple[dict[int, list[StreamKey]], Messages]:
        """Have streams on their paths again whose switches refused them long ago; return which these are."""
        asked = self._steered.ask_again(now_s)
        messages: Messages = []
        for number, keys in asked.items():
            messages += self._steered.steer(self._sets[number], keys)
        return asked, self._without_left_alone(messages)

    def follow(self) -> tuple[list[int], Messages]:
        """Have streams lead to where hosts are now; return the sets one of whose hosts has moved."""
        moved = [known for known in self._sets.values() if self._steered.has_moved(known)]
        messages = [message for known in moved for message in self._steered.steer(known, known.placed)]
        return [known.number for known in moved], self._without_left_alone(messages)

    def feedback(
        self, number: int, owner: str | None, path: int, streams: int, rate_bps: float, rtt_s: float
    ) -> None:
        """A transfer has found how many streams are best on a path: the next prediction knows.

        What cannot be, or tells of something else than the path, is passed over: everybody's predictions
        follow. Raises NotThere, NotYours.
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
                raise NotThere(f"no host has the address {address}, as far as has been seen")
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
    """Return whose TCP port a stream has, and to whom: nobody else may steer these connections."""
    ends = known.ends
    host, other = (ends.source, ends.sink) if key.side == "source" else (ends.sink, ends.source)
    return host, other, key.port
