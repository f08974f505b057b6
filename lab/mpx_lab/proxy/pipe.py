"""One direction of a connection: bytes wait for their turn on the line, then for the delay."""

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from mpx_lab.proxy.loop import READABLE, WRITABLE, Loop
from mpx_lab.proxy.path import LARGEST_CHUNK_BYTES, Line, PathOptions
from mpx_lab.proxy.rewrite import LineRewriter


class PipeEnd(Protocol):
    """One socket of a connection, as its two pipes see it."""

    def want(self, event: int, wanted: bool) -> None:
        """Begin or stop to watch for READABLE (calls a pipe's `read`) or WRITABLE (its `deliver`)."""

    def receive_into(self, buffer: memoryview, size_bytes: int) -> int:
        """As socket.recv_into; raises BlockingIOError or another OSError."""
        ...

    def send(self, data: memoryview) -> int:
        """As socket.send; raises BlockingIOError or another OSError."""
        ...

    def end_writing(self) -> None:
        """Tell the peer that nothing follows."""


class Pipe:
    """One direction of a connection: takes bytes from one end, delivers them to the other when due.

    It takes nothing while its lines are busy (so the queue of a slow path stands in the sender's
    socket, not here) and nothing beyond its window. The end of the stream queues like a byte.
    """

    def __init__(
        self,
        loop: Loop,
        path: PathOptions,
        lines: list[Line],
        opens_s: float,
        *,
        on_delivered: Callable[[int], None],
        on_end: Callable[[], None],
        on_failure: Callable[[], None],
        rewriter: LineRewriter | None = None,
    ) -> None:
        self.queues_for_line = False
        self.ended = False  # the end of the stream was delivered
        self.paused = False
        self._loop = loop
        self._delay_s = path.one_way_s
        self._lines = lines
        self._opens_s = opens_s
        self._on_delivered, self._on_end, self._on_failure = on_delivered, on_end, on_failure
        self._rewriter = rewriter
        self._window_bytes = path.effective_window_bytes
        # Half a window at most, so that waiting for room for a whole chunk cannot empty the path.
        chunks = [LARGEST_CHUNK_BYTES, self._window_bytes // 2, *(line.chunk_bytes for line in lines)]
        self._chunk_bytes = max(1, min(chunks))
        self._free_buffers: list[memoryview] = []
        self._queue: deque[tuple[float, memoryview | None, memoryview | None]] = deque()
        self._held_bytes = 0
        self._source_ended = False
        self._window_full = False
        self._sink_full = False
        self._timer_set = False
        self._source: PipeEnd
        self._sink: PipeEnd

    def connect(self, source: PipeEnd, sink: PipeEnd) -> None:
        """Set the two ends; called once, before anything else."""
        self._source, self._sink = source, sink

    def start(self) -> None:
        """Take up work, at first and after a pause."""
        self.paused = False
        self.deliver()
        self.read()

    def read(self) -> None:
        """Take one chunk from the source if lines and window allow; else arrange to be called again."""
        if self.paused or self._source_ended or self.queues_for_line:
            return
        if time.monotonic() < self._opens_s:
            self._loop.at(self._opens_s, self.read)
            return
        if not self._may_read():
            self._source.want(READABLE, False)
            return
        buffer = self._free_buffers.pop() if self._free_buffers else memoryview(bytearray(self._chunk_bytes))
        try:
            count = self._source.receive_into(buffer, self._chunk_bytes)
        except BlockingIOError:
            self._free_buffers.append(buffer)
            self._source.want(READABLE, True)
        except OSError:
            self._on_failure()
        else:
            self._take(buffer, count)
            # Asked at once: a pipe that waits for its line need not be watched.
            self._source.want(READABLE, not self._source_ended and self._may_read())

    def _may_read(self) -> bool:
        """Return whether window and lines allow a chunk; whichever does not will call `read`."""
        self._window_full = self._window_bytes - self._held_bytes < self._chunk_bytes
        now_s = time.monotonic()
        return not self._window_full and all(line.admits(self, now_s) for line in self._lines)

    def _take(self, buffer: memoryview, count: int) -> None:
        now_s = time.monotonic()  # after receiving: the delay may be longer than asked, never shorter
        data: memoryview | None = buffer[:count]
        kept: memoryview | None = buffer
        if count == 0:
            self._source_ended = True
            data = memoryview(self._rewriter.flush()) if self._rewriter else None
        elif self._rewriter:
            data = memoryview(self._rewriter.feed(bytes(buffer[:count])))
        elif count < self._chunk_bytes // 2:
            data = memoryview(bytes(buffer[:count]))  # a few bytes must not hold a whole buffer
        if data is None or data.obj is not buffer.obj:
            self._free_buffers.append(buffer)
            kept = None
        entered_s = max([now_s, *(line.carry(now_s, count) for line in self._lines)])
        if data:
            self._held_bytes += len(data)
            self._queue.append((entered_s + self._delay_s, data, kept))
        if self._source_ended:
            self._queue.append((entered_s + self._delay_s, None, None))
        self._set_timer()

    def deliver(self) -> None:
        """Send everything that is due."""
        if self.paused:
            return
        queue = self._queue
        self._sink_full = False
        while queue and not self._sink_full:
            due_s, data, buffer = queue[0]
            if due_s > time.monotonic():
                break
            if data is None:
                queue.popleft()
                self.ended = True
                self._sink.end_writing()
                self._on_end()
                return
            try:
                sent = self._sink.send(data)
            except BlockingIOError:
                self._sink_full = True
                break
            except OSError:
                self._on_failure()
                return
            self._held_bytes -= sent
            self._on_delivered(sent)
            if sent < len(data):
                queue[0] = (due_s, data[sent:], buffer)
                self._sink_full = True
            else:
                queue.popleft()
                if buffer is not None:
                    self._free_buffers.append(buffer)
        self._sink.want(WRITABLE, self._sink_full)
        self._set_timer()
        if self._window_full:
            self.read()

    def _set_timer(self) -> None:
        if self._queue and not self._timer_set and not self._sink_full:
            self._timer_set = True
            self._loop.at(self._queue[0][0], self._on_timer)

    def _on_timer(self) -> None:
        self._timer_set = False
        self.deliver()
