"""Downloads in MODE E: noticing that nothing comes of what a session has under way."""

import time
from collections.abc import Callable

from mpx.endpoints.ftp.mode_e.download_session import DownloadSession
from mpx.engine.stream import StreamTotals
from mpx.errors import InboundBlocked, TransferTimeout

STALL_S = 5.0
SYNS_S = 8.0  # a connection beside others that is lost four times over: at 0, 1, 3 and 7 s
INBOUND_S = 10.0  # a server that has not connected to us by then never will
NEEDLESS_S = 1.0


class Needless(Exception):
    """Other sessions delivered all data that a session still had to bring; it is reopened for the next."""


class DownloadWatch:
    """Watches one session after the other. Used by the worker's thread, but for `silent_s`."""

    def __init__(
        self, host: str, timeout_s: float, is_alone: Callable[[], bool], was_reached: Callable[[], bool]
    ) -> None:
        """`is_alone`: no other session has anything under way; `was_reached`: the server can connect."""
        self._host = host
        self._timeout_s = timeout_s
        self._is_alone = is_alone
        self._was_reached = was_reached
        # Since when, and how many bytes there were then (-1: none under way); one tuple, replaced whole.
        self._progress = (time.monotonic(), -1)

    def begin(self) -> None:
        """Let the time of a new session begin."""
        self._progress = time.monotonic(), -1

    def silent_s(self) -> float:
        """Return for how long nothing has come; from any thread."""
        return time.monotonic() - self._progress[0]

    def look(self, session: DownloadSession, totals: StreamTotals) -> None:
        """Raise TransferTimeout when what is under way does not move, Needless when others have brought it.

        Only bytes that arrive for the first time count: repeats and empty blocks can be sent without end.
        InboundBlocked where no connection has ever come in.
        """
        passed = totals.new_bytes
        if not session.retrieves:
            self.begin()
            return
        if passed != self._progress[1]:
            self._progress = time.monotonic(), passed
            return
        silent_s = self.silent_s()
        needless = all(each.file.has_arrived(each.start, each.end) for each in session.retrieves)
        if needless and silent_s > NEEDLESS_S:
            raise Needless
        if silent_s < min(STALL_S, self._timeout_s):
            return
        limit_s, is_alone = self._timeout_s, self._is_alone()
        if not session.has_connected:
            limit_s = min(limit_s, INBOUND_S + 3 * session.rtt_s)
        if not is_alone:
            limit_s = min(limit_s, STALL_S if session.has_connected else SYNS_S)
        if silent_s <= limit_s:
            return
        if not self._was_reached():
            raise InboundBlocked(f"{self._host} cannot connect to our data port")
        hint = (
            ""
            if session.has_connected or not is_alone
            else f"; check that it can connect to our data port {session.data_port} (--port-range)"
        )
        raise TransferTimeout(
            f"no data from {self._host} for {limit_s:g} s while fetching "
            f"{session.retrieves[0].file.source}{hint}"
        )
