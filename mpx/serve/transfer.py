"""One transfer, as the session's thread sees it: it starts the data threads and watches over them.

Data threads only move bytes. Everything else happens here, in one loop over the control connection,
the listener and a wake-up: new connections, markers, ABOR, a client that has gone, stalls, the end.

A transfer may be followed by others: a connection that has ended its part of one goes on with the next, while
the rest still move theirs.
"""

import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from mpx.endpoints.ftp.framing import performance_marker, restart_marker
from mpx.serve.buffers import MOST_CONNECTIONS
from mpx.serve.connection import Connection
from mpx.serve.control import Control, ControlClosed
from mpx.serve.data import DataChannel
from mpx.serve.progress import TransferCounters
from mpx.serve.replies import DataChannelError, NoDataConnection, RefusalReply
from mpx.serve.turns import LONG_PATIENCE_S, Turn

_CHECK_S = 1.0
_JOIN_AT_ONCE = 16  # connections of a transfer
_MOST_AHEAD = 8  # transfers that follow one
_LOOKS_FOR_ROOM = 4  # with each connection that comes: so there is no moment at which all are looked at
# After commands came: who sends them byte by byte does not keep us busy.
_LOOK_AGAIN_S, _RAREST_LOOK_S = 0.005, 0.1

_log = logging.getLogger(__name__)


class Engine(Protocol):
    """Moves the bytes of one transfer; `serve` runs in a thread of its own for each connection."""

    @property
    def accepts_more(self) -> bool:
        """Whether connections may join at any time (MODE E, receiving) or there is just one."""

    @property
    def complete(self) -> bool:
        """Whether the transfer is whole though connections may be left; else it ends with its threads."""

    def serve(self, connection: Connection) -> None:
        """Move bytes over one connection to its end; sets `reusable`. Raises what went wrong."""


# Returns what comes so many commands behind a transfer and may begin, over so many connections; else None.
Following = Callable[[int, int], "Transfer | None"]


class _Mark:
    """Something to be said every `interval_s` seconds, from `due_s` on."""

    def __init__(self, say: Callable[[], None], interval_s: float, due_s: float) -> None:
        self._say = say
        self._interval_s = interval_s
        self.due_s = due_s

    def say_if_due(self, now_s: float) -> None:
        if now_s >= self.due_s:
            self.due_s = now_s + self._interval_s
            self._say()

    def say(self) -> None:
        self._say()


