"""What the workers of downloads and uploads over HTTP have in common: lanes, and how they end."""

import socket
import time
from collections.abc import Mapping
from contextlib import suppress

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.lanes import LaneSet
from mpx.engine.carrier import CarrierContext
from mpx.engine.path_set import Side
from mpx.engine.session_worker import SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.net import congestion_control


class WebWorker(SessionWorker):
    """One stream at a time, over a connection that is kept from one request to the next."""

    def __init__(
        self, number: int, path: str, side: Side, access: WebAccess, context: CarrierContext
    ) -> None:
        super().__init__("web", number, access.origin.host, context)
        self.path = path
        self.target = 0  # 1: take pieces; the carrier's decision (see SessionWorker)
        self.access = access
        self.control = context.controls[path]
        self.lanes = LaneSet(access, context, path, side, self.guard, self.retire)
        self.is_busy = False  # something is under way; others read it, too
        self.came_s = 0.0  # when something came, or went, last
        self.is_to_renew = False

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker."""
        return self.lanes.totals(is_busy=self.is_busy)

    def silent_s(self, path: str) -> float | None:
        """See SessionWorker."""
        return time.monotonic() - self.came_s if path == self.path and self.is_busy else None

    def renew(self, path: str) -> None:
        """See SessionWorker."""
        if path == self.path:
            self.is_to_renew = True

    def cut(self) -> None:
        """See SessionWorker."""
        self.lanes.cut()

    def connections(self) -> list[socket.socket]:
        """Return those that are open."""
        with self.guard:
            return self.lanes.sockets()

    def switch_congestion(self, name: str) -> None:
        """Switch open connections and all later ones; raises UsageError where that is not permitted."""
        self.lanes.congestion = name
        for connection in self.connections():
            with suppress(OSError):  # it has ended
                congestion_control.set_congestion(connection, name)

    # --- on this thread ------------------------------------------------------------------------------

    def renew_if_asked(self) -> None:
        """Close connections that are to be replaced; nothing is under way."""
        if self.is_to_renew:
            self.is_to_renew = False
            self.lanes.drop_all()

    def pause(self) -> None:
        """See SessionWorker. A stream that is not wanted any more is closed."""
        if not self.target:
            self.lanes.drop_all()

    def open_session(self) -> object:
        """See SessionWorker."""
        lane = self.lanes.to(self.access.origin)
        self.opened()
        return lane

    def drop(self) -> None:
        """See SessionWorker."""
        self.lanes.drop_all()
