"""Shortest paths, for unassigned traffic: fewest hops, then least delay, then the least ids."""

import heapq
from collections import deque

from mpx_controller.graph import Graph, Link, Path


def next_links(graph: Graph, destination: int) -> dict[int, Link]:
    """Return for each switch that reaches `destination` the first link of its shortest path there.

    Following them never circles: each next switch is fewer hops away, or as many with less delay.
    """
    found: dict[int, Link] = {}
    known: dict[int, tuple[int, float]] = {destination: (0, 0.0)}
    done: set[int] = set()
    waiting = [(0, 0.0, destination)]
    while waiting:
        hops, delay, switch = heapq.heappop(waiting)
        if switch in done:
            continue
        done.add(switch)
        for link in graph.arriving.get(switch, ()):
            there, cost = link.start.switch, (hops + 1, delay + link.delay_s)
            better = there not in known or cost < known[there]
            as_good = there in known and cost == known[there] and there not in done
            if better or (
                as_good and (link.end.switch, link.start) < (found[there].end.switch, found[there].start)
            ):
                known[there], found[there] = cost, link
                heapq.heappush(waiting, (*cost, there))
    return found


def shortest_path(graph: Graph, start: int, destination: int) -> Path | None:
    """Return the path with the fewest hops, then the least delay; None where there is none."""
    towards = next_links(graph, destination)
    path: list[Link] = []
    while start != destination:
        if start not in towards:
            return None
        path.append(towards[start])
        start = towards[start].end.switch
    return tuple(path)


def tree_links(graph: Graph) -> frozenset[Link]:
    """Return links, each with its other direction, that join all switches without a loop.

    Breadth first from the least id of each part. Only links that are seen in both directions count: frames
    that are flooded must not take a path on which replies are lost.
    """
    chosen: set[Link] = set()
    seen: set[int] = set()
    for root in sorted(graph.switches):
        if root in seen:
            continue
        seen.add(root)
        waiting = deque([root])
        while waiting:
            for link in graph.leaving[waiting.popleft()]:
                back = graph.by_start.get(link.end)
                if link.end.switch not in seen and back is not None and back.end == link.start:
                    seen.add(link.end.switch)
                    waiting.append(link.end.switch)
                    chosen.update((link, back))
    return frozenset(chosen)
