"""--policy scavenger: a copy that yields to all others, by pacing all of its streams (scavenger_rate.py)."""

import math
from collections.abc import Callable

from mpx.engine.rate_limiter import PIECE_S as OF_A_RATE_S
from mpx.engine.rate_limiter import RateLimiter
from mpx.recognition.scavenger_rate import LOST_S, Yielding
from mpx.recognition.watch import Watches

PIECE_S = 0.002  # what is passed at once: a longer burst would be a queue of its own
LASTS_S = 5.0  # what is shorter is no news
SPARE_S = 10.0  # so long it waits for a session to spare; what it carries meanwhile is next to nothing
_KEEP_S = 5.0  # probes whose answer takes longer than that are not waited for


class Scavenger:
    """Sets the rate of a pacer, ten times a second."""

    def __init__(self, watch: Watches, pacer: RateLimiter, may_probe: Callable[[], bool]) -> None:
        """`may_probe` says when there is a session to spare for probes: the copy's own come first."""
        self.trouble = ""  # why it cannot yield for now
        self._watch, self._pacer, self._may_probe = watch, pacer, may_probe
        self._most_bps = pacer.rate_bps or math.inf
        self._yielding = Yielding()
        self._gave_way = False  # as was said last
        self._as_said_s = -math.inf  # when it was like that last
        self._asked_s: float | None = None  # when it was asked first
        self._set(self._yielding.observe(0.0, [], 0))

    def observe(self, now_s: float, arrived_bytes: int) -> str:
        """Take what has arrived up to now (monotonic clock); return what is new, in words, else nothing."""
        self._asked_s = now_s if self._asked_s is None else self._asked_s
        if not self._may_probe():
            if now_s >= self._asked_s + SPARE_S:
                self.trouble = "the server lets in no session for them"
                self._set(math.inf)
            return ""
        self._watch.begin()
        self.trouble = self._watch.trouble
        if self.trouble:
            self._set(math.inf)
            return ""
        self._set(self._yielding.observe(now_s, self._watch.series(now_s - _KEEP_S), arrived_bytes))
        if self._gave_way == self._yielding.gives_way:
            self._as_said_s = now_s
        if now_s < self._as_said_s + LASTS_S:  # a queue of our own may look like others' for a moment
            return ""
        self._gave_way, self._as_said_s = self._yielding.gives_way, now_s
        if not self._gave_way:
            return "the queue of the others is gone"
        queue_s = self._yielding.queue_s
        if queue_s >= LOST_S:
            return "gives way: its probes are lost"
        return f"gives way: others keep a queue of {1000 * queue_s:.0f} ms"

    def end(self) -> None:
        """Stop probing."""
        self._watch.end()

    def _set(self, rate_bps: float) -> None:
        self._pacer.piece_s = OF_A_RATE_S if math.isinf(rate_bps) else PIECE_S
        least_bps = min(rate_bps, self._most_bps)
        self._pacer.rate_bps = None if math.isinf(least_bps) else least_bps
