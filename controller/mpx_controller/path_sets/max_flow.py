"""What a network can carry between two switches at most, and over which paths."""

from collections import deque

from mpx_controller.graph import Graph, Link, Path

Flow = dict[Link, float]  # bit/s on each link that carries something


def max_flow(graph: Graph, start: int, destination: int) -> Flow:
    """Return a flow of the largest rate there is (Edmonds and Karp), with nothing both ways on one link."""
    room = {link: link.rate_bps for link in graph.links}
    flow: Flow = {}
    while (steps := _with_room(graph, room, flow, start, destination)) is not None:
        rate = min(room[link] if onwards else flow[link] for link, onwards in steps)
        for link, onwards in steps:
            change = rate if onwards else -rate
            room[link] -= change
            flow[link] = flow.get(link, 0.0) + change
    return {link: rate for link in flow if (rate := flow[link] - _against(graph, flow, link)) > 0}


def flow_bps(flow: Flow, start: int) -> float:
    """Return what leaves `start` and does not come back."""
    out = sum(rate for link, rate in flow.items() if link.start.switch == start)
    return out - sum(rate for link, rate in flow.items() if link.end.switch == start)


def paths_of(graph: Graph, flow: Flow, start: int, destination: int) -> list[Path]:
    """Return paths that together carry the flow, the one that carries most first."""
    left = dict(flow)
    found: list[tuple[float, Path]] = []
    while (path := widest(graph, left, start, destination)) is not None:
        rate = min(left[link] for link in path)
        for link in path:
            left[link] -= rate
        found.append((rate, path))
    return [path for _, path in sorted(found, key=lambda each: -each[0])]


def widest(graph: Graph, room: Flow, start: int, destination: int) -> Path | None:
    """Return the path with the most room; of those as wide the one with the least delay, then fewest hops.

    None where no path has any room. One search for the width, one for the least delay among what is so wide.
    """
    wide: dict[int, float] = {start: float("inf")}
    done: set[int] = set()
    while fringe := [switch for switch in wide if switch not in done]:
        at = max(fringe, key=lambda switch: (wide[switch], -switch))
        done.add(at)
        for link in graph.leaving.get(at, ()):
            through = min(wide[at], room.get(link, 0.0))
            if through > 0 and through > wide.get(link.end.switch, 0.0):
                wide[link.end.switch] = through
    if destination not in wide:
        return None
    return _quickest(graph, room, wide[destination], start, destination)


def _quickest(graph: Graph, room: Flow, width: float, start: int, destination: int) -> Path:
    """Return the path of the least delay, then fewest hops, among those with so much room."""
    cost: dict[int, tuple[float, int]] = {start: (0.0, 0)}
    came: dict[int, Link] = {}
    done: set[int] = set()
    while destination not in done:
        at = min((switch for switch in cost if switch not in done), key=lambda switch: (cost[switch], switch))
        done.add(at)
        for link in graph.leaving.get(at, ()):
            there = (cost[at][0] + link.delay_s, cost[at][1] + 1)
            if room.get(link, 0.0) >= width and there < cost.get(link.end.switch, (float("inf"), 0)):
                cost[link.end.switch], came[link.end.switch] = there, link
    path: list[Link] = []
    while destination != start:
        path.append(came[destination])
        destination = came[destination].start.switch
    return tuple(reversed(path))


def _against(graph: Graph, flow: Flow, link: Link) -> float:
    """Return what flows in the other direction of a link."""
    back = graph.by_start.get(link.end)
    return flow.get(back, 0.0) if back is not None and back.end == link.start else 0.0


def _with_room(
    graph: Graph, room: Flow, flow: Flow, start: int, destination: int
) -> list[tuple[Link, bool]] | None:
    """Return the shortest way on which more would go: links, and whether onwards (or taken back)."""
    came: dict[int, tuple[Link, bool]] = {}
    waiting = deque([start])
    while waiting and destination not in came:
        at = waiting.popleft()
        steps = [(link, True, link.end.switch) for link in graph.leaving.get(at, ()) if room[link] > 0]
        steps += [
            (link, False, link.start.switch) for link in graph.arriving.get(at, ()) if flow.get(link, 0.0) > 0
        ]
        for link, onwards, there in steps:
            if there != start and there not in came:
                came[there] = link, onwards
                waiting.append(there)
    if destination not in came:
        return None
    found: list[tuple[Link, bool]] = []
    while destination != start:
        link, onwards = came[destination]
        found.append((link, onwards))
        destination = link.start.switch if onwards else link.end.switch
    return found[::-1]
