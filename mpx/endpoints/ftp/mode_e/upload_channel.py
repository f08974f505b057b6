"""Uploads in MODE E, the streams: connections to one passive port of a server.

The sender connects, so streams come and go at will inside one STOR: a new one joins on the port that
PASV gave, an old one leaves at a block edge with EOD. Streams take block after block from the file, so
a fast one carries more and a slow one never holds more than its block. Connections outlive a file:
after EOD without CLOSE the next STOR uses them again.
"""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mpx.endpoints.ftp.data_address import DataPort
from mpx.endpoints.ftp.mode_e.store import Store
from mpx.endpoints.ftp.mode_e.upload_stream import UploadStream
from mpx.engine.carrier import CarrierContext
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, MpxError, UsageError

LEAVE_S = 1.0
REJOIN_S = 1.0  # between a refused connection and the next attempt


class UploadDataChannel:
    """A passive port of the server and our connections to it, for one transfer after the other."""

    def __init__(
        self, port: DataPort, context: CarrierContext, congestions: Mapping[str, str | None]
    ) -> None:
        """`congestions`: by path; the control loop may change one at any time."""
        self.port = port
        self.block_bytes = context.options.block_size_bytes  # None: what a stream sends in about 100 ms
        self.context = context
        self.congestions = congestions
        self.is_steered = context.streams.paths.lead_to(port.address[0])
        # Written with `_lock` held, each read by itself:
        self.broken: MpxError | None = None  # why a transfer, and those behind it, cannot be completed
        self.refused: MpxError | None = None  # why the latest connection could not be opened
        self.refusals = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._transfers: dict[int, Store] = {}
        self._added = 0
        self._most_todo = 0  # bytes that any of them has had to send
        self._adjusted_to: Sequence[str] | None = None  # there are just these; None: something has changed
        self._streams: list[UploadStream] = []
        self._ended: dict[str, StreamTotals] = {}  # by path
        self._closed = False
        self._broken_at = 0  # the transfer that `broken` is about
        self._rejoin_s = 0.0

    # --- for the worker ------------------------------------------------------------------------------

    def add(self, transfer: Store) -> None:
        """Queue a transfer, before its STOR is sent; every open connection takes part in it.

        One that is being opened enrolls itself once it is (`joined`): it may still fail to.
        """
        with self._lock:
            for stream in self._streams:
                if stream.has_joined and not stream.leaving:
                    transfer.ends.enroll()
            transfer.number = self._added
            self._transfers[self._added] = transfer
            if (todo_bytes := transfer.file.todo_bytes) > self._most_todo:
                self._most_todo, self._adjusted_to = todo_bytes, None
            self._added += 1
            self._changed.notify_all()

    def forget(self, transfer: Store) -> None:
        """Let go of a transfer that the server has completed, so that every stream is past it."""
        with self._lock:
            del self._transfers[transfer.number]
            if not self._transfers:
                self._most_todo = 0

    def adjust(self, transfer: Store, target: Sequence[str]) -> None:
        """Open or retire connections so that the running transfer has one for each of the paths in `target`.

        Never more than it, or one queued behind it, has use for, and always one until its end was announced;
        the first of `target` are opened first.
        """
        ends, bytes_each = transfer.ends, self.context.streams.bytes_each
        with self._lock:
            if target == self._adjusted_to and (ends.announced or ends.taking_part):
                return
            wanted, live = Counter(target), Counter[str]()
            for stream in self._streams:
                if not stream.leaving and not stream.retire:
                    live[stream.path] += 1
                    stream.retire = live[stream.path] > wanted[stream.path]
            if self._closed or self.broken or time.monotonic() < self._rejoin_s:
                return
            missing = _missing(live, target, self._most_todo, bytes_each)
            if missing:  # else none is, whatever is left: no need to ask each of many files
                largest_todo = max(queued.file.todo_bytes for queued in self._transfers.values())
                missing = _missing(live, target, largest_todo, bytes_each)
            self._adjusted_to = None if missing else target
            # One is needed for the end, even where all have gone on to what is queued behind.
            if not missing and not ends.taking_part:
                missing.append(target[0])
            for path in missing:
                if not ends.reserve():
                    return
                stream = UploadStream(self, transfer, path)
                self._streams.append(stream)
                try:
                    stream.start()
                except RuntimeError:  # no more threads: go on with those that there are
                    self._streams.remove(stream)
                    ends.not_joined()
                    self._rejoin_s = time.monotonic() + REJOIN_S
                    return

    def renew(self, path: str) -> None:
        """Retire every connection of a path at its next block edge; `adjust` opens others."""
        with self._lock:
            self._adjusted_to = None
            for stream in self._streams:
                stream.retire = stream.retire or stream.path == path

    def live_streams(self) -> list[UploadStream]:
        """Return the connections that are open or being opened."""
        with self._lock:
            return list(self._streams)

    def totals(self) -> dict[str, StreamTotals]:
        """Return the counters of all connections that there are and were, by path.

        Those that leave count no more as open.
        """
        with self._lock:
            sums = {path: replace(ended) for path, ended in self._ended.items()}
            for stream in self._streams:
                totals = stream.totals().none_open() if stream.leaving else stream.totals()
                sums.setdefault(stream.path, StreamTotals()).add(totals)
        return sums

    def close(self) -> None:
        """Let idle connections go, without a reset."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def leave(self) -> None:
        """Close, and wait until every connection has reported its counters: soon, as they are idle.

        A controller that is asked for a path just then may keep one; that is not waited for.
        """
        self.close()
        with self._lock:
            self._changed.wait_for(lambda: not self._streams, LEAVE_S)

    def cut(self) -> None:
        """Reset every connection and wait until their threads have ended."""
        self.close()
        streams = self.live_streams()
        for stream in streams:
            stream.cut()
        for stream in streams:
            while stream.is_alive():
                stream.cut()  # it may have been connecting at the first try
                stream.join(0.05)

    # --- for the streams -----------------------------------------------------------------------------

    def transfer_at(self, index: int, stream: UploadStream) -> Store | None:
        """Return the transfer number `index`, waiting for it; None when the port is closed."""
        with self._lock:
            stream.idle = True
            while self._added <= index and not self._closed:
                self._changed.wait()
            stream.idle = False
            return None if self._closed else self._transfers[index]

    def joined(self, stream: UploadStream, transfer: Store) -> None:
        """Say that a stream is open: it takes part in this transfer and in those queued behind it."""
        with self._lock:
            stream.has_joined = True
            self.refusals = 0
            for later in range(transfer.number + 1, self._added):
                self._transfers[later].ends.enroll()
            transfer.ends.joined()

    def may_close(self, stream: UploadStream, index: int) -> bool:
        """Tell whether a retired stream may close now, or is enrolled in a later transfer already."""
        with self._lock:
            stream.leaving = stream.retire and self._added == index + 1
            return stream.leaving

    def may_announce(self, index: int) -> bool:
        """Tell whether the last connection to leave a transfer may announce its end (EOF).

        True once the end of the transfer before it was announced: a connection that joins that one also takes
        part in this one.
        """
        with self._lock:
            before = self._transfers.get(index - 1)
            return before is None or before.ends.announced

    @property
    def is_steady(self) -> bool:
        """Whether its connections are to stay, and nothing has failed."""
        with self._lock:
            return self.broken is None and not any(stream.retire for stream in self._streams)

    @property
    def is_deserted(self) -> bool:
        """Whether it was used and no connection is left for a further transfer."""
        with self._lock:
            return self._added > 0 and all(stream.leaving for stream in self._streams)

    @property
    def is_closed(self) -> bool:
        """Whether the port is given up, so that nothing more is to be sent."""
        return self._closed

    def fail(self, error: MpxError, transfer: Store | None) -> None:
        """Say that a transfer cannot be completed, and so none of those queued behind it."""
        with self._lock:
            if self.broken is None:
                self.broken = error
                self._broken_at = transfer.number if transfer else 0

    def broken_in(self, transfer: Store) -> MpxError | None:
        """Return why this transfer cannot be completed; one that stands before the broken one still may."""
        with self._lock:
            if self.broken is None or self._broken_at > transfer.number:
                return None
            if self._broken_at == transfer.number or self.broken.may_retry:
                return self.broken
            return ConnectionLost(f"an earlier transfer of the same session failed: {self.broken}")

    def was_refused(self, error: MpxError) -> None:
        """Say that a connection could not be opened."""
        with self._lock:
            self.refused = error
            self.refusals += 1
            if isinstance(error, UsageError):  # no port to come from: we do with the streams that there are
                self.context.supervisor.note(f"cannot open a further stream: {error}")
            self._rejoin_s = time.monotonic() + REJOIN_S

    def left(self, stream: UploadStream) -> None:
        """Forget a stream that has ended, keeping its counters."""
        totals = stream.totals()
        with self._lock:
            self._streams.remove(stream)
            self._adjusted_to = None
            self._ended.setdefault(stream.path, StreamTotals()).add(totals)
            self._changed.notify_all()


def _missing(live: Counter[str], target: Sequence[str], todo_bytes: int, bytes_each: int) -> list[str]:
    """Return the paths of `target` that lack a connection, given the most that any file has left to send.

    One for each `bytes_each` of it is enough.
    """
    if not todo_bytes:
        return []
    spare, missing = live.copy(), []
    for path in target[: -(-todo_bytes // bytes_each)]:
        spare[path] -= 1
        if spare[path] < 0:
            missing.append(path)
    return missing
