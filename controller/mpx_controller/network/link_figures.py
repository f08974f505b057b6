"""Rates and delays of links: as configured, or else as measured with discovery frames. Pure."""

from collections.abc import Iterable, Mapping

from mpx_controller.graph import Graph, Port
from mpx_controller.network.discovery import Discovery
from mpx_controller.network.forwarding import graph_of

DELAYS_EVERY_S = 1.0  # how often they are compared with the graph: the first after a start are too long
LEAST_CHANGE_S, CHANGE = 0.001, 0.2  # of a delay, in seconds and as a share: less does not change paths
DEFAULT_BPS = 1e9  # of a link whose rate is not known

Rates = Mapping[tuple[Port, Port], float]


class LinkFigures:
    """Rates (bit/s) and delays (seconds) of links, and how soon switches answer."""

    def __init__(self, discovery: Discovery, now_s: float) -> None:
        self._discovery = discovery
        self._rates_bps: Rates = {}
        self._configured_delays_s: Rates = {}
        self._answers_s: dict[int, float] = {}  # the least time in which each switch has answered
        self._compared_s = now_s

    def configure(self, rates_bps: Rates, delays_s: Rates) -> None:
        """Take the rates and delays that the operator gives."""
        self._rates_bps, self._configured_delays_s = rates_bps, delays_s

    def switch_answers(self, switch: int, within_s: float) -> None:
        """Note the response time of a switch to an echo request."""
        self._answers_s[switch] = min(within_s, self._answers_s.get(switch, within_s))

    def answers_s(self, switch: int) -> float | None:
        """Return the least time in which a switch has answered; None where it has not."""
        return self._answers_s.get(switch)

    def forget(self, switch: int) -> None:
        """Forget how soon a switch answers."""
        self._answers_s.pop(switch, None)

    def graph(self, switches: Iterable[int]) -> Graph:
        """Return the graph of these switches and the links between them."""
        delays_s = self._delays_s()
        return graph_of(set(switches), self._discovery.links, self._rates_bps, delays_s, DEFAULT_BPS)

    def have_changed(self, graph: Graph, now_s: float) -> bool:
        """Whether delays are far from those of the graph; compared once in DELAYS_EVERY_S."""
        if now_s < self._compared_s + DELAYS_EVERY_S:
            return False
        self._compared_s = now_s
        known = self._delays_s()
        delays = ((link.delay_s, known.get((link.start, link.end), 0.0)) for link in graph.links)
        return any(abs(now - before) > max(LEAST_CHANGE_S, CHANGE * before) for before, now in delays)

    def _delays_s(self) -> Rates:
        return {**self._discovery.delays_s(self._answers_s), **self._configured_delays_s}
