"""Transfers between two servers: how much is queued at a pair of them, and in what pieces."""

import math
import time
from collections.abc import Callable

from mpx.endpoints.ftp.two_servers.server_pair import MARKER_S
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer

PIECE_S = 0.5  # duration of one transfer of a part; a change of the number of streams waits for what is ahead
SHORT_PIECE_S = 0.15  # the same, where a sender shares its blocks: its connections end at about one time
SMALLEST_PIECE, FIRST_PIECE, LARGEST_PIECE = 512 << 10, 4 << 20, 1 << 30
# Goodput is measured over so long at least: what was sent ahead ends together with what was before it.
MEASURED_S = 0.1
TAIL = 1.5  # towards the end no pair has more ahead than this part of its share of what is left ...
LEAST_S = 0.3  # ... nor less than it brings in this time and in round trips: it would run dry
BLOCK_BYTES = 256 * 1024  # that Globus servers send at a time over one connection
BLOCKS_EACH = 6  # of a part, as connections that are done with it wait for the last block of the others
SHARED_BLOCKS_EACH = 2  # the same, where the last blocks are small


class PairAhead:
    """Goes by the goodput of a worker. Used by its thread, but for what says otherwise."""

    def __init__(
        self,
        queue: FileQueue,
        *,
        shares_blocks: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`shares_blocks`: see ServerPair."""
        self._shares_blocks = shares_blocks
        self._piece_s = SHORT_PIECE_S if shares_blocks else PIECE_S
        self.share = 1.0  # of what is left, by its goodput; the carrier's decision
        self.queued_by_all = 0  # bytes that are queued at all pairs and not told of; likewise
        self.queued = 0  # the same at this pair; read by others
        self.goodput = 0.0  # bytes/s, smoothed; 0: not known; read by others
        self.ended_s = 0.0  # when the last transfer ended, or the first of these began; 0: none has
        self._measured_s = 0.0  # since when bytes count ...
        self._ended_bytes = 0  # ... of transfers that have ended
        self._queue, self._clock = queue, clock
        self._latest: FileTransfer | None = None  # that something was taken of

    def took_of(self, file: FileTransfer) -> None:
        """Note which file the latest piece is of."""
        self._latest = file

    def flows(self) -> None:
        """Note that the oldest transfer has its connections."""
        if not self.ended_s:
            self.ended_s = self._measured_s = self._clock()
            self._ended_bytes = 0

    def ended(self, size_bytes: int) -> None:
        """Learn from a transfer of so many bytes, which has ended now."""
        now_s = self._clock()
        self.ended_s = now_s
        self._ended_bytes += size_bytes
        if (took_s := now_s - self._measured_s) >= MEASURED_S:
            goodput = self._ended_bytes / took_s
            self.goodput = 0.5 * self.goodput + 0.5 * goodput if self.goodput else goodput
            self._measured_s, self._ended_bytes = now_s, 0

    def most_bytes(self, rtt_s: float, connections: int) -> float:
        """Return how much is to be queued: what markers do not tell yet, a part, and round trips."""
        # A shorter part has ended before a marker is due, so little is untold.
        untold_s = 0.0 if self._shares_blocks else MARKER_S
        usual = self.goodput * (untold_s + self._piece_s + 3 * rtt_s) or 2 * FIRST_PIECE
        least = max(SMALLEST_PIECE, self.goodput * (LEAST_S + 3 * rtt_s))
        if self._shares_blocks:  # one is always behind that which is under way
            least, usual = (max(each, 2 * self.piece_bytes(connections)) for each in (least, usual))
        return min(usual, max(least, self._share_bytes()))

    def piece_bytes(self, connections: int) -> int:
        """Return how large the next piece is to be."""
        size = self.goodput * self._piece_s or FIRST_PIECE
        if connections > 1:
            blocks = SHARED_BLOCKS_EACH if self._shares_blocks else BLOCKS_EACH
            size = max(size, blocks * BLOCK_BYTES * connections)
        return max(SMALLEST_PIECE, int(min(size, self._share_bytes() / 2, LARGEST_PIECE)))

    def _share_bytes(self) -> float:
        """Return how much is to be queued at most, with what is, so that all pairs end at about one time."""
        if self.share == 1.0:  # there is no other
            return math.inf
        latest, queue = self._latest, self._queue
        if latest is None or latest.is_claimed or not queue.is_listed or queue.waiting_bytes:
            return math.inf
        return (latest.todo_bytes + self.queued_by_all) * self.share / TAIL
