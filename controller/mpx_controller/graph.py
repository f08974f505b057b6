"""The network as a value: switches, and directed links with their rates and delays."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Port(NamedTuple):
    """A port of a switch: the datapath id, and the number it has there."""

    switch: int
    number: int

    def __str__(self) -> str:
        return f"{self.switch:x}:{self.number}"


@dataclass(frozen=True)
class Link:
    """One direction of a link, from the port where frames leave to that where they arrive."""

    start: Port
    end: Port
    rate_bps: float = 1e9
    delay_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"


Route = tuple[tuple[Port, Port], ...]
Path = tuple[Link, ...]  # from the switch of one host to that of another; empty: both are at the same switch


@dataclass(frozen=True)
class Graph:
    """Switches and links; a link whose ends are not both among the switches is left out."""

    switches: frozenset[int]
    links: tuple[Link, ...]

    @classmethod
    def of(cls, switches: Iterable[int], links: Iterable[Link]) -> "Graph":
        """Return the graph, in an order that does not depend on how it was learnt."""
        known = frozenset(switches)
        ends = (link for link in links if link.start.switch in known and link.end.switch in known)
        return cls(known, tuple(sorted(ends, key=lambda link: (link.start, link.end))))

    @cached_property
    def leaving(self) -> dict[int, tuple[Link, ...]]:
        """For each switch its links to others, the neighbour with the least id first, then the least port."""
        found: dict[int, list[Link]] = {switch: [] for switch in self.switches}
        for link in self.links:
            if link.start.switch != link.end.switch:
                found[link.start.switch].append(link)
        return {
            switch: tuple(sorted(links, key=lambda link: (link.end.switch, link.start.number)))
            for switch, links in found.items()
        }

    @cached_property
    def arriving(self) -> dict[int, tuple[Link, ...]]:
        """For each switch the links from others."""
        found: dict[int, list[Link]] = {switch: [] for switch in self.switches}
        for links in self.leaving.values():
            for link in links:
                found[link.end.switch].append(link)
        return {switch: tuple(links) for switch, links in found.items()}

    @cached_property
    def steps(self) -> dict[int, list[tuple[int, int]]]:
        """For each switch the places in `links` of those that leave it, and where each leads."""
        places = {link: place for place, link in enumerate(self.links)}
        return {at: [(places[link], link.end.switch) for link in links] for at, links in self.leaving.items()}

    @cached_property
    def steps_back(self) -> dict[int, list[tuple[int, int]]]:
        """For each switch the places in `links` of those that arrive there, and their origins."""
        places = {link: place for place, link in enumerate(self.links)}
        return {
            at: [(places[link], link.start.switch) for link in links] for at, links in self.arriving.items()
        }

    @cached_property
    def backs(self) -> list[int | None]:
        """For each of `links` the place of its other direction; None where that is not seen."""
        places = {(link.start, link.end): place for place, link in enumerate(self.links)}
        return [places.get((link.end, link.start)) for link in self.links]

    @cached_property
    def by_start(self) -> dict[Port, Link]:
        """The link that begins at each port."""
        return {link.start: link for link in self.links}

    def reverse(self, path: Path) -> Path | None:
        """Return the same path back; None where one of its links is not seen in the other direction."""
        back = [self.by_start.get(link.end) for link in reversed(path)]
        if any(
            link is None or link.end != there.start for link, there in zip(back, reversed(path), strict=True)
        ):
            return None
        return tuple(link for link in back if link)

    def without(self, links: Iterable[Link]) -> "Graph":
        """Return the graph without these links."""
        gone = set(links)
        return Graph(self.switches, tuple(link for link in self.links if link not in gone))


def route(path: Path) -> Route:
    """Return the ports of a path alone, which do not change with rates or delays."""
    return tuple((link.start, link.end) for link in path)


def switches_of(path: Path, start: int) -> tuple[int, ...]:
    """Return the datapath ids on a path that begins at `start`."""
    return (start, *(link.end.switch for link in path))


def delay_s(path: Path) -> float:
    """Return how long a frame takes where nothing is queued, in one direction."""
    return sum(link.delay_s for link in path)


def narrowest_bps(path: Path) -> float:
    """Return the rate of the narrowest link; infinite for no link at all."""
    return min((link.rate_bps for link in path), default=float("inf"))
