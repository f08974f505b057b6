"""The path sets that a change of the network affects: those with a path over what has changed."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from mpx_controller.graph import switches_of
from mpx_controller.network.network import Network
from mpx_controller.path_sets.path_set import PathSet


class _Connection(NamedTuple):
    """The connection of a switch, by its beginning: a switch that has reconnected has changed."""

    switch: int
    at_s: float


class AffectedSets:
    """Path sets by the switches and links of their paths, and those that there were at the last `take`."""

    def __init__(self) -> None:
        self._by: defaultdict[Hashable, set[int]] = defaultdict(set)
        self._seen: frozenset[Hashable] = frozenset()

    def add(self, known: PathSet) -> None:
        """Add a set."""
        for each in _used(known):
            self._by[each].add(known.number)

    def remove(self, known: PathSet) -> None:
        """Remove a set."""
        for each in _used(known):
            self._by[each].discard(known.number)
            if not self._by[each]:
                del self._by[each]

    def take(self, network: Network) -> tuple[set[int], set[int]]:
        """Return the sets with paths over what was lost since the last call, and those over what was found.

        That is links, and connections of switches.
        """
        before, self._seen = self._seen, _there(network)
        return self._users(before - self._seen), self._users(self._seen - before)

    def _users(self, changed: Iterable[Hashable]) -> set[int]:
        of = (each.switch if isinstance(each, _Connection) else each for each in changed)
        return set().union(*(self._by[each] for each in of if each in self._by))


def _there(network: Network) -> frozenset[Hashable]:
    links = ((link.start, link.end) for link in network.graph.links)
    switches = (_Connection(each, network.connected_at_s(each)) for each in network.connected)
    return frozenset((*links, *switches))


def _used(known: PathSet) -> set[Hashable]:
    """Return switches, and links in both directions."""
    used: set[Hashable] = set()
    for each in known.paths:
        used.update(switches_of(each.path, known.ends.source_port.switch))
        for link in each.path:
            used.update(((link.start, link.end), (link.end, link.start)))
    return used