class Transfer:
    """Runs one engine over its data connections, and answers on the control connection meanwhile."""

    def __init__(
        self,
        control: Control,
        channel: DataChannel,
        engine: Engine,
        progress: TransferCounters,
        turn: Turn,
        stall_timeout_s: float,
        check_rights: Callable[[], None],
    ) -> None:
        """`check_rights` raises ControlClosed once the client may not go on; it is asked each second."""
        self._control = control
        self._channel = channel
        self._engine = engine
        self._progress = progress
        self._turn = turn
        self._stall_timeout_s = stall_timeout_s
        self._check_rights = check_rights
        self._streams: deque[tuple[Connection, threading.Thread]] = deque()
        self._marks: list[_Mark] = []
        self._came = 0  # connections, also those that were refused
        self._begun = False  # 125 or 150 was sent
        self._wake = -1  # a descriptor while it runs
        self._find_next: Following | None = None
        self._next: Transfer | None = None  # that connections go on with
        self._running = 0  # threads; this and what follows is guarded by progress.lock
        self._connected = 0  # connections
        self._idle: list[Connection] = []  # those that have ended their part, and stay open
        self._failure: Exception | None = None
        self.stream_count = 0  # how many connections took part

    def mark(self, *, performance_s: float, restart_s: float) -> None:
        """Send 112 and 111 markers at these intervals; 0 sends none."""
        now_s = time.monotonic()
        if performance_s:
            self._marks.append(_Mark(self._say_performance, performance_s, now_s))
        if restart_s:
            self._marks.append(_Mark(self._say_restart, restart_s, now_s + restart_s))

    def follow_with(self, find: "Following") -> None:
        """Have connections that are done go on with what `find` returns; all of them take part in it."""
        self._find_next = find

    def run(self, connections: list[Connection]) -> None:
        """Do the transfer over `connections`, those that the channel's listener brings, and those that are
        at it already, as the one before has ended.

        Sends 125 or 150 and the markers; the caller sends the last reply. What is left open goes back
        to the channel; after a failure everything is closed, also what was not begun with. Raises
        RefusalReply (ABOR), DataChannelError, OSError, ControlClosed.
        """
        started_s, whole = time.monotonic(), False
        self._turn.end()
        try:
            if self._wake < 0:
                self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._control.flush()  # the client may wait for these before it connects
            self._start_all(connections)
            if any(connection.cached for connection, _ in self._streams):
                self._begin(b"125 Beginning transfer; reusing existing data connection.\r\n")
            self._watch()
            whole = True
        finally:
            if not whole:
                self.abandon()
                for connection in connections:
                    connection.close()
            elif not self._next:  # else all of them are there already
                self._stop()
                self._close_wake()
                self._channel.keep([connection for connection, _ in self._streams if not connection.closed])
            _log.info(
                "%s: %d bytes in %.3f s over %d data connections%s",
                self._control.peer,
                self._progress.moved_bytes,
                time.monotonic() - started_s,
                self.stream_count,
                "" if whole else ", not whole",
            )
        for mark in self._marks:
            mark.say()

    def abandon(self) -> None:
        """End it and what follows it, and close all connections."""
        transfer: Transfer | None = self
        while transfer:
            transfer._stop(resets=True)
            if transfer is not self:
                transfer._wake = -1  # it is ours
            transfer = transfer._next
        self._close_wake()
        for connection, _ in self._streams:
            connection.close()
        self._channel.close()

    def _close_wake(self) -> None:
        """Close the descriptor, which nobody uses any more."""
        if self._wake >= 0:
            os.close(self._wake)
        self._wake = -1

    # --- the data threads ------------------------------------------------------------------------

    def _start_all(self, connections: list[Connection]) -> None:
        for number, connection in enumerate(connections):
            try:
                self._start(connection)
            except RuntimeError:  # no more threads are to be had
                for left in connections[number:]:
                    left.close()
                raise

    def _start(self, connection: Connection) -> None:
        thread = threading.Thread(target=self._serve, args=(connection,), name="mpx-serve-data", daemon=True)
        with self._progress.lock:
            self._running += 1
        thread.start()
        self._streams.append((connection, thread))
        self.stream_count += 1

    def _serve(self, connection: Connection) -> None:
        failure: Exception | None = None
        try:
            connection.connect()
            with self._progress.lock:
                self._connected += 1
                first = self._connected == 1
            if first:
                os.eventfd_write(self._wake, 1)
            self._engine.serve(connection)
        except Exception as error:  # the watch tells the client, whatever it is
            failure = error
        if not connection.reusable:
            connection.close()
        with self._progress.lock:
            self._running -= 1
            self._failure = self._failure or failure
            if connection.reusable:
                self._idle.append(connection)
            os.eventfd_write(self._wake, 1)

    def _stop(self, *, resets: bool = False) -> None:
        for connection, _ in self._streams:
            if not connection.reusable:
                connection.cancel(resets=resets)
        for _, thread in self._streams:
            thread.join()

    def _lead_on(self) -> None:
        """Have connections that are done here, or with what follows, go on with what follows that."""
        transfer, number = self, 0
        while True:
            with transfer._progress.lock:
                idle, transfer._idle = transfer._idle, []
            if idle and not transfer._next:
                transfer._next = self._found(number)
            if not transfer._next:
                with transfer._progress.lock:
                    transfer._idle += idle
                return
            for connection in idle:
                connection.go_on()
                transfer._next._start(connection)
            transfer, number = transfer._next, number + 1

    def _found(self, number: int) -> "Transfer | None":
        """Return what follows this transfer and so many behind it."""
        with self._progress.lock:
            are_all_here = self._connected == self.stream_count  # who connects is told for what
        if not self._find_next or not are_all_here or number >= _MOST_AHEAD:
            return None
        with self._turn:
            found = self._find_next(number, self.stream_count)
        if found:
            found._wake = self._wake
        return found

    # --- the watch -------------------------------------------------------------------------------

    def _watch(self) -> None:
        listener = self._channel.listener
        waiting = select.poll(), select.poll()  # the second one also for the control connection
        for poll in waiting:
            poll.register(self._wake, select.POLLIN)
            if listener:
                poll.register(listener, select.POLLIN)
        waiting[1].register(self._control, select.POLLIN)
        moved_bytes, moved_at_s = 0, time.monotonic()
        look_s, look_after_s = moved_at_s, _LOOK_AGAIN_S  # when the control connection is looked at next
        check_s = moved_at_s  # and the rights
        while True:
            with self._progress.lock:
                failure, running, connected = self._failure, self._running, self._connected
                now_bytes, complete = self._progress.moved_bytes, self._engine.complete
            if connected and not self._begun:
                self._begin(b"150 Beginning transfer.\r\n")
            if failure:
                raise self._explained(failure)
            if self._find_next and self.stream_count > 1:
                self._lead_on()
            wanted = listener is not None and (self._engine.accepts_more or not self.stream_count)
            if complete or (not running and not wanted):
                return
            now_s = time.monotonic()
            if now_s >= look_s:
                if self._commands_came():
                    look_s = now_s + look_after_s
                    look_after_s = min(2 * look_after_s, _RAREST_LOOK_S)
                else:
                    look_after_s = _LOOK_AGAIN_S
            if now_s >= check_s:
                self._check_rights()
                check_s = now_s + _CHECK_S
            if now_bytes != moved_bytes:
                moved_bytes, moved_at_s = now_bytes, now_s
            due_s = min(moved_at_s + self._stall_timeout_s, check_s)
            if now_s >= moved_at_s + self._stall_timeout_s:
                raise self._explained(DataChannelError(f"nothing moved for {self._stall_timeout_s:g} s"))
            if self._begun:
                for mark in self._marks:
                    mark.say_if_due(now_s)
                    due_s = min(due_s, mark.due_s)
            looks = now_s >= look_s
            if not looks:
                due_s = min(due_s, look_s)
            ready = {fd for fd, _ in waiting[looks].poll(max(0, due_s - now_s) * 1000 + 1)}
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if listener and listener.fileno() in ready:
                self._accept(wanted)

    def _commands_came(self) -> bool:
        """Look at the control connection; tell whether anything came. Raises what ends a transfer."""
        before = self._control.received_bytes
        with self._turn:
            interrupted = self._control.interrupted()
        if interrupted:
            if self._control.closed:
                raise ControlClosed("the client went away during a transfer")
            raise RefusalReply(426, "Transfer aborted.")
        return self._control.received_bytes != before

    def _accept(self, wanted: bool) -> None:
        """Take a connection that waits; after the first few not sooner than the server has it join."""
        self._came += 1
        if self._came > _JOIN_AT_ONCE:
            self._channel.wait_to_join()
        self._turn.take(LONG_PATIENCE_S)
        try:
            connection = self._channel.accept()
            self._drop_some()
            if connection and wanted and len(self._streams) < MOST_CONNECTIONS:
                self._start_all([connection])
            elif connection:
                connection.close()
        finally:
            self._turn.end()

    def _drop_some(self) -> None:
        """Make room: look at the next few, and drop those that are over, here or at the client."""
        for _ in range(min(_LOOKS_FOR_ROOM, len(self._streams))):
            connection, thread = self._streams.popleft()
            if thread.is_alive() or (not connection.closed and connection.is_alive()):
                self._streams.append((connection, thread))
            else:
                thread.join()
                connection.close()

    def _begin(self, reply: bytes) -> None:
        self._begun = True
        self._control.send(reply)

    def _explained(self, failure: Exception) -> Exception:
        if isinstance(failure, DataChannelError) and not self._begun:
            return NoDataConnection(str(failure))
        return failure

    # --- markers ---------------------------------------------------------------------------------

    def _say_performance(self) -> None:
        self._control.send(performance_marker(time.time(), self._progress.moved_bytes))

    def _say_restart(self) -> None:
        while ranges := self._progress.take_ranges():
            self._control.send(restart_marker(ranges))
