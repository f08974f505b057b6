"""What connections meet on their way: delay, window, lines of a fixed rate, and the record of it."""

import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from mpx_lab.proxy.loop import Loop
from mpx_lab.proxy.record import BUCKET_S, ConnectionRecord, Direction, Kind, Record, Side

LARGEST_CHUNK_BYTES = 256 * 1024
SMALLEST_CHUNK_BYTES = 2048
CHUNK_S = 0.004  # of a line's time per chunk: shorter than a bucket of the record
CREDIT_S = 0.005  # idle time a line may make up for, so that waking up late costs no rate
SOCKET_BUFFER_BYTES = 256 * 1024  # the kernel's own queue would otherwise dwarf the emulated window
SMALLEST_BUFFER_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class PathOptions:
    """Delay, rate and window of one connection, in each direction."""

    rtt_s: float = 0.030
    rate_bps: float | None = None  # None: as fast as the machine
    window_bytes: int | None = None  # None: twice rate times RTT, 1 MiB without a rate

    @property
    def one_way_s(self) -> float:
        """The delay of one direction."""
        return self.rtt_s / 2

    @property
    def effective_window_bytes(self) -> int:
        """The most bytes taken from a sender and not delivered yet."""
        if self.window_bytes is not None:
            return self.window_bytes
        if self.rate_bps is None:
            return 1 << 20
        return max(2 * int(self.rate_bps * self.rtt_s / 8), 2 * SMALLEST_CHUNK_BYTES)

    @property
    def receive_buffer_bytes(self) -> int:
        """Receive buffer of the kernel: about 5 ms of the rate.

        The kernel acknowledges these bytes at once, so a sender who counts what was acknowledged would
        see every new connection begin with a burst that the emulated path never carried.
        """
        if self.rate_bps is None:
            return SOCKET_BUFFER_BYTES
        return min(max(int(self.rate_bps * 0.005 / 8), SMALLEST_BUFFER_BYTES), SOCKET_BUFFER_BYTES)


class Waiter(Protocol):
    """What waits for a line: a pipe."""

    queues_for_line: bool

    def read(self) -> None:
        """Take bytes now: its turn has come."""


class Line:
    """A serial line of a fixed rate. Pipes that want to send while it is busy take turns."""

    def __init__(self, loop: Loop, rate_bps: float) -> None:
        self.chunk_bytes = int(min(max(rate_bps / 8 * CHUNK_S, SMALLEST_CHUNK_BYTES), LARGEST_CHUNK_BYTES))
        self._loop = loop
        self._s_per_byte = 8 / rate_bps
        self._free_s = 0.0
        self._waiting: deque[Waiter] = deque()
        self._turn: Waiter | None = None
        self._timer_set = False

    def admits(self, pipe: Waiter, now_s: float) -> bool:
        """Return whether the pipe may take bytes now; if not, its `read` is called when it may."""
        if now_s >= self._free_s and (pipe is self._turn or not self._waiting):
            return True
        self._waiting.append(pipe)
        pipe.queues_for_line = True
        self._set_timer()
        return False

    def carry(self, now_s: float, size_bytes: int) -> float:
        """Return the time when the last of these bytes has entered the path."""
        self._free_s = max(self._free_s, now_s - CREDIT_S) + size_bytes * self._s_per_byte
        return self._free_s

    def _set_timer(self) -> None:
        if self._waiting and not self._timer_set:
            self._timer_set = True
            self._loop.at(self._free_s, self._serve)

    def _serve(self) -> None:
        self._timer_set = False
        waiting = self._waiting
        for _ in range(len(waiting)):
            if time.monotonic() < self._free_s:
                break
            self._turn = waiting.popleft()
            self._turn.queues_for_line = False
            self._turn.read()
        self._turn = None
        self._set_timer()


class Path:
    """What all connections of a proxy share: loop, options, bottleneck, and record."""

    def __init__(self, options: PathOptions, total_rate_bps: float | None) -> None:
        self.loop = Loop()
        self.options = options
        self.record = Record(time.time())
        self._started_s = time.monotonic()
        self._bottleneck: dict[Direction, Line] = {}  # of the data connections together
        if total_rate_bps is not None:
            both: tuple[Direction, Direction] = ("up", "down")
            self._bottleneck = {direction: Line(self.loop, total_rate_bps) for direction in both}

    def opened(self, kind: Kind, opened_by: Side) -> ConnectionRecord:
        """Return the record of a new connection."""
        log = ConnectionRecord(len(self.record.connections), kind, opened_by, self._since_start_s())
        self.record.connections.append(log)
        return log

    def lines(self, kind: Kind, direction: Direction) -> list[Line]:
        """Return the lines that a new connection passes in one direction."""
        own = [] if self.options.rate_bps is None else [Line(self.loop, self.options.rate_bps)]
        shared = kind == "data" and direction in self._bottleneck
        return [*own, self._bottleneck[direction]] if shared else own

    def delivered(self, log: ConnectionRecord, direction: Direction, size_bytes: int) -> None:
        """Count bytes that have just been delivered."""
        self.record.count(log, direction, int(self._since_start_s() / BUCKET_S), size_bytes)

    def closed(self, log: ConnectionRecord, *, reset: bool) -> None:
        """Note that a connection has ended."""
        log.closed_s = self._since_start_s()
        log.ended_by = "reset" if reset else "close"

    def _since_start_s(self) -> float:
        return time.monotonic() - self._started_s
