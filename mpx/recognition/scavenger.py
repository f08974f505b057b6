"""--policy scavenger: a copy that yields to all other traffic, by pacing its streams (scavenger_rate.py)."""

import math
from collections.abc import Callable

from mpx.engine.rate_limiter import PIECE_S as OF_A_RATE_S
from mpx.engine.rate_limiter import RateLimiter
from mpx.recognition.scavenger_rate import LOST_S, Yielding
from mpx.recognition.watch import Watches

PIECE_S = 0.002  # what is sent at once: a longer burst would make a queue
LASTS_S = 5.0  # a state that is shorter is not reported
SPARE_S = 10.0  # how long it waits for a free session, at the lowest rate
_KEEP_S = 5.0  # probes that are older are not used


class Scavenger:
    """Sets the rate limit of a copy, ten times a second."""

    def __init__(self, watch: Watches, pacer: RateLimiter, may_probe: Callable[[], bool]) -> None:
        """`may_probe` returns whether a session is free for probes: those of the copy come first."""
        self.trouble = ""  # why it cannot yield at the moment
        self._watch, self._pacer, self._may_probe = watch, pacer, may_probe
        self._most_bps = pacer.rate_bps or math.inf
        self._yielding = Yielding()
        self._yields = False  # as reported last
        self._reported_s = -math.inf  # when that was last true
        self._began_s: float | None = None  # first call of `observe`
        self._set(self._yielding.observe(0.0, [], 0))

    def observe(self, now_s: float, arrived_bytes: int) -> str:
        """Take what has arrived up to now (monotonic clock); return a change in words, else an empty text."""
        self._began_s = now_s if self._began_s is None else self._began_s
        if not self._may_probe():
            if now_s >= self._began_s + SPARE_S:
                self.trouble = "no session is free for probes"
                self._set(math.inf)
            return ""
        self._watch.begin()
        self.trouble = self._watch.trouble
        if self.trouble:
            self._set(math.inf)
            return ""
        self._set(self._yielding.observe(now_s, self._watch.series(now_s - _KEEP_S), arrived_bytes))
        if self._yields == self._yielding.yields:
            self._reported_s = now_s
        if (
            now_s < self._reported_s + LASTS_S
        ):  # a queue of our own may be taken for one of others for a moment
            return ""
        self._yields, self._reported_s = self._yielding.yields, now_s
        if not self._yields:
            return "other traffic leaves no queue any more: sending at the rate of the path again"
        queue_s = self._yielding.queue_s
        if queue_s >= LOST_S:
            return "yielding: probes are lost, so other traffic fills the queue"
        return f"yielding: other traffic keeps a queue of {1000 * queue_s:.0f} ms"

    def end(self) -> None:
        """Stop probing."""
        self._watch.end()

    def _set(self, rate_bps: float) -> None:
        self._pacer.piece_s = OF_A_RATE_S if math.isinf(rate_bps) else PIECE_S
        least_bps = min(rate_bps, self._most_bps)
        self._pacer.rate_bps = None if math.isinf(least_bps) else least_bps
