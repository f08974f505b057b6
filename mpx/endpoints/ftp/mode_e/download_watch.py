"""Downloads in MODE E: noticing that nothing comes of what a session has under way."""

import math
import time
from collections.abc import Callable

from mpx.endpoints.ftp.mode_e.download_session import DownloadSession
from mpx.engine.stream import StreamTotals
from mpx.errors import InboundBlocked, TransferTimeout

STALL_S, STALL_RTTS = 5.0, 20.0  # a silent session beside others is given up after the longer of these, ...
STALL_BYTES = 1 << 20  # ... if they bring so much meanwhile: else it is the path that is slow
SYNS_S = 8.0  # a connection beside others that is lost four times over: at 0, 1, 3 and 7 s
INBOUND_S = 10.0  # a server that has not connected to us by then never will
NEEDLESS_S = 1.0
LOOK_S = 0.02  # between two looks: they ask the kernel about each connection


class Needless(Exception):
    """Other sessions delivered all data that a session still had to bring; it is reopened for the next."""


class DownloadWatch:
    """Watches one session after the other. Used by the worker's thread, but for `silent_s`."""

    def __init__(
        self, host: str, timeout_s: float, others: Callable[[], int], was_reached: Callable[[], bool]
    ) -> None:
        """`others`: what all other sessions have brought so far; `was_reached`: the server can connect."""
        self._host = host
        self._timeout_s = timeout_s
        self._others = others
        self._others_bytes: int | None = None  # what they had brought when this one became silent
        self._was_reached = was_reached
        self._looked_s = -math.inf
        # Since when, and how many bytes there were then (-1: none under way); one tuple, replaced whole.
        self._progress = (time.monotonic(), -1)

    def begin(self) -> None:
        """Let the time of a new session begin."""
        self._progress, self._others_bytes = (time.monotonic(), -1), None

    def silent_s(self) -> float:
        """Return for how long nothing has come; from any thread."""
        return time.monotonic() - self._progress[0]

    def is_due(self, session: DownloadSession) -> bool:
        """Whether it is time to look again; with nothing under way it always is, and costs nothing."""
        return not session.retrieves or time.monotonic() >= self._looked_s + LOOK_S

    def look(self, session: DownloadSession, totals: StreamTotals) -> None:
        """Raise TransferTimeout when what is under way does not move, Needless when others have brought it.

        Only bytes that arrive for the first time count: repeats and empty blocks can be sent without end.
        InboundBlocked where no connection has ever come in.
        """
        self._looked_s, passed = time.monotonic(), totals.new_bytes
        if not session.retrieves:
            self.begin()
            return
        if passed != self._progress[1]:
            self._progress, self._others_bytes = (time.monotonic(), passed), None
            return
        silent_s = self.silent_s()
        if self._others_bytes is None and silent_s > NEEDLESS_S:
            self._others_bytes = self._others()
        needless = all(each.file.has_arrived(each.start, each.end) for each in session.retrieves)
        if needless and silent_s > NEEDLESS_S:
            raise Needless
        if silent_s < min(STALL_S, self._timeout_s):
            return
        limit_s, others_move = self._timeout_s, self._others_move()
        if not session.has_connected:
            limit_s = min(limit_s, INBOUND_S + 3 * session.rtt_s)
        if others_move:
            stall_s = max(STALL_S, STALL_RTTS * session.rtt_s)
            limit_s = min(limit_s, stall_s if session.has_connected else SYNS_S)
        if silent_s <= limit_s:
            return
        if not self._was_reached():
            raise InboundBlocked(f"{self._host} cannot connect to our data port")
        hint = (
            ""
            if session.has_connected or others_move
            else f"; check that it can connect to our data port {session.data_port} (--port-range)"
        )
        raise TransferTimeout(
            f"no data from {self._host} for {limit_s:g} s while fetching "
            f"{session.retrieves[0].file.source}{hint}"
        )

    def _others_move(self) -> bool:
        """Whether other sessions have brought much since this one became silent."""
        return self._others_bytes is not None and self._others() - self._others_bytes >= STALL_BYTES
