"""One path set: its paths, the streams on them, and the end of its lease."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mpx_controller.graph import Graph, Path, delay_s
from mpx_controller.path_sets.shares import shares_bps
from mpx_controller.steering import Ends, Side


class StreamKey(NamedTuple):
    """What a stream is known by: the TCP port of one of its ends, and which."""

    port: int
    side: Side


@dataclass(frozen=True)
class SetPath:
    """One path of a set, with what it is expected to carry beside the others."""

    path: Path
    rate_bps: float
    rtt_s: float
    streams: int  # predicted
    group: int  # of paths that share a bottleneck


@dataclass(frozen=True)
class PathSet:
    """See the head of this file.

    `placed`: on which path each stream was put, by its place in `paths`. `hardware`: that of source and sink,
    where known: these are followed, and not another host that later claims the IP address of one.
    """

    number: int
    owner: str
    ends: Ends
    paths: tuple[SetPath, ...]
    max_flow_bps: float
    expires_s: float
    placed: Mapping[StreamKey, int] = field(default_factory=dict)
    hardware: tuple[str, str] | None = None

    @property
    def streams(self) -> int:
        """The sum of the predicted streams: `tcp_num` of huang."""
        return sum(path.streams for path in self.paths)

    def next_path(self, alive: frozenset[int] | None = None) -> int:
        """Return the place of the path that the next stream belongs on: in the ratio of the predictions.

        That which is furthest behind its share; `alive`: only these are asked.
        """
        return least_filled(self.paths, Counter(self.placed.values()), alive)

    def with_stream(self, key: StreamKey, place: int) -> "PathSet":
        """Return it with a stream on one of its paths."""
        return replace(self, placed={**self.placed, key: place})

    def without_stream(self, key: StreamKey) -> "PathSet":
        """Return it without a stream."""
        return replace(self, placed={known: place for known, place in self.placed.items() if known != key})


def least_filled(
    paths: tuple[SetPath, ...], filled: Mapping[int, int], alive: frozenset[int] | None = None
) -> int:
    """Return the place of the path that is furthest behind its share of streams, the first of equals."""
    places = [place for place in range(len(paths)) if alive is None or place in alive]
    weight = sum(paths[place].streams for place in places)
    count = sum(filled.get(place, 0) for place in places) + 1
    return max(
        places, key=lambda place: (paths[place].streams / weight * count - filled.get(place, 0), -place)
    )


def alive(graph: Graph, path: Path) -> bool:
    """Whether all links of a path are there, in both directions."""
    there = all(
        (link := graph.by_start.get(known.start)) is not None and link.end == known.end for known in path
    )
    return there and graph.reverse(path) is not None


def described(
    chosen: list[Path], groups: list[int], back_s: list[float], streams: list[int]
) -> tuple[SetPath, ...]:
    """Return paths with what is expected of them."""
    rates = shares_bps(chosen)
    return tuple(
        SetPath(path, rate, delay_s(path) + back, count, group)
        for path, rate, back, count, group in zip(chosen, rates, back_s, streams, groups, strict=True)
    )
