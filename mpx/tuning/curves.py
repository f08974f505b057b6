"""Candidate curves G(n), goodput over streams: shapes (knee, bends, fair share, peaks) scaled to many knees.

A candidate has no capacity: only logarithms of shares of it are compared. Pure arithmetic, no numpy; what is
costly is computed once for each limit of streams.
"""

import math
from collections.abc import Callable
from functools import lru_cache

GOOD = 0.9  # a good number of streams gives that share of the best goodput ...
TWICE = 2  # ... and is at most that many times the fewest that do
KNEES_PER_OCTAVE = 4
COUNTS_PER_OCTAVE = 8  # for the ends of a good range
TARGETS_PER_OCTAVE = 4
KEYS_PER_OCTAVE = 32  # shares are looked up for so many counts (streams that ramp count in part)
RIM, RIM_FROM = 0.25, 4  # octaves left out at the ends of a good range, from that many streams on
FIT_OCTAVES = 0.5  # a count that far from the inner good range does not fit at all

Shape = Callable[[float], float]


def _bend(power: float) -> Shape:
    return lambda x: float(x / (1 + x**power) ** (1 / power))


def _peak(loss: float) -> Shape:
    return lambda x: float(min(x, 1.0) * (1 - loss) ** max(0.0, math.log2(x)))


def _windowed_share(windows: float) -> Shape:
    return lambda x: min(x / (1 + x), x / (2 * windows))


# (shape, smallest knee, weight): below the smallest knee one stream fills the path
SHAPES: tuple[tuple[Shape, float, float], ...] = (
    (lambda x: min(x, 1.0), 0.5, 1.0),
    (_bend(3.0), 0.5, 0.5),
    (_bend(2.0), 0.5, 0.5),
    (_bend(1.5), 0.5, 0.4),
    (_bend(1.2), 0.5, 0.4),
    (_bend(1.0), 0.125, 0.4),  # a fair share beside constant traffic
    (_windowed_share(1.0), 0.125, 0.25),  # the same, limited by windows while there are few streams
    (_windowed_share(1.5), 0.125, 0.25),
    (_windowed_share(2.0), 0.125, 0.25),
    (_peak(0.05), 0.5, 0.5),
    (_peak(0.12), 0.5, 0.5),
    (_peak(0.25), 0.5, 0.5),
)


def counts_up_to(most: int, per_octave: int) -> list[int]:
    """Numbers of streams, about evenly in their logarithm, from 1 to `most`."""
    steps = range(per_octave * most.bit_length() + 1)
    return sorted({min(most, round(2 ** (i / per_octave))) for i in steps})


def good_range(shape: Shape, knee: float, most: int) -> tuple[int, int]:
    """Fewest streams with 90 % of the best goodput of up to `most`, and the most that are still good."""
    counts = counts_up_to(most, COUNTS_PER_OCTAVE)
    goodput = [shape(n / knee) for n in counts]
    enough = [n for n, g in zip(counts, goodput, strict=True) if g >= GOOD * max(goodput)]
    return enough[0], max(n for n in enough if n <= TWICE * enough[0])


class Candidates:
    """All candidates for 1 to `most` streams; every list has one entry for each of them."""

    def __init__(self, most: int):
        self._curves: list[tuple[Shape, float]] = []
        self.weights: list[float] = []  # before any evidence, not normalised
        high = math.floor(KNEES_PER_OCTAVE * math.log2(most))
        for shape, smallest, weight in SHAPES:
            for i in range(round(KNEES_PER_OCTAVE * math.log2(smallest)), high + 1):
                self._curves.append((shape, 2 ** (i / KNEES_PER_OCTAVE)))
                self.weights.append(weight)
        self.knees = [knee for _, knee in self._curves]
        self.ranges = [good_range(shape, knee, most) for shape, knee in self._curves]
        self.octaves = [(math.log2(low), math.log2(high)) for low, high in self.ranges]
        self.middles = [(low + high) / 2 for low, high in self.octaves]
        self._inner = [self._without_rim(low, high) for low, high in self.ranges]
        self.targets = counts_up_to(most, TARGETS_PER_OCTAVE)
        self._fits: dict[int, list[float]] = {}
        self._shares: dict[int, list[float]] = {}

    @staticmethod
    def _without_rim(fewest: int, most: int) -> tuple[float, float]:
        """Return the good range in octaves without its rims, as no candidate fits a real curve exactly."""
        rim = min(RIM, math.log2(most / fewest) / 2) if fewest >= RIM_FROM else 0.0
        return math.log2(fewest) + rim, math.log2(most) - rim

    def fit(self, streams: int) -> list[float]:
        """Return how well so many streams fit: 1 inside the good range without its rims, 0 far from it."""
        if streams not in self._fits:
            x = math.log2(streams)
            far = [max(low - x, x - high, 0.0) for low, high in self._inner]
            self._fits[streams] = [max(0.0, 1 - each / FIT_OCTAVES) for each in far]
        return self._fits[streams]

    def log_shares(self, streams: float) -> list[float]:
        """Return the logarithm of goodput with `streams`, as a share of each candidate's own scale."""
        key = round(KEYS_PER_OCTAVE * math.log2(streams))
        if key not in self._shares:
            n = 2 ** (key / KEYS_PER_OCTAVE)
            self._shares[key] = [math.log(shape(n / knee)) for shape, knee in self._curves]
        return self._shares[key]


@lru_cache(maxsize=8)
def candidates(most: int) -> Candidates:
    """Return the candidates for at most so many streams."""
    return Candidates(most)
