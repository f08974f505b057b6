"""The held-out family of the tuner race: written and committed after the tuner's last change.

Kinds of curves that were not looked at while the tuner was built: the universal scalability law
(contention and coherence of hosts: Gunther 1993), and a path whose goodput rises in two slopes, steep
until a first limit and slowly from there to the second.
"""

import math
from collections.abc import Callable
from random import Random

from tuner_models import Curve, capacity, knee


def scalability_law(random: Random) -> Curve:
    """n / (1 + a (n - 1) + b n (n - 1)); peak sqrt((1 - a) / b) log-uniform in 1 to 128, a up to 0.2."""
    contention, peak = random.uniform(0.0, 0.2), knee(random)
    coherence = (1 - contention) / peak**2

    def share(n: float) -> float:
        return n / (1 + contention * max(0.0, n - 1) + coherence * n * max(0.0, n - 1))

    top = share(max(1.0, peak))
    return Curve(capacity(random), lambda n: share(n) / top)


def two_slopes(random: Random) -> Curve:
    """Linear to 40 to 85 % of the capacity, then linear in log n to all of it at 3 to 8 times as many."""
    last = knee(random)
    first, step = last / random.uniform(3.0, 8.0), random.uniform(0.4, 0.85)

    def share(n: float) -> float:
        if n <= first:
            return step * n / first
        return step + (1 - step) * min(1.0, math.log(n / first) / math.log(last / first))

    return Curve(capacity(random), share)


def either(random: Random) -> Curve:
    """One of the two, evenly."""
    return random.choice([scalability_law, two_slopes])(random)


HELD_OUT: dict[str, Callable[[Random], Curve]] = {"held-out": either}
