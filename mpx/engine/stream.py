"""What the data connections of uploads and downloads have in common: a socket, counters, a thread."""

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mpx.engine.round_trips import InQueue, Queueing
from mpx.net import tcp, tcp_info
from mpx.net.beyond_sockets import is_local, overhead_bytes
from mpx.net.mptcp import mptcp_info

BUFFER_BYTES = 256 * 1024  # passed, summed and read or written at once; stays in the processor's cache
BLOCK_S = 0.1  # a block lasts about so long, so that a stream can always be left soon
UNSENT_S = (
    0.05  # the kernel may hold so much unsent; more would delay leaving, less would let a fast one starve
)
SMALLEST_BLOCK = 64 * 1024
FIRST_BLOCK = 64 * 1024  # a Globus server reads two connections at first, each to the end of its block
LARGEST_BLOCK = 4 * 1024 * 1024
SHORTEST = 5  # one of so many round trips may be shorter than the queue that counts: it may be an old one


class BlockSize:
    """Sizes blocks to about 100 ms of the stream's own goodput."""

    def __init__(self, fixed_bytes: int | None) -> None:
        self._fixed = fixed_bytes
        self.bytes = fixed_bytes or FIRST_BLOCK

    def took(self, size_bytes: int, took_s: float) -> None:
        """Learn from a block that took `took_s`; at most twice as large or half as large as before."""
        if self._fixed is None and size_bytes >= SMALLEST_BLOCK:
            ideal = size_bytes * BLOCK_S / max(took_s, 1e-6)
            size = min(max(ideal, self.bytes / 2), self.bytes * 2)
            self.bytes = int(min(max(size, SMALLEST_BLOCK), LARGEST_BLOCK)) // SMALLEST_BLOCK * SMALLEST_BLOCK

    def share_bytes(self, duration_s: float) -> int:
        """Return how much of the stream's goodput lasts `duration_s`, going by the block it has now."""
        return int(self.bytes * duration_s / BLOCK_S)


