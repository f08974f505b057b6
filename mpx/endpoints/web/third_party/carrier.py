"""The carrier between two web servers of which one copies from or to the other."""

import socket
from collections.abc import Sequence

from mpx.endpoints.web.carrier import WebCarrier
from mpx.endpoints.web.third_party.handing import Handing
from mpx.endpoints.web.third_party.way import CopyWay
from mpx.endpoints.web.third_party.worker import WebPairWorker
from mpx.endpoints.web.worker import WebWorker
from mpx.engine.carrier import CarrierContext
from mpx.errors import UsageError


class WebThirdPartyCarrier(WebCarrier):
    """Files of a web server to another one, which they go to straight; a stream is a file under way."""

    def __init__(self, way: CopyWay, context: CarrierContext) -> None:
        self._way, self._handing = way, Handing(way, context.supervisor.note)
        super().__init__(way.active, context)

    def _worker(self, number: int, path: str) -> WebWorker:  # noqa: ARG002 there is one
        return WebPairWorker(number, self._way, self._handing, self._context, self._scheduler)

    def connections(self, path: str) -> Sequence[socket.socket]:  # noqa: ARG002 no data come over ours
        """See Carrier."""
        return ()

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 the same for all
        """See Carrier."""
        raise UsageError(f"servers that send to each other are not told to use {name!r}")
