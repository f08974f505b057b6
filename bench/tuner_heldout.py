"""The held-out family of the tuner race: written when the tuner of commit 2a91ccf was done, and unseen by it.

The tuner has changed since: later ones were made when this family was known, so of them a run says less.

Three kinds of curves that no candidate of the tuner and no other family has: gains that shrink from the first
stream on up to a limit, a plateau that wears away, and a step in the middle of the way.
"""

import math
from collections.abc import Callable
from random import Random

from tuner_models import Curve, capacity, knee


def shrinking(random: Random) -> Curve:
    """A power of n below one, 0.5 to 0.9, up to a knee, and flat from there."""
    k, power = knee(random), random.uniform(0.5, 0.9)
    return Curve(capacity(random), lambda n: min(1.0, (n / k) ** power))


def wearing_away(random: Random) -> Curve:
    """A knee, then 2 to 10 % of the capacity less for each further knee's worth of streams, to half of it."""
    k, wear = knee(random), random.uniform(0.02, 0.1)
    return Curve(capacity(random), lambda n: min(1.0, n / k) * max(0.5, 1 - wear * max(0.0, n / k - 1)))


def stepping(random: Random) -> Curve:
    """A smooth step in the logarithm of n, one to three octaves wide, on a floor of 5 to 40 %."""
    k, octaves, floor = knee(random), random.uniform(1.0, 3.0), random.uniform(0.05, 0.4)

    def share(n: float) -> float:
        x = (math.log2(max(n, 1e-6) / k) + octaves / 2) / octaves
        return floor + (1 - floor) / (1 + math.exp(-5 * (x - 0.5)))

    return Curve(capacity(random), share)


def any_of_three(random: Random) -> Curve:
    """One of the three, evenly."""
    return random.choice([shrinking, wearing_away, stepping])(random)


HELD_OUT: dict[str, Callable[[Random], Curve]] = {"held-out": any_of_three}