@dataclass(slots=True)
class StreamTotals:
    """Sums over streams, those that have ended with them."""

    streams: int = 0
    bytes: int = 0
    retransmits: int = 0
    busy_s: float = 0.0
    limited_by_receiver_s: float = 0.0
    limited_by_sender_s: float = 0.0
    rtts_s: tuple[float, ...] = ()  # of open ones whose round trips the kernel knows, since we send
    least_rtt_s: float = math.inf  # of those, as the kernel remembers it: of the last minutes
    window_bytes: int = 0  # the largest that a receiver gives one of those
    new_bytes: int = 0  # of those received, what had not arrived before: what came again is no progress
    queued_bytes: int = 0  # of those carried, and ...
    queued_lost: int = 0  # ... of those sent again, while the stream's round trips showed a queue
    untold_bytes: int = 0  # of both, while queues come and go too fast to be told, as windows are small
    untold_lost: int = 0

    def add(self, other: "StreamTotals") -> None:
        """Add what another sum holds."""
        self.streams += other.streams
        self.bytes += other.bytes
        self.new_bytes += other.new_bytes
        self.retransmits += other.retransmits
        self.queued_bytes += other.queued_bytes
        self.queued_lost += other.queued_lost
        self.untold_bytes += other.untold_bytes
        self.untold_lost += other.untold_lost
        self.busy_s += other.busy_s
        self.limited_by_receiver_s += other.limited_by_receiver_s
        self.limited_by_sender_s += other.limited_by_sender_s
        self.rtts_s += other.rtts_s
        self.least_rtt_s = min(self.least_rtt_s, other.least_rtt_s)
        self.window_bytes = max(self.window_bytes, other.window_bytes)

    def none_open(self) -> "StreamTotals":
        """Return the same with what counts only while streams are open left out."""
        return replace(self, streams=0, rtts_s=(), least_rtt_s=math.inf, window_bytes=0)

    @property
    def queue_s(self) -> float | None:
        """How much longer than the shortest the round trips of nearly all are now; None if unknown.

        Where a queue stands all of them meet it; where bursts of some collide the others do not.
        """
        if not self.rtts_s or math.isinf(self.least_rtt_s):
            return None
        return sorted(self.rtts_s)[len(self.rtts_s) // SHORTEST] - self.least_rtt_s

    @property
    def window_bps(self) -> float | None:
        """What the receiver's window lets a stream carry while there is no queue; None if unknown."""
        if not self.window_bytes or math.isinf(self.least_rtt_s):
            return None
        return self.window_bytes * 8 / self.least_rtt_s


def summed(*some: Mapping[str, StreamTotals]) -> dict[str, StreamTotals]:
    """Return the sums of counters by path."""
    sums: dict[str, StreamTotals] = {}
    for each in some:
        for path, totals in each.items():
            sums.setdefault(path, StreamTotals()).add(totals)
    return sums


class SentCounters:
    """What a kernel tells of one connection that sends, as sums. For one thread at a time."""

    def __init__(self) -> None:
        self.last = StreamTotals()
        self._in_queue = InQueue()

    def take(self, now_s: float, info: tcp_info.TcpInfo, carried_bytes: int) -> StreamTotals:
        """Take what it tells now, and how much has arrived by now; return the sums."""
        more_bytes = carried_bytes - self.last.bytes
        more_lost = info.retransmits - self.last.retransmits
        place = self._in_queue.place(now_s, info.rtt_s, info.least_rtt_s, more_bytes)
        self.last = StreamTotals(
            streams=1,
            bytes=carried_bytes,
            retransmits=info.retransmits,
            queued_bytes=self.last.queued_bytes + more_bytes * (place is Queueing.QUEUED),
            queued_lost=self.last.queued_lost + more_lost * (place is Queueing.QUEUED),
            untold_bytes=self.last.untold_bytes + more_bytes * (place is Queueing.UNTOLD),
            untold_lost=self.last.untold_lost + more_lost * (place is Queueing.UNTOLD),
            busy_s=info.busy_s,
            limited_by_receiver_s=info.limited_by_receiver_s,
            limited_by_sender_s=info.limited_by_sender_s,
            rtts_s=(info.rtt_s,),
            least_rtt_s=info.least_rtt_s or math.inf,
            window_bytes=info.window_bytes,
        )
        return self.last


class StreamCounters:
    """A data connection and its counters; one thread sends or receives, any may ask for counters or `cut`."""

    def __init__(self, subflows: Callable[[int], None] | None = None) -> None:
        """`subflows` is called at the end with the largest number of subflows; None: they are not counted."""
        self._tell_subflows = subflows
        self._subflows = 0
        self.connection: socket.socket | None = None  # replaced with `_guard` held
        # Written by the thread that sends or receives only, each read by itself:
        self.passed_bytes = 0  # file bytes handed to the kernel, or taken from it
        self.offered_bytes = 0  # headers too, and what a send that still blocks holds
        self._seen_bytes = 0
        self._owed_since_s: float | None = None
        self._guard = threading.Lock()
        self._sent = SentCounters()

    def opened(self, connection: socket.socket) -> None:
        """Take over an open connection."""
        with self._guard:
            self.connection = connection
            self._count_subflows()

    def closed(self, *, clean: bool) -> None:
        """Close the connection, keeping its counters; what a `clean` end left with the kernel arrives."""
        self.totals()
        with self._guard:
            if clean:
                self._sent.last.bytes = self.passed_bytes
            if self.connection is not None:
                self._count_subflows()
                self.connection.close()
                self.connection = None
                if self._tell_subflows:
                    self._tell_subflows(self._subflows)

    def cut(self) -> None:
        """Reset the connection from any thread; the thread that sends or receives gets an OSError."""
        with self._guard, contextlib.suppress(OSError):
            if self.connection is not None:
                tcp.reset(self.connection)

    def totals(self) -> StreamTotals:
        """Return the counters, up to date if the connection is still open."""
        with self._guard:
            self._count_subflows()
            info = tcp_info.tcp_info(self.connection) if self.connection is not None else None
            if info is not None:
                carried_bytes = min(self._acknowledged(info), self.passed_bytes)
                self._sent.take(time.monotonic(), info, carried_bytes)
            elif self.connection is None:
                self._sent.last = self._sent.last.none_open()
            elif is_local(self.connection):  # what its ssh has taken is on its way
                taken_bytes = self.passed_bytes - tcp_info.unacknowledged_bytes(self.connection)
                self._sent.last = StreamTotals(streams=1, bytes=max(self._sent.last.bytes, taken_bytes))
            return self._sent.last

    def _acknowledged(self, info: tcp_info.TcpInfo) -> int:
        """Return the bytes that have arrived, without those that TLS has added."""
        return max(0, info.bytes_acked - overhead_bytes(self.connection))

    def _count_subflows(self) -> None:
        info = mptcp_info(self.connection) if self._tell_subflows and self.connection is not None else None
        if info is not None:
            self._subflows = max(self._subflows, info.subflows)

    def unanswered_s(self) -> float | None:
        """Return for how long the other side has acknowledged nothing; None when all is acknowledged.

        To be asked again and again: time counts from the first question that found something owed.
        """
        with self._guard:
            info = tcp_info.tcp_info(self.connection) if self.connection is not None else None
        now = time.monotonic()
        if info is None or self._acknowledged(info) + 1 >= self.offered_bytes:  # some kernels count the SYN
            self._owed_since_s = None
            return None
        if self._owed_since_s is None or info.bytes_acked != self._seen_bytes:
            self._owed_since_s = now
        self._seen_bytes = info.bytes_acked
        return now - self._owed_since_s


class Stream(StreamCounters, threading.Thread):
    """A data connection with a thread of its own."""

    def __init__(self, name: str, subflows: Callable[[int], None] | None = None) -> None:
        """See StreamCounters for `subflows`."""
        StreamCounters.__init__(self, subflows)
        threading.Thread.__init__(self, name=name, daemon=True)
        self.retire = False  # set by others; the stream leaves at the next block edge
