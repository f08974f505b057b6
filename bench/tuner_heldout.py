"""The held-out family of the tuner race: written and committed after the tuner's last change.

Three kinds of curves that no candidate of the tuner and no other family has: several servers of unequal
speed behind one name, a limit on connections with a cliff behind it, and streams that are idle by turns.
"""

import math
from collections.abc import Callable
from random import Random

from tuner_models import Curve, capacity, knee


def striped(random: Random) -> Curve:
    """Streams dealt out evenly to 2 to 6 servers, each with its own bottleneck: many small bends."""
    k, count = knee(random), random.randint(2, 6)
    knees = [k * 2 ** random.uniform(-1.5, 1.5) / count for _ in range(count)]
    total = sum(knees)
    return Curve(capacity(random), lambda n: sum(min(n / count, each) for each in knees) / total)


def cliff(random: Random) -> Curve:
    """A knee, a plateau, and 15 to 50 % less once a limit at 1.2 to 4 times the knee is exceeded."""
    k, loss = knee(random), random.uniform(0.15, 0.5)
    limit = k * 2 ** random.uniform(math.log2(1.2), 2)
    return Curve(capacity(random), lambda n: min(n / k, 1.0) * (1.0 if n <= max(limit, 1.0) else 1 - loss))


def idling(random: Random) -> Curve:
    """Streams that wait by turns, 1 - exp(-n / k), less an overhead of 0.05 to 0.3 % for each."""
    k, overhead = knee(random) / math.log(10), random.uniform(0.0005, 0.003)
    return Curve(capacity(random), lambda n: (1 - math.exp(-n / k)) * max(0.2, 1 - overhead * n))


def any_of_three(random: Random) -> Curve:
    """One of the three, evenly."""
    return random.choice([striped, cliff, idling])(random)


HELD_OUT: dict[str, Callable[[Random], Curve]] = {"held-out": any_of_three}
