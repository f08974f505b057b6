"""The held-out family of the tuner race: written and committed after the tuner's last change.

Two kinds of curves that no candidate of the tuner and no other family has: streams that take a fair share
from standing traffic until their windows limit them, and goodput that rises in stairs, as when a server
adds a process for every few streams, and then slowly falls.
"""

import math
from collections.abc import Callable
from random import Random

from tuner_models import Curve, capacity, knee


def fair_share(random: Random) -> Curve:
    """The smaller of n / (n + m) against m standing flows, and n / (2 m w), w in 0.5 to 2: two bends."""
    standing, windows = knee(random) / 9, random.uniform(0.5, 2.0)
    return Curve(capacity(random), lambda n: min(n / (n + standing), n / (2 * standing * windows)))


def stairs(random: Random) -> Curve:
    """Steps of s streams, s in 2 to 6, smoothed by a third, up to a knee; then 2 to 8 % less per doubling."""
    k, size, loss = knee(random), random.randint(2, 6), random.uniform(0.02, 0.08)

    def share(n: float) -> float:
        whole = size * math.floor(n / size)
        climbed = (n + 2 * max(whole, 1.0 if n >= 1 else 0.0)) / 3
        return min(1.0, climbed / k) * (1 - loss) ** max(0.0, math.log2(max(n, 1e-9) / k))

    return Curve(capacity(random), share)


def either(random: Random) -> Curve:
    """One of the two, evenly."""
    return random.choice([fair_share, stairs])(random)


HELD_OUT: dict[str, Callable[[Random], Curve]] = {"held-out": either}
