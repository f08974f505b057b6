"""The connections at one end of a relay that is a web server, which admits as many as are asked for."""

import threading
from collections.abc import Mapping

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.lanes import LaneSet
from mpx.endpoints.web.pipelining import Pipelining
from mpx.engine.carrier import CarrierContext
from mpx.engine.path_set import DEFAULT_PATH, Side
from mpx.engine.session_turns import MaybeSingle
from mpx.engine.stream import StreamTotals, summed

MOST_FILES = 48  # small ones that are under way together
AT_ONCE = 32  # of these, requests that are sent before the first is answered


class WebRelayEnd:
    """See RelayEnd: what sources and sinks have in common."""

    def __init__(
        self, access: WebAccess, context: CarrierContext, pipelining: Pipelining, side: Side
    ) -> None:
        """`side`: of this host. All ends of a copy at one server share `pipelining`."""
        self._access, self._context, self._pipelining = access, context, pipelining
        self._guard = threading.Lock()  # held while lanes change, and of the next
        self._past: Mapping[str, StreamTotals] = {}  # of lanes that were closed
        self._lanes = LaneSet(access, context, DEFAULT_PATH, side, self._guard, self._retire)

    @property
    def host(self) -> str:
        """See RelayEnd."""
        return self._access.origin.host

    @property
    def pool(self) -> MaybeSingle | None:
        """See RelayEnd. There is none: connections are cheap to a web server."""
        return None

    @property
    def is_wanted(self) -> bool:
        """See RelayEnd."""
        return False

    def open(self, *, waits: bool) -> None:  # noqa: ARG002  there are no turns
        """See RelayEnd."""
        self._lanes.to(self._access.origin)

    def give_back(self) -> None:
        """See RelayEnd. Nobody waits for it."""

    def close(self) -> None:
        """See RelayEnd."""
        self._lanes.drop_all()

    def cut(self) -> None:
        """See RelayEnd."""
        self._lanes.cut()

    def totals(self) -> StreamTotals:
        """See RelaySink."""
        with self._guard:
            sums = summed(self._past, self._lanes.totals(is_busy=True))
        return sums.get(DEFAULT_PATH, StreamTotals())

    def _retire(self, ended: Mapping[str, StreamTotals]) -> None:
        """Keep the counters of a lane; called with the guard held."""
        self._past = summed(self._past, {path: each.none_open() for path, each in ended.items()})
