"""What holds the streams of one path back, and what the server refuses them."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.rate_limiter import RateLimiter


@dataclass(frozen=True, slots=True)
class PathControl:
    """The controls of one path, used by its streams and by those who decide for it; from any thread."""

    limiter: RateLimiter
    gate: ChunkGate = field(default_factory=ChunkGate)
    congestion_refused: threading.Event = field(default_factory=threading.Event)  # it goes on as before


def controls(
    paths: Iterable[str], cancel: threading.Event, rate_bps: float | None, *, apart: bool = False
) -> Mapping[str, PathControl]:
    """Return the controls of each path; all together send no more than `rate_bps`.

    `apart`: each may be held to a rate of its own, too.
    """
    all_together = RateLimiter(cancel, rate_bps)
    return {
        path: PathControl(RateLimiter(cancel, within=all_together) if apart else all_together)
        for path in paths
    }
