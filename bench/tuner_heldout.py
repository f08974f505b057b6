"""The held-out family of the tuner race: written and committed after the tuner's last change.

Three kinds of curves that no candidate of the tuner and no other family has: two groups of servers with a gap
between them, a gentle optimum without a knee, and a start-up cost that few streams do not overcome.
"""

import math
from collections.abc import Callable
from random import Random

from tuner_models import Curve, capacity, knee


def two_knees(random: Random) -> Curve:
    """A first knee with 55 to 80 % of the capacity, then up to all of it with a tenth of the slope."""
    first, low = knee(random) / 4, random.uniform(0.55, 0.8)
    slope = 0.1 * low / first
    return Curve(
        capacity(random), lambda n: min(1.0, low * min(1.0, n / first) + slope * max(0.0, n - first))
    )


def gentle_top(random: Random) -> Curve:
    """A parabola in the logarithm around its top, so wide that a quarter is lost 2 to 4 octaves away."""
    top, octaves = knee(random), random.uniform(2.0, 4.0)

    def share(n: float) -> float:
        away = math.log2(max(n, 1e-6) / top) / octaves
        return max(0.02, 1 - 0.25 * away * away)

    return Curve(capacity(random), share)


def toll(random: Random) -> Curve:
    """Each stream loses a part to all others, (1 + n / k)^-1.5, and up to half a stream is paid as a toll."""
    k, fixed = knee(random) * 2, random.uniform(0.0, 0.5)
    scale = max((n - fixed) / (1 + n / k) ** 1.5 for n in range(1, 257))
    return Curve(capacity(random), lambda n: max(0.01, n - fixed) / (1 + n / k) ** 1.5 / scale)


def any_of_three(random: Random) -> Curve:
    """One of the three, evenly."""
    return random.choice([two_knees, gentle_top, toll])(random)


HELD_OUT: dict[str, Callable[[Random], Curve]] = {"held-out": any_of_three}
