"""The connections of one worker: to the server that it asks, and to the one that redirects lead to."""

import socket
import threading
from collections.abc import Callable

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.connection import HttpConnection
from mpx.endpoints.web.fetch import WebFetch
from mpx.endpoints.web.server_digests import wanted
from mpx.endpoints.web.url import Origin
from mpx.engine.carrier import CarrierContext
from mpx.engine.checksum_choice import SHORT_BYTES
from mpx.engine.path_set import DEFAULT_PATH, Side
from mpx.engine.receiving import ReceivingCounters
from mpx.engine.session_worker import NothingLeft
from mpx.engine.stop import Either
from mpx.engine.stream import StreamCounters, StreamTotals, summed
from mpx.net import pacing, tcp

UNSENT_BYTES = 512 * 1024  # that the kernel may hold, so that goodput counts what has arrived
_MOST_KEPT = 2


class WebLane(StreamCounters):
    """One connection with its counters: what the other side has acknowledged of what is sent."""

    def __init__(self, http: HttpConnection) -> None:
        super().__init__()
        self.http = http
        self.port = int(http.socket.getsockname()[1])
        self.opened(http.socket)


class ReceivingLane(ReceivingCounters, WebLane):
    """The same of what comes."""


class LaneSet:
    """The lanes of one worker. Used by its thread, but for `cut` and `totals`."""

    def __init__(
        self,
        access: WebAccess,
        context: CarrierContext,
        path: str,
        side: Side,
        guard: threading.Lock,
        retire: Callable[[dict[str, StreamTotals]], None],
    ) -> None:
        """`side`: of this host. `guard` is held while lanes change; `retire` keeps the counters of one."""
        self._access, self._context, self._path, self._side = access, context, path, side
        self._guard, self._retire = guard, retire
        self._lanes: dict[Origin, WebLane] = {}  # the last used is the last
        # Once all files are settled nothing is waited for that is under way still.
        self._stop = Either(context.failure.cancel, NothingLeft(context.queue)).is_set
        self.connected_s = 0.0  # how long the last handshake took
        self.congestion: str | None = None  # that later connections have, in place of what they began with
        # Whether answers are to come over a lane still: such a one makes no room for others.
        self.is_needed: Callable[[Origin], bool] = lambda _: False

    def to(self, origin: Origin) -> WebLane:
        """Return the lane to a server, opened if there is none; raises as WebAccess.connect."""
        lane = self._lanes.get(origin)
        if lane is None:
            streams = self._context.streams
            http = self._access.take(origin) if self.is_free else None
            if http is None:
                http = self._access.connect(
                    origin,
                    congestion=self.congestion or streams.congestion_of(self._path),
                    bound=streams.paths.register(self._path, self._side),
                    stop=self._stop,
                )
            self.connected_s = http.connected_s
            lane = self._take(http)
        else:
            with self._guard:
                self._lanes[origin] = self._lanes.pop(origin)
        for each in [each for each in self._lanes if each != origin and not self.is_needed(each)]:
            if len(self._lanes) > _MOST_KEPT:
                self.drop(each)
        return lane

    def open_to(self, origin: Origin) -> WebLane:
        """As `to`, of a lane with nothing under way: another one where the server has ended that.

        Many end what is idle, as it is here while a source takes its time, also before the first request.
        """
        lane = self.to(origin)
        if tcp.is_open(lane.http.socket):
            return lane
        self.drop(origin)
        return self.to(origin)

    def has_room(self, origin: Origin) -> bool:
        """Tell whether a server can be asked without more lanes than are kept at a time."""
        return origin in self._lanes or sum(map(self.is_needed, self._lanes)) < _MOST_KEPT

    def get(self, origin: Origin) -> WebLane | None:
        """Return the lane to a server if there is one."""
        return self._lanes.get(origin)

    @property
    def is_free(self) -> bool:
        """Whether any connection will do: none is steered, nor has it a congestion control of its own."""
        streams = self._context.streams
        is_default = streams.paths.names == (DEFAULT_PATH,)
        return is_default and not (self.congestion or streams.congestion_of(self._path))

    def adopt(self, http: HttpConnection) -> None:
        """Take a connection over that was opened by others."""
        self.drop(http.origin)
        self.connected_s = http.connected_s
        self._take(http)

    def _take(self, http: HttpConnection) -> WebLane:
        """Have a connection be a lane; others may have asked something over it before."""
        if self._side == "source":
            pacing.limit_unsent(http.socket, UNSENT_BYTES)
        lane = ReceivingLane(http) if self._side == "sink" else WebLane(http)
        http.stop_by(self._stop)
        with self._guard:
            self._lanes[http.origin] = lane
        return lane

    def has(self, origin: Origin) -> bool:
        """Tell whether there is a lane to a server."""
        return origin in self._lanes

    def ask(self, fetch: WebFetch) -> None:
        """Send the request of a fetch; raises ConnectionLost and the like."""
        origin = fetch.at.origin
        fetch.is_checked, fetch.is_sent = False, True
        self.to(origin).http.send(self._access.request("GET", fetch.at, fetch.headers()))

    def ask_about(self, fetch: WebFetch) -> None:
        """Ask what the file of a fetch is, behind it; raises as `ask`.

        And for the digest of a short one, where it will be compared by that: servers have it at once.
        """
        origin, file = fetch.at.origin, fetch.file
        if lane := self._lanes.get(origin):
            algorithm, server = file.sums.algorithm, self._access.server
            is_told_soon = file.size_bytes <= SHORT_BYTES and server.is_known_to_compute
            wants = wanted(algorithm) if is_told_soon and server.may_tell(algorithm) else {}
            lane.http.send(self._access.request("HEAD", fetch.at, wants))
            fetch.is_checked = True

    def drop(self, origin: Origin) -> None:
        """Close the lane to a server."""
        with self._guard:
            lane = self._lanes.pop(origin, None)
            if lane is None:
                return
            lane.closed(clean=False)
            self._retire({self._path: lane.totals()})
        self._context.streams.paths.ended(lane.port, self._side)

    def drop_all(self) -> None:
        """Close all."""
        for origin in list(self._lanes):
            self.drop(origin)

    def cut(self) -> None:
        """Reset all, from any thread."""
        with self._guard:
            for lane in self._lanes.values():
                lane.cut()

    def totals(self, *, is_busy: bool) -> dict[str, StreamTotals]:
        """Return the counters of open lanes, of which one is a stream; called with the guard held."""
        sums = summed(*({self._path: lane.totals()} for lane in self._lanes.values()))
        for each in sums.values():
            each.streams = int(is_busy)
        return sums

    def sockets(self) -> list[socket.socket]:
        """Return the connections that are open; called with the guard held."""
        return [lane.connection for lane in self._lanes.values() if lane.connection]
