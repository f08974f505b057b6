"""The choice of the paths of a path set: three selectors with one interface.

`breadth_first` is that of huang (algorithm 1), `least_shared` that of nakasan (smoc, algorithm 1), and
`widest_apart` ours, which knows what links carry: it takes what adds most, and nothing that adds little.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping

from mpx_controller.graph import Graph, Link, Path, delay_s, narrowest_bps
from mpx_controller.path_sets.max_flow import max_flow, paths_of, rates_of, take, widest
from mpx_controller.path_sets.shares import shares_bps

LONGER = 4  # links more than the shortest path that smoc's may have, and ...
MOST_PATHS = 512  # ... how many of them are looked at: a mesh has more than can be listed
ADDS = 0.05  # of what the others carry: a path that adds less is not worth its streams

Select = Callable[[Graph, int, int, int], list[Path]]


def breadth_first(graph: Graph, start: int, destination: int, count: int = 0) -> list[Path]:
    """Return at most `count` paths (0: all found), one for each last link, in the order of their hops.

    Huang, algorithm 1: breadth first from the start with visited marks; whenever the switch at hand has the
    destination as its neighbour, its path in the tree and that link are one result. As printed it could
    expand the destination, which would find paths that go through it; here it does not.
    """
    if start == destination:
        return [()]
    tree: dict[int, Path] = {start: ()}
    found: list[Path] = []
    waiting = deque([start])
    while waiting:
        at = waiting.popleft()
        for link in graph.leaving.get(at, ()):
            if link.end.switch == destination:
                found.append((*tree[at], link))
            elif link.end.switch not in tree:
                tree[link.end.switch] = (*tree[at], link)
                waiting.append(link.end.switch)
    found.sort(key=len)
    return found[:count] if count > 0 else found


def least_shared(graph: Graph, start: int, destination: int, count: int = 0) -> list[Path]:
    """Return the shortest path, then those that share the fewest links with it, the shorter ones first.

    Nakasan, algorithm 1 (smoc, section 4). What the alternatives share among each other is not considered.
    All simple paths would be too many in a mesh, so paths of `LONGER` links more than the shortest are left
    out, and the longest beyond `MOST_PATHS`.
    """
    if start == destination:
        return [()]
    paths = list(_simple_paths(graph, start, destination))
    if not paths:
        return []
    primary = set(paths[0])
    rest = sorted(paths[1:], key=lambda path: (len(primary.intersection(path)), len(path)))
    chosen = [paths[0], *rest]
    return chosen[:count] if count > 0 else chosen


def widest_apart(graph: Graph, start: int, destination: int, count: int = 0) -> list[Path]:
    """Return at most `count` paths (0: as many as help) that together carry most, the widest first.

    One after the other that with the most room beside those before it, of equal ones that with the least
    delay. Where the paths of a maximum flow carry more, or as much with less delay, it is those: the widest
    can lie across two others. A path that adds less than `ADDS` of what is there already is left out: a
    stream on it would take what it carries from the others.
    """
    if start == destination:
        return [()]
    most = count if count > 0 else len(graph.links)
    greedy = list(_beside_each_other(graph, start, destination, most))
    flowing = paths_of(graph, max_flow(graph, start, destination), start, destination, most)
    chosen = max(greedy, flowing, key=_worth)
    return _that_help(sorted(chosen, key=lambda path: (-narrowest_bps(path), delay_s(path))))


SELECTORS: Mapping[str, Select] = {
    "widest-apart": widest_apart,
    "breadth-first": breadth_first,
    "least-shared": least_shared,
}


def _beside_each_other(graph: Graph, start: int, destination: int, most: int) -> Iterator[Path]:
    room = rates_of(graph)
    for _ in range(most):
        path = widest(graph, room, start, destination)
        if path is None:
            return
        rate = min(room[link] for link in path)
        for link in path:
            take(graph, room, link, rate)
        yield tuple(graph.links[link] for link in path)


def _worth(paths: list[Path]) -> tuple[float, float, int]:
    """Return what paths carry together (to a thousandth), and how short they are."""
    carried = sum(shares_bps(paths))
    return float(f"{carried:.3g}"), -sum(map(delay_s, paths)), -sum(map(len, paths))


def _that_help(paths: list[Path]) -> list[Path]:
    """Return the paths without those, tried from the last, that add less than the share `ADDS` to the others.

    Looking which add to those before them would lose paths that bring nothing but together: where the widest
    lies across two others each takes from it what it brings.
    """
    chosen = list(paths)
    total = sum(shares_bps(chosen))
    for path in reversed(paths):
        others = [each for each in chosen if each is not path]
        without = sum(shares_bps(others))
        if others and total <= (1 + ADDS) * without:
            chosen, total = others, without
    return chosen


def _simple_paths(graph: Graph, start: int, destination: int) -> Iterator[Path]:
    """Yield paths that visit no switch twice, the shortest first and bounded, equally long ones by ids."""
    away = _hops_to(graph, destination)
    if start not in away:
        return
    found = 0
    for length in range(away[start], away[start] + LONGER + 1):
        for path in _of_length(graph, away, start, destination, length):
            yield path
            found += 1
            if found == MOST_PATHS:
                return


def _of_length(
    graph: Graph, away: Mapping[int, int], start: int, destination: int, length: int
) -> Iterator[Path]:
    """Yield the simple paths of exactly so many links."""
    stack: list[tuple[tuple[Link, ...], frozenset[int], int]] = [((), frozenset({start}), start)]
    while stack:
        path, seen, at = stack.pop()
        for link in reversed(graph.leaving[at]):
            there, left = link.end.switch, length - len(path) - 1
            if there == destination:
                if left == 0:
                    yield (*path, link)
            elif there not in seen and away.get(there, length + 1) <= left:
                stack.append(((*path, link), seen | {there}, there))


def _hops_to(graph: Graph, destination: int) -> dict[int, int]:
    found = {destination: 0}
    waiting = deque([destination])
    while waiting:
        at = waiting.popleft()
        for link in graph.arriving.get(at, ()):
            if link.start.switch not in found:
                found[link.start.switch] = found[at] + 1
                waiting.append(link.start.switch)
    return found
