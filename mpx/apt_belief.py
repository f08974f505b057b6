"""What a tuner believes about G(n), goodput over streams: candidate curves, weighed by evidence.

A candidate is a shape (knee, bend, slow bend, two peaks) scaled to a knee k. The capacity is not part of it:
each candidate follows the level that fits it. Every measured bin is predicted by every candidate from
the bin before, and candidates that predict well gain. Pure arithmetic on logarithms of goodput; no
clock, no randomness, no numpy.
"""

import math
from collections.abc import Callable

GOOD = 0.9  # a good number of streams gives that share of the best goodput ...
TWICE = 2  # ... and is at most that many times the fewest that do
CORRELATION_S = 1.0  # the noise of a network stays similar for about that long
FORGET_S = 25.0  # evidence loses two thirds of its weight in that time
DEEPEST = 12.0  # log-odds: no candidate is ever further out than that, since networks change
NOISE, NOISE_BINS = 0.15, 5.0  # relative noise assumed at first, and how many bins that is worth
TAIL = 4.0  # degrees of freedom of Student's t: how little a single outlier may say
KNEES_PER_OCTAVE = 4
RIM, RIM_FROM = 0.25, 4  # octaves kept from the ends of a good range, from that many streams on
SMALLEST_KNEE = 0.5  # a knee below one stream is a path that one stream fills


def _peak(loss: float) -> Callable[[float], float]:
    return lambda x: min(x, 1.0) * (1 - loss) ** max(0.0, math.log2(x))


SHAPES: tuple[Callable[[float], float], ...] = (
    lambda x: min(x, 1.0),
    lambda x: x / math.sqrt(1 + x * x),
    lambda x: x / (1 + x**1.2) ** (1 / 1.2),
    _peak(0.1),
    _peak(0.25),
)


def good_range(shape: Callable[[float], float], knee: float, most: int) -> tuple[int, int]:
    """Fewest streams with 90 % of the best goodput of up to `most`, and the most that are still good."""
    counts = sorted({min(most, round(2 ** (i / 8))) for i in range(8 * most.bit_length() + 1)})
    goodput = [shape(n / knee) for n in counts]
    enough = [n for n, g in zip(counts, goodput, strict=True) if g >= GOOD * max(goodput)]
    return enough[0], max(n for n in enough if n <= TWICE * enough[0])


