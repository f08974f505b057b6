"""What a network can carry between two switches at most, and over which paths.

Room and flow are lists of bit/s, one number for each of `graph.links`, as in a mesh of 64 switches the links
themselves would be slow to look up.
"""

import heapq
from collections import deque

from mpx_controller.graph import Graph, Path

FULL = 1e-9  # of a link's rate: what sums of floats leave of a link that has no room any more


def rates_of(graph: Graph) -> list[float]:
    """Return what each link carries: the room of an empty network."""
    return [link.rate_bps for link in graph.links]


def max_flow(graph: Graph, start: int, destination: int) -> list[float]:
    """Return a flow of the largest rate there is (Edmonds and Karp), with nothing both ways on one link."""
    room, flow = rates_of(graph), [0.0] * len(graph.links)
    while (steps := _with_room(graph, room, flow, start, destination)) is not None:
        rate = min(room[link] if onwards else flow[link] for link, onwards in steps)
        for link, onwards in steps:
            take(graph, room, link, rate if onwards else -rate)
            flow[link] = graph.links[link].rate_bps - room[link]
    against = (flow[back] if back is not None else 0.0 for back in graph.backs)
    return [max(0.0, there - back) for there, back in zip(flow, against, strict=True)]


def flow_bps(graph: Graph, flow: list[float], start: int) -> float:
    """Return what leaves `start` and does not come back."""
    rates = list(zip(graph.links, flow, strict=True))
    out = sum(rate for link, rate in rates if link.start.switch == start)
    return out - sum(rate for link, rate in rates if link.end.switch == start)


def paths_of(graph: Graph, flow: list[float], start: int, destination: int) -> list[Path]:
    """Return paths that together carry the flow, the widest first."""
    left = list(flow)
    found: list[Path] = []
    while (path := widest(graph, left, start, destination)) is not None:
        rate = min(left[link] for link in path)
        for link in path:
            take(graph, left, link, rate)
        found.append(tuple(graph.links[link] for link in path))
    return found


def take(graph: Graph, room: list[float], link: int, rate_bps: float) -> None:
    """Take that from the room of a link; what is left of rounding counts as nothing."""
    left = room[link] - rate_bps
    room[link] = left if left > FULL * graph.links[link].rate_bps else 0.0


def widest(graph: Graph, room: list[float], start: int, destination: int) -> list[int] | None:
    """Return the links of the path with the most room; of those as wide that of the least delay, then hops.

    None where no path has any room. One search for the width, one for the least delay among what is so wide.
    """
    wide: dict[int, float] = {start: float("inf")}
    waiting = [(-float("inf"), start)]
    while waiting:
        width, at = heapq.heappop(waiting)
        if at == destination:
            return _quickest(graph, room, -width, start, destination)
        if -width < wide[at]:
            continue
        for link, there in graph.steps[at]:
            through = min(-width, room[link])
            if through > 0 and through > wide.get(there, 0.0):
                wide[there] = through
                heapq.heappush(waiting, (-through, there))
    return None


def _quickest(graph: Graph, room: list[float], width: float, start: int, destination: int) -> list[int]:
    """Return the links of the path of the least delay, then fewest hops, among those with so much room."""
    cost: dict[int, tuple[float, int]] = {start: (0.0, 0)}
    came: dict[int, int] = {}
    waiting = [(0.0, 0, start)]
    while waiting:
        delay, hops, at = heapq.heappop(waiting)
        if at == destination:
            break
        if (delay, hops) > cost[at]:
            continue
        for link, there in graph.steps[at]:
            further = (delay + graph.links[link].delay_s, hops + 1)
            if room[link] >= width and (there not in cost or further < cost[there]):
                cost[there], came[there] = further, link
                heapq.heappush(waiting, (*further, there))
    path: list[int] = []
    while destination != start:
        path.append(came[destination])
        destination = graph.links[came[destination]].start.switch
    return path[::-1]


def _with_room(
    graph: Graph, room: list[float], flow: list[float], start: int, destination: int
) -> list[tuple[int, bool]] | None:
    """Return the shortest way on which more would go: links, and whether onwards (or taken back)."""
    came: dict[int, tuple[int, bool]] = {start: (-1, True)}
    waiting = deque([start])
    while waiting and destination not in came:
        at = waiting.popleft()
        for onwards, steps, has in ((True, graph.steps, room), (False, graph.steps_back, flow)):
            for link, there in steps[at]:
                if has[link] > 0 and there not in came:
                    came[there] = link, onwards
                    waiting.append(there)
    if destination not in came:
        return None
    found: list[tuple[int, bool]] = []
    while destination != start:
        link, onwards = came[destination]
        found.append((link, onwards))
        ends = graph.links[link]
        destination = ends.start.switch if onwards else ends.end.switch
    return found[::-1]
