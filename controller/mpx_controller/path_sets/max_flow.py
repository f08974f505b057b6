"""The maximum flow between two switches, and its paths.

Room and flow are lists of bit/s, one number for each of `graph.links`, as in a mesh of 64 switches the links
themselves would be slow to look up.
"""

import heapq
from collections import deque
from collections.abc import Iterator

from mpx_controller.graph import Graph, Path

FULL = 1e-9  # of a link's rate: what sums of floats leave of a link that has no room any more


def rates_of(graph: Graph) -> list[float]:
    """Return what each link carries: the room of an empty network."""
    return [link.rate_bps for link in graph.links]


def max_flow(graph: Graph, start: int, destination: int) -> list[float]:
    """Return a flow of the largest rate there is (Dinic), in one direction only of each link."""
    room, flow = rates_of(graph), [0.0] * len(graph.links)
    while (away := _away(graph, room, flow, start, destination)) is not None:
        _fill_shortest(graph, room, flow, away, start, destination)
    against = (flow[back] if back is not None else 0.0 for back in graph.backs)
    return [max(0.0, there - back) for there, back in zip(flow, against, strict=True)]


def flow_bps(graph: Graph, flow: list[float], start: int) -> float:
    """Return what leaves `start` and does not come back."""
    rates = list(zip(graph.links, flow, strict=True))
    out = sum(rate for link, rate in rates if link.start.switch == start)
    return out - sum(rate for link, rate in rates if link.end.switch == start)


def paths_of(graph: Graph, flow: list[float], start: int, destination: int, most: int) -> list[Path]:
    """Return at most so many paths that together carry the flow, or most of it, the widest first."""
    left = list(flow)
    found: list[Path] = []
    while len(found) < most and (path := widest(graph, left, start, destination)) is not None:
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


def _away(
    graph: Graph, room: list[float], flow: list[float], start: int, destination: int
) -> dict[int, int] | None:
    """Return how many steps with room, or back along what flows, each switch is away; None: no more goes."""
    away = {start: 0}
    waiting = deque([start])
    while waiting:
        at = waiting.popleft()
        if at == destination:
            return away
        further = away[at] + 1
        for steps, has in ((graph.steps[at], room), (graph.steps_back[at], flow)):
            for link, there in steps:
                if there not in away and has[link] > 0:
                    away[there] = further
                    waiting.append(there)
    return None


def _fill_shortest(
    graph: Graph, room: list[float], flow: list[float], away: dict[int, int], start: int, destination: int
) -> None:
    """Add flow along paths that lead one level further with each link, until none of them has room."""
    closer: dict[
        int, list[tuple[int, int, bool]]
    ] = {}  # steps onwards from a switch, those that still lead on
    path: list[tuple[int, int, bool]] = []  # links, where each leads, and whether onwards (or taken back)
    at = start
    while True:
        if at == destination:
            rate = min(room[link] if onwards else flow[link] for link, _, onwards in path)
            for link, _, onwards in path:
                take(graph, room, link, rate if onwards else -rate)
                carried, least = graph.links[link].rate_bps - room[link], FULL * graph.links[link].rate_bps
                flow[link] = carried if carried > least else 0.0
            full = next(
                i for i, (link, _, onwards) in enumerate(path) if (room if onwards else flow)[link] <= 0
            )
            del path[full:]
        else:
            if at not in closer:
                closer[at] = list(_steps(graph, at, away))
            steps = closer[at]
            while steps and (room if steps[-1][2] else flow)[steps[-1][0]] <= 0:
                steps.pop()
            if steps:
                path.append(steps[-1])
            elif path:
                path.pop()
                closer[path[-1][1] if path else start].pop()  # it leads nowhere
            else:
                return
        at = path[-1][1] if path else start


def _steps(graph: Graph, at: int, away: dict[int, int]) -> Iterator[tuple[int, int, bool]]:
    """Yield each step to a switch that is one further away: the link, that switch, and whether onwards."""
    further = away[at] + 1
    yield from ((link, there, False) for link, there in graph.steps_back[at] if away.get(there) == further)
    yield from ((link, there, True) for link, there in graph.steps[at] if away.get(there) == further)
