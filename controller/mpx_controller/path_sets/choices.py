"""The chosen paths between switches, cached for each graph."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mpx_controller.graph import Graph, Path
from mpx_controller.path_sets.max_flow import flow_bps, max_flow
from mpx_controller.path_sets.path_set import alive
from mpx_controller.path_sets.selection import ADDS, Select
from mpx_controller.path_sets.shares import shares_bps

MOST = 1000  # that are remembered
GRAPHS = 2  # that are remembered at once: with the switches that are away for a moment, and without
AWAY = 0.5  # of what a path over such a switch carries counts: that may be back soon, or never


@dataclass(frozen=True)
class Choice:
    """Paths that are there in both directions, and the most that the network carries."""

    paths: tuple[Path, ...]
    max_flow_bps: float


class Choices:
    """Caches choices while the network is the same, as in a large one each takes some milliseconds."""

    def __init__(self, select: Select) -> None:
        self._select = select
        self._known: list[tuple[Graph, dict[tuple[int, int, int], Choice]]] = []  # the last one last

    def of(self, graph: Graph, start: int, destination: int, count: int) -> Choice:
        """Return at most `count` paths (0: as many as help)."""
        known = self._of_graph(graph)
        asked = (start, destination, count)
        if asked not in known:
            paths = self._select(graph, start, destination, count)
            most = (
                flow_bps(graph, max_flow(graph, start, destination), start) if start != destination else 0.0
            )
            known[asked] = Choice(tuple(path for path in paths if graph.reverse(path) is not None), most)
        return known[asked]

    def beside_absent(self, graph: Graph, ready: Graph, start: int, destination: int, count: int) -> Choice:
        """Return paths where some switches are away for a moment; `ready` is the graph without these.

        Those that carry most, where what such a switch may carry counts `AWAY`: paths that can be used at
        once, and those of the others that add to them, or else the paths as if nothing were away. Streams of
        paths that are not ready take others until they are.
        """
        whole = self.of(graph, start, destination, count)
        now = self.of(ready, start, destination, count)
        most = count if count > 0 else len(now.paths) + len(whole.paths)
        filled = _filled_up(now.paths, whole.paths, most)
        best = max(filled, whole.paths, key=lambda paths: _expected_bps(paths, ready))
        return replace(whole if any(path not in now.paths for path in best) else now, paths=best)

    def _of_graph(self, graph: Graph) -> dict[tuple[int, int, int], Choice]:
        for of, known in self._known:
            if of is graph and len(known) < MOST:
                return known
        self._known = [each for each in self._known if each[0] is not graph][1 - GRAPHS :]
        self._known.append((graph, {}))
        return self._known[-1][1]


def _filled_up(paths: tuple[Path, ...], others: Iterable[Path], most: int) -> tuple[Path, ...]:
    """Return paths, and of the others at most so many in all that add to what these carry."""
    for path in others:
        if len(paths) < most and path not in paths:
            more = (*paths, path)
            if not paths or sum(shares_bps(more)) > (1 + ADDS) * sum(shares_bps(paths)):
                paths = more
    return paths


def _expected_bps(paths: Iterable[Path], ready: Graph) -> float:
    """Return what paths carry together, less where one is not ready."""
    paths = list(paths)
    return sum(
        share * (1 if alive(ready, path) else AWAY)
        for path, share in zip(paths, shares_bps(paths), strict=True)
    )
