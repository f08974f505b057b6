"""What the workers of downloads and uploads over HTTP have in common: lanes, and how they end."""

import socket
import time
from collections.abc import Mapping, Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.lanes import LaneSet
from mpx.engine.carrier import CarrierContext
from mpx.engine.path_set import Side
from mpx.engine.retry import ServerBusy, SessionsFull
from mpx.engine.session_worker import SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.errors import MpxError


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
        self.peers: Sequence[WebWorker] = ()  # all workers of the carrier, which has the list
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

    # --- on this thread ------------------------------------------------------------------------------

    def renew_if_asked(self) -> None:
        """Close connections that are to be replaced; nothing is under way."""
        if self.is_to_renew:
            self.is_to_renew = False
            self.lanes.drop_all()

    def one_too_many(self, error: ServerBusy) -> MpxError:
        """Return what a busy server means: too many of us ask, unless it says when to ask again.

        Where that does not help, the copy goes on with those that the server does not refuse.
        """
        is_last_try = self.retry.next_attempt > self.context.options.retries
        is_replaced = is_last_try and self._has_others
        if is_replaced or (self._number and (is_last_try or error.wait_s is None)):
            return SessionsFull(str(error))
        return error

    @property
    def _has_others(self) -> bool:
        """Whether the copy goes on without this one."""
        others = [each for each in list(self.peers) if each is not self]
        return any(each.target and not each.gone and each.is_alive() for each in others)

    @staticmethod
    def is_due_to_file(error: MpxError) -> bool:
        """Tell whether a failure may be due to what was carried; else the server is busy."""
        return not isinstance(error, (ServerBusy, SessionsFull))

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
