"""What a tuner believes about G(n), goodput over streams: candidate curves, weighed by evidence.

A candidate is a shape (knee, bends, hyperbola, two peaks) scaled to a knee k. The capacity is not part of
it: each candidate follows the level that fits it. Every measured bin is predicted by every candidate from
the bin before, and candidates that predict well gain. Pure arithmetic on logarithms of goodput; no
clock, no randomness, no numpy.
"""

import math
from collections.abc import Callable, Sequence

GOOD = 0.9  # a good number of streams gives that share of the best goodput ...
TWICE = 2  # ... and is at most that many times the fewest that do
CORRELATION_S = 1.0  # the noise of a network stays similar for about that long
CHANGES_S = 60.0  # a network becomes another one about that often: so much belief returns to the prior
FORGET_S = 25.0  # levels and noise lose two thirds of their past in that time
NOISE, NOISE_BINS = 0.15, 5.0  # relative noise assumed at first, and how many bins that is worth
LEAST_NOISE = 0.02  # no network is quieter
MISFIT = 0.015  # error of every candidate's prediction, for each octave between two counts
TAIL = 4.0  # degrees of freedom of Student's t: how little a single outlier may say
KNEES_PER_OCTAVE = 4
RIM, RIM_FROM = 0.25, 4  # octaves kept from the ends of a good range, from that many streams on
OUTCOMES = 5  # possible results of a look, twice as many with noise, that are thought through
PRIOR_OCTAVES = 3.0  # spread of the prior
REOPENED = 0.15  # what is left of the logarithm of the odds when a change was noticed


def _peak(loss: float) -> Callable[[float], float]:
    return lambda x: min(x, 1.0) * (1 - loss) ** max(0.0, math.log2(x))


# (shape, smallest knee, weight): below the smallest knee one stream fills the path
SHAPES: tuple[tuple[Callable[[float], float], float, float], ...] = (
    (lambda x: min(x, 1.0), 0.5, 1.0),
    (lambda x: x / math.sqrt(1 + x * x), 0.5, 1.0),
    (lambda x: x / (1 + x**1.2) ** (1 / 1.2), 0.5, 1.0),
    (lambda x: x / (1 + x), 0.125, 0.5),  # a fair share of standing traffic
    (_peak(0.1), 0.5, 1.0),
    (_peak(0.25), 0.5, 1.0),
)


def good_range(shape: Callable[[float], float], knee: float, most: int) -> tuple[int, int]:
    """Fewest streams with 90 % of the best goodput of up to `most`, and the most that are still good."""
    counts = sorted({min(most, round(2 ** (i / 8))) for i in range(8 * most.bit_length() + 1)})
    goodput = [shape(n / knee) for n in counts]
    enough = [n for n, g in zip(counts, goodput, strict=True) if g >= GOOD * max(goodput)]
    return enough[0], max(n for n in enough if n <= TWICE * enough[0])


def _likelihood(error: float, spread: float) -> float:
    """Student's t with four degrees of freedom, up to a factor; `spread` is four variances."""
    x = 1 + error * error / spread
    return 1 / (x * x * math.sqrt(x))


