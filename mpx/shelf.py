"""The files that the lanes of a download work on together: who takes which range next.

Several lanes share one large file; a small one goes to one lane whole. When nothing is left to hand
out, an idle lane takes over part of what a slow one still has to bring.
"""

import threading
import time
from dataclasses import dataclass

from mpx.carrier import Work
from mpx.gridftp_download import Pull
from mpx.mover import Move
from mpx.ranges import RangeSet

TAKEOVER_S = 0.5  # what a slow lane needs longer for is taken over
SMALLEST_TAKEOVER = 256 * 1024


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of a file that a lane is to bring."""

    move: Move
    start: int
    end: int


class Shelf:
    """Hands out pieces to lanes. Safe for several threads."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._moves: list[Move] = []
        self._doubled: dict[Move, RangeSet] = {}  # taken over once already

    def take(self, limit: int) -> Piece | None:
        """Return the next piece of at most `limit` bytes, opening further files; None if there is none now.

        A piece of a zero-byte file has no bytes.
        """
        with self._lock:
            while True:
                for move in self._moves:
                    taken = move.take(limit)
                    if taken:
                        return Piece(move, *taken)
                self._moves = [move for move in self._moves if not move.is_whole]
                # Files whose every byte is handed out do not count: their last bytes are on the way.
                opened = self._work.pool.take_more(lambda _: True)
                if opened is None:
                    return None
                if opened.is_whole:
                    return Piece(opened, 0, 0)
                self._moves.append(opened)

    @property
    def todo_bytes(self) -> int:
        """How many bytes of the opened files wait to be handed out."""
        with self._lock:
            return sum(move.todo_bytes for move in self._moves)

    def take_over(self, pulls: list[tuple[Pull, float]]) -> Piece | None:
        """Return the last part of what the slowest lane still has to bring, once for any byte.

        `pulls`: the retrieves under way at other lanes, each with its lane's goodput in bytes/s.
        """
        worst: tuple[float, Pull, RangeSet] | None = None
        now = time.monotonic()
        for pull, goodput in pulls:
            missing = pull.move.missing_within(pull.start, pull.end)
            with self._lock:
                for start, end in self._doubled.get(pull.move, RangeSet()):
                    missing.remove(start, end)
            if missing.size < SMALLEST_TAKEOVER and now - pull.sent_s < 2.0:
                continue
            left_s = missing.size / max(goodput, 1.0)
            if missing.size and left_s > TAKEOVER_S and (worst is None or left_s > worst[0]):
                worst = left_s, pull, missing
        if worst is None:
            return None
        _, pull, missing = worst
        start, end = list(missing)[-1]
        if end - start > 2 * SMALLEST_TAKEOVER:
            start = (start + end) // 2
        with self._lock:
            self._doubled.setdefault(pull.move, RangeSet()).add(start, end)
        return Piece(pull.move, start, end)
