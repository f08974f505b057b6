"""Which paths lead from one switch to another, chosen once for each network."""

from dataclasses import dataclass

from mpx_controller.graph import Graph, Path
from mpx_controller.path_sets.max_flow import flow_bps, max_flow
from mpx_controller.path_sets.selection import Select

MOST = 1000  # that are remembered


@dataclass(frozen=True)
class Choice:
    """Paths that are there in both directions, and the most that the network carries."""

    paths: tuple[Path, ...]
    max_flow_bps: float


class Choices:
    """Remembers them while the network is the same, as in a large one each takes some milliseconds."""

    def __init__(self, select: Select) -> None:
        self._select = select
        self._graph: Graph | None = None
        self._known: dict[tuple[int, int, int], Choice] = {}

    def of(self, graph: Graph, start: int, destination: int, count: int) -> Choice:
        """Return at most `count` paths (0: as many as help)."""
        if graph is not self._graph or len(self._known) >= MOST:
            self._graph, self._known = graph, {}
        asked = (start, destination, count)
        if asked not in self._known:
            paths = self._select(graph, start, destination, count)
            most = (
                flow_bps(graph, max_flow(graph, start, destination), start) if start != destination else 0.0
            )
            self._known[asked] = Choice(
                tuple(path for path in paths if graph.reverse(path) is not None), most
            )
        return self._known[asked]