class CurveBelief:
    """How credible each candidate is, and what that says about the right number of streams."""

    def __init__(self, most: int, start: float):
        """The answer is between 1 and `most` streams, at first thought to lie around `start`."""
        high = KNEES_PER_OCTAVE * math.log2(most)
        self._candidates: list[tuple[Callable[[float], float], float]] = []
        weights = []
        for shape, smallest, weight in SHAPES:
            for i in range(round(KNEES_PER_OCTAVE * math.log2(smallest)), math.floor(high) + 1):
                self._candidates.append((shape, 2 ** (i / KNEES_PER_OCTAVE)))
                weights.append(weight)
        self._shares: dict[int, list[float]] = {}
        ranges = [good_range(shape, knee, most) for shape, knee in self._candidates]
        self._ranges = [self._inner(a, b) for a, b in ranges]
        self._ends = sorted((n, i) for i, ends in enumerate(ranges) for n in ends)
        middles = [((a + b) / 2 - math.log2(start)) / PRIOR_OCTAVES for a, b in self._ranges]
        self._prior = self._normal([w * math.exp(-m * m / 2) for w, m in zip(weights, middles, strict=True)])
        self._weights = self._prior
        self._best = self._weights.index(max(self._weights))
        self._levels = [0.0] * len(self._candidates)
        self._level_weight = 0.0
        self._last: tuple[float, float, float, list[float]] | None = None
        self._noise_sum, self._noise_bins = NOISE_BINS * NOISE**2, NOISE_BINS

    @staticmethod
    def _inner(fewest: int, most: int) -> tuple[float, float]:
        """The good range in octaves, without its rims: no candidate fits a real curve exactly."""
        rim = min(RIM, math.log2(most / fewest) / 2) if fewest >= RIM_FROM else 0.0
        return math.log2(fewest) + rim, math.log2(most) - rim

    @staticmethod
    def _normal(weights: list[float]) -> list[float]:
        total = sum(weights)
        return [w / total for w in weights]

    @property
    def noise(self) -> float:
        """Relative noise of goodput, as the standard deviation of its logarithm."""
        return max(LEAST_NOISE, math.sqrt(self._noise_sum / self._noise_bins))

    def fresh_noise(self, seconds: float) -> float:
        """How far noise moves in that time, as a standard deviation: little in a moment."""
        return self.noise * math.sqrt(1 - math.exp(-2 * seconds / CORRELATION_S))

    def reopen(self) -> None:
        """The network changed: little is left of the evidence, and levels start anew."""
        mixed = zip(self._weights, self._prior, strict=True)
        self._weights = self._normal([w**REOPENED * p ** (1 - REOPENED) for w, p in mixed])
        self._last = None

    def add(
        self, at_s: float, streams: float, goodput_bps: float, worth: float, settled: bool = True
    ) -> None:
        """Weigh the candidates by one bin: goodput with `streams` (those ramping count in part).

        `settled` says that the streams have been the same for a while, so that errors are noise.
        """
        y, shares = math.log(goodput_bps), self._log_shares(streams)
        if self._last is None:
            self._levels = [y - share for share in shares]
            self._level_weight = worth
        else:
            self._compare(at_s, streams, y, shares, worth, settled)
        self._last = (at_s, streams, y, shares)
        self._best = self._weights.index(max(self._weights))

    def _compare(
        self, at_s: float, streams: float, y: float, shares: list[float], worth: float, settled: bool
    ) -> None:
        """Predict this bin from the last: noise decays towards each candidate's level (AR(1))."""
        assert self._last is not None
        then_s, streams0, y0, shares0 = self._last
        keep = math.exp(-(at_s - then_s) / CORRELATION_S)
        forget = math.exp(-(at_s - then_s) / FORGET_S)
        changed = 1 - math.exp(-(at_s - then_s) / CHANGES_S)
        fresh = 1 - keep
        weight = worth / (1 - keep * keep)
        variance = self.noise**2 * (1 / weight + fresh * fresh / self._level_weight)
        spread = TAIL * (variance + (MISFIT * math.log2(streams / streams0)) ** 2)
        self._level_weight = self._level_weight * forget + weight * fresh * fresh
        gain = weight * fresh / self._level_weight
        change = y - keep * y0
        terms = zip(shares, shares0, self._levels, strict=True)
        errors = [change - share + keep * share0 - fresh * level for share, share0, level in terms]
        usual = sum(w * e for w, e in zip(self._weights, errors, strict=True))
        self._levels = [level + gain * e for level, e in zip(self._levels, errors, strict=True)]
        pairs = zip(self._weights, errors, strict=True)
        weights = self._normal([w * _likelihood(e, spread) + 1e-300 for w, e in pairs])
        mixed = zip(weights, self._prior, strict=True)
        self._weights = [(1 - changed) * w + changed * p for w, p in mixed]
        if settled and abs(streams - streams0) < 0.01 * streams:  # no candidate can be blamed for the error
            self._noise_sum = forget * self._noise_sum + min(weight * usual * usual, TAIL * self.noise**2)
            self._noise_bins = forget * self._noise_bins + 1.0

    def hint(self, log_odds: Callable[[float], float]) -> None:
        """Add log-odds to every candidate by its knee (streams)."""
        known = zip(self._weights, self._candidates, strict=True)
        self._weights = self._normal([w * math.exp(log_odds(knee)) for w, (_, knee) in known])

    def _log_shares(self, streams: float) -> list[float]:
        key = round(32 * math.log2(streams))
        if key not in self._shares:
            n = 2 ** (key / 32)
            self._shares[key] = [math.log(shape(n / knee)) for shape, knee in self._candidates]
        return self._shares[key]

    def _quantile(self, weights: Sequence[float], share: float) -> float:
        seen, goal = 0.0, 2 * share
        for n, i in self._ends:
            seen += weights[i]
            if seen >= goal:
                return float(n)
        return float(self._ends[-1][0])

    def _distance(self, weights: Sequence[float], streams: float) -> float:
        x = math.log2(streams)
        known = zip(weights, self._ranges, strict=True)
        return sum(w * (lo - x if x < lo else x - hi) for w, (lo, hi) in known if x < lo or x > hi)

    def quantile(self, share: float) -> float:
        """The streams below which that share of the belief lies (of the ends of the good ranges)."""
        return self._quantile(self._weights, share)

    def target(self) -> float:
        """The streams with the least expected distance, in octaves, from the good range."""
        return math.sqrt(self.quantile(0.45) * self.quantile(0.55))

    def distance(self, streams: int) -> float:
        """Expected octaves by which `streams` misses the good range."""
        return self._distance(self._weights, streams)

    def good(self, streams: int) -> float:
        """How probably `streams` is in the good range, its rims left out."""
        x = math.log2(streams)
        known = zip(self._weights, self._ranges, strict=True)
        return sum(w for w, (lo, hi) in known if lo - 1e-9 <= x <= hi + 1e-9)

    def value(self, here: int, there: int, noise: float) -> float:
        """Octaves by which a look `there` should bring us nearer to the good range.

        It thinks through what the look could show: middles of equal slices of the belief, each with
        noise upwards and downwards, and where the best guess would lie afterwards.
        """
        ratios = [b - a for a, b in zip(self._log_shares(here), self._log_shares(there), strict=True)]
        spread = TAIL * noise * noise
        after, seen, slices = 0.0, 0.0, 0
        for ratio, weight in sorted(zip(ratios, self._weights, strict=True)):
            seen += weight
            while slices < OUTCOMES and seen >= (slices + 0.5) / OUTCOMES:
                slices += 1
                for result in (ratio - 0.8 * noise, ratio + 0.8 * noise):
                    known = zip(self._weights, ratios, strict=True)
                    weights = self._normal([w * _likelihood(result - r, spread) for w, r in known])
                    after += self._distance(weights, self._quantile(weights, 0.5))
        now = self._distance(self._weights, self._quantile(self._weights, 0.5))
        return max(0.0, now - after / (2 * max(1, slices)))

    def surprise(self, at_s: float, streams: float, goodput_bps: float) -> tuple[float, float]:
        """Logarithm of measured over predicted goodput, by the most credible candidate: level, last bin."""
        if self._last is None:
            return 0.0, 0.0
        then_s, _, y0, shares0 = self._last
        off = math.log(goodput_bps) - self._log_shares(streams)[self._best] - self._levels[self._best]
        before = y0 - shares0[self._best] - self._levels[self._best]
        return off, off - math.exp(-(at_s - then_s) / CORRELATION_S) * before
