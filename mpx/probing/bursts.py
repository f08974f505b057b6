"""Active probing: what is sent beside the probes and when. Pure; sending is somebody else's.

A profile of bursts, each a single stream under one congestion control, repeats as long as probes are sent.
How the RTT answers them tells more of the background than the background alone does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle


@dataclass(frozen=True, slots=True)
class Burst:
    """A part of a profile."""

    congestion: str | None  # None: quiet
    duration_s: float


PAPER = (Burst("cubic", 5.0), Burst("bbr", 5.0), Burst("cubic", 5.0), Burst(None, 5.0))
"""Anvari and Lu, Computers 10(6):76, 2021, section 4 (active probing); a period of 20 s."""

SHORT = (Burst("cubic", 2.0), Burst("bbr", 2.0), Burst(None, 1.0))
"""Each congestion control once, in a quarter of the time."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A burst in a window: from when until when, in seconds since the window's begin."""

    from_s: float
    to_s: float
    congestion: str | None


def schedule(profile: Sequence[Burst], window_s: float) -> list[Timed]:
    """Return what is sent when: the profile again and again, the last burst cut off with the window.

    Raises ValueError for a profile that takes no time.
    """
    if not sum(burst.duration_s for burst in profile) > 0:
        raise ValueError("a profile of bursts that takes no time")
    timed: list[Timed] = []
    at_s = 0.0
    for burst in cycle(profile):
        if at_s >= window_s:
            break
        to_s = min(at_s + burst.duration_s, window_s)
        timed.append(Timed(at_s, to_s, burst.congestion))
        at_s = to_s
    return timed