class CurveBelief:
    """How credible each candidate is, and what that says about the right number of streams."""

    def __init__(self, most: int, start: float, octaves: float = 3.0):
        """The answer is between 1 and `most` streams, at first thought to lie `octaves` around `start`."""
        low, high = round(KNEES_PER_OCTAVE * math.log2(SMALLEST_KNEE)), KNEES_PER_OCTAVE * math.log2(most)
        knees = [2 ** (i / KNEES_PER_OCTAVE) for i in range(low, math.floor(high) + 1)]
        self._candidates = [(shape, knee) for shape in SHAPES for knee in knees]
        self._shares: dict[int, list[float]] = {}
        ranges = [good_range(shape, knee, most) for shape, knee in self._candidates]
        self._ranges = [self._inner(a, b) for a, b in ranges]
        self._ends = sorted((n, i) for i, ends in enumerate(ranges) for n in ends)
        self._prior = [-0.5 * (((a + b) / 2 - math.log2(start)) / octaves) ** 2 for a, b in self._ranges]
        self._evidence = [0.0] * len(self._candidates)
        self._levels = [0.0] * len(self._candidates)
        self._level_weight = 0.0
        self._last: tuple[float, float, float, list[float]] | None = None
        self._noise_sum, self._noise_bins = NOISE_BINS * NOISE**2, NOISE_BINS
        self._weigh()

    @staticmethod
    def _inner(fewest: int, most: int) -> tuple[float, float]:
        """The good range in octaves, without its rims: no candidate fits a real curve exactly."""
        rim = min(RIM, math.log2(most / fewest) / 2) if fewest >= RIM_FROM else 0.0
        return math.log2(fewest) + rim, math.log2(most) - rim

    @property
    def noise(self) -> float:
        """Relative noise of goodput, as the standard deviation of its logarithm."""
        return math.sqrt(self._noise_sum / self._noise_bins)

    def reopen(self, depth: float) -> None:
        """The network changed: evidence counts for `depth` log-odds at most, levels start anew."""
        self._evidence = [max(e, -depth) for e in self._evidence]
        self._last = None
        self._weigh()

    def add(self, at_s: float, streams: float, goodput_bps: float, worth: float) -> None:
        """Weigh the candidates by one bin: goodput with `streams` (those ramping count in part)."""
        y, shares = math.log(goodput_bps), self._log_shares(streams)
        if self._last is None:
            self._levels = [y - share for share in shares]
            self._level_weight = worth
        else:
            self._compare(at_s, streams, y, shares, worth)
        self._last = (at_s, streams, y, shares)
        self._weigh()

    def _compare(self, at_s: float, streams: float, y: float, shares: list[float], worth: float) -> None:
        """Predict this bin from the last: noise decays towards each candidate's level (AR(1))."""
        assert self._last is not None
        then_s, streams0, y0, shares0 = self._last
        keep = math.exp(-(at_s - then_s) / CORRELATION_S)
        forget = math.exp(-(at_s - then_s) / FORGET_S)
        fresh = 1 - keep
        weight = worth / (1 - keep * keep)
        spread = TAIL * self.noise**2 * (1 / weight + fresh * fresh / self._level_weight)
        self._level_weight = self._level_weight * forget + weight * fresh * fresh
        gain = weight * fresh / self._level_weight
        change = y - keep * y0
        half = (TAIL + 1) / 2
        for i, (share, share0) in enumerate(zip(shares, shares0, strict=True)):
            error = change - share + keep * share0 - fresh * self._levels[i]
            self._levels[i] += gain * error
            self._evidence[i] = forget * self._evidence[i] - half * math.log1p(error * error / spread)
        top = max(self._evidence)
        self._evidence = [max(e - top, -DEEPEST) for e in self._evidence]
        if abs(streams - streams0) < 0.01 * streams:  # no candidate can be blamed for this error
            self._noise_sum = forget * self._noise_sum + weight * min(error * error, spread)
            self._noise_bins = forget * self._noise_bins + 1.0

    def hint(self, log_odds: Callable[[float], float]) -> None:
        """Add log-odds to every candidate by its knee (streams)."""
        self._evidence = [
            max(e + log_odds(knee), -DEEPEST)
            for e, (_, knee) in zip(self._evidence, self._candidates, strict=True)
        ]

    def _log_shares(self, streams: float) -> list[float]:
        key = round(32 * math.log2(streams))
        if key not in self._shares:
            n = 2 ** (key / 32)
            self._shares[key] = [math.log(shape(n / knee)) for shape, knee in self._candidates]
        return self._shares[key]

    def _weigh(self) -> None:
        logs = [p + e for p, e in zip(self._prior, self._evidence, strict=True)]
        top = max(logs)
        weights = [math.exp(v - top) for v in logs]
        total = sum(weights)
        self._weights = [w / total for w in weights]
        self._best = logs.index(top)

    def quantile(self, share: float) -> float:
        """The streams below which that share of the belief lies (of the ends of the good ranges)."""
        seen, goal = 0.0, 2 * share
        for n, i in self._ends:
            seen += self._weights[i]
            if seen >= goal:
                return float(n)
        return float(self._ends[-1][0])

    def target(self) -> float:
        """The streams with the least expected distance, in octaves, from the good range."""
        return math.sqrt(self.quantile(0.45) * self.quantile(0.55))

    def distance(self, streams: int) -> float:
        """Expected octaves by which `streams` misses the good range."""
        x = math.log2(streams)
        return sum(
            w * max(lo - x, 0.0, x - hi) for w, (lo, hi) in zip(self._weights, self._ranges, strict=True)
        )

    def dispute(self, here: int, there: int) -> float:
        """How much the candidates disagree on goodput `there` against `here` (deviation of its log)."""
        ratios = [b - a for a, b in zip(self._log_shares(here), self._log_shares(there), strict=True)]
        mean = sum(w * r for w, r in zip(self._weights, ratios, strict=True))
        return math.sqrt(sum(w * (r - mean) ** 2 for w, r in zip(self._weights, ratios, strict=True)))

    def surprise(self, streams: float, goodput_bps: float) -> float:
        """Logarithm of measured over predicted goodput, by the most credible candidate's level."""
        if self._last is None:
            return 0.0
        return math.log(goodput_bps) - self._log_shares(streams)[self._best] - self._levels[self._best]
