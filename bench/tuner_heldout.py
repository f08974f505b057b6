"""The held-out family of the tuner race: written and committed after the tuner's last change.

Three kinds of curves that no candidate of the tuner and no other family has: work that streams must agree on
with one another, streams that help only once there are many, and gains that halve again and again.
"""

import math
from collections.abc import Callable
from random import Random

from tuner_models import Curve, capacity, knee


def agreeing(random: Random) -> Curve:
    """The universal scalability law: n / (1 + a (n - 1) + b n (n - 1)), a up to 5 %, its top at the knee."""
    k, contention = knee(random), random.uniform(0.0, 0.05)
    coherence = (1 - contention) / k**2
    bps = capacity(random)
    return Curve(bps, lambda n: n / (1 + contention * abs(n - 1) + coherence * n * abs(n - 1)) / k)


def starting_late(random: Random) -> Curve:
    """An S: x^h / (1 + x^h), h in 1.5 to 3; up to a third of the way each stream helps more than the last."""
    h = random.uniform(1.5, 3.0)
    k = knee(random) / 9 ** (1 / h)
    return Curve(capacity(random), lambda n: (n / k) ** h / (1 + (n / k) ** h))


def halving(random: Random) -> Curve:
    """A logarithm up to a limit: log(1 + n / s) / log(1 + k / s), s from a twentieth to a half of k."""
    k = knee(random)
    s = k * random.uniform(0.05, 0.5)
    return Curve(capacity(random), lambda n: min(1.0, math.log1p(n / s) / math.log1p(k / s)))


def any_of_three(random: Random) -> Curve:
    """One of the three, evenly."""
    return random.choice([agreeing, starting_late, halving])(random)


HELD_OUT: dict[str, Callable[[Random], Curve]] = {"held-out": any_of_three}
