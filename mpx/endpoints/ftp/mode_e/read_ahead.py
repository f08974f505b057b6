"""Downloads in MODE E: how much is asked of a server ahead of what has come, and in what pieces."""

import threading
import time

from mpx.engine.range_scheduler import SMALLEST_PIECE

AHEAD_S = 0.5  # queued at the server, or 3 RTT: a retrieve that is queued cannot be called back
PIECE_S = 0.2  # duration of one retrieve, or 1 RTT
FIRST_PIECE = 512 * 1024
FIRST_AHEAD = 4 * 1024 * 1024  # at least, as streams that begin are soon faster than they were, ...
RAMP_S, RAMP_RTT = 2.0, 10.0  # ... but no more than this takes, as a change of streams waits for it
LARGEST_PIECE = 256 * 1024 * 1024
BLOCK_BYTES = 256 * 1024  # that Globus servers send at a time over one connection; few others send more
BLOCKS_EACH = (
    16  # in one retrieve, as connections that are done with it wait for the last block of the others
)
AT_FIRST = 1e6  # bytes/s that a worker is expected to bring before its goodput was measured
MEASURED_S = 0.1  # goodput is measured over this time or more
PROOFS_BYTES = 1024  # the ends of files that show where parts begin are a byte each, and no measure


class ReadAhead:
    """Goes by the goodput of a worker. Used by its thread, but for `goodput`."""

    def __init__(self, first_piece: int = FIRST_PIECE) -> None:
        self._first_piece = first_piece
        self.rtt_s = 0.0
        self.connections = 0  # of the session
        self._guard = threading.Lock()
        self._goodput = 0.0  # bytes/s, smoothed; guarded by `_guard`
        self._measured = (time.monotonic(), 0)

    @property
    def goodput(self) -> float:
        """In bytes/s, smoothed; 0 before it was measured. From any thread."""
        with self._guard:
            return self._goodput

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed for a measurement."""
        return time.monotonic() - self._measured[0] > MEASURED_S

    def passed(self, passed_bytes: int) -> None:
        """Measure, from what has come in all until now."""
        now_s, (since_s, before) = time.monotonic(), self._measured
        if not self.goodput and passed_bytes - before < PROOFS_BYTES:
            self._measured = now_s, passed_bytes
        elif now_s - since_s > MEASURED_S:
            rate = (passed_bytes - before) / (now_s - since_s)
            with self._guard:
                self._goodput = 0.5 * self._goodput + 0.5 * rate if self._goodput else rate
            self._measured = now_s, passed_bytes

    def connected(self, connections: int) -> None:
        """Scale the expected goodput with the number of connections."""
        before, self.connections = self.connections or connections, connections
        with self._guard:
            self._goodput *= connections / before

    def takes_s(self, size_bytes: int) -> float:
        """Return how long so many bytes take, in seconds; 0 before goodput was measured."""
        goodput = self.goodput
        return size_bytes / goodput if goodput else 0.0

    @property
    def piece_bytes(self) -> int:
        """How many bytes the next retrieve is to bring."""
        size = self.goodput * max(PIECE_S, self.rtt_s) or self._first_piece
        shared = BLOCKS_EACH * BLOCK_BYTES * self.connections if self.connections > 1 else 0
        return int(min(max(size, shared, SMALLEST_PIECE), LARGEST_PIECE))

    @property
    def most_bytes(self) -> float:
        """How many bytes are to be queued at the server."""
        goodput = self.goodput
        first = min(FIRST_AHEAD, goodput * max(RAMP_S, RAMP_RTT * self.rtt_s) or FIRST_AHEAD)
        return max(goodput * max(AHEAD_S, 3 * self.rtt_s), first)
