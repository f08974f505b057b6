"""The tuner's belief about G(n), goodput over streams: candidate curves, weighed by evidence (Bayes).

Every candidate predicts each bin from the one before, and those that predict well gain weight. Each has a
level of its own, which follows the data. The noise of the network is learnt, too. Pure arithmetic on
logarithms of goodput: no clock, no randomness, no numpy.
"""

import math
from collections.abc import Callable, Sequence
from operator import add, mul

from mpx.tuning.curves import candidates

CORRELATION_S = 1.0  # how long the noise of a network is correlated
CHANGES_S = 100.0  # how often a network changes: so much of the belief returns to the prior
FORGET_S = 25.0  # levels forget two thirds of their past in that time
NOISE_FORGET_S = 10.0  # and the noise is forgotten as fast as that
# candidates for the noise (standard deviation of the logarithm of goodput at one instant), with their prior;
# an estimate that is too high costs time, one that is too low misleads, so the prior is on the noisy side
NOISES = ((0.02, 0.05), (0.05, 0.08), (0.1, 0.15), (0.18, 0.26), (0.3, 0.36), (0.6, 0.1))
NOISE_RETURNS = 0.001  # no candidate for the noise is ever ruled out
MISFIT = 0.03  # error of every candidate's prediction, for each octave between two counts
RAMP_MISFIT = 0.5  # and for the share of streams still ramping up, as ramps are not known exactly
TAIL = 8.0  # degrees of freedom of Student's t: limits the weight of an outlier
PRIOR_OCTAVES = 3.0  # spread of the prior
STEP_OCTAVES = 1.0  # candidates whose good range is farther away count as if it were as far as this
REOPENED = 0.15  # share of the log-odds that is kept when a change was noticed


class CurveBelief:
    """The probability of each candidate, and what follows for the number of streams."""

    def __init__(self, most: int, start: float):
        """The best number is between 1 and `most` streams, and by the prior around `start`."""
        self._known = known = candidates(most)
        self._ends = sorted((n, i) for i, ends in enumerate(known.ranges) for n in ends)
        self._priors: dict[int, list[float]] = {}
        self._weights = self._prior(start)
        self._best = self._weights.index(max(self._weights))
        self._levels = [0.0] * len(self._weights)
        self._level_weight = 0.0
        self._last: tuple[float, float, float, list[float], float] | None = None
        self._noises = [share for _, share in NOISES]

    def _prior(self, around: float) -> list[float]:
        """Return the prior: the good range lies around that many streams."""
        quarter = round(4 * math.log2(around))
        if quarter not in self._priors:
            far = [(middle - quarter / 4) / PRIOR_OCTAVES for middle in self._known.middles]
            pairs = zip(self._known.weights, far, strict=True)
            self._priors[quarter] = _normal([w * math.exp(-x * x / 2) for w, x in pairs])
        return self._priors[quarter]

    @property
    def noise(self) -> float:
        """The relative noise of goodput, as the standard deviation of its logarithm."""
        return sum(share * noise for share, (noise, _) in zip(self._noises, NOISES, strict=True))

    def fresh_noise(self, seconds: float) -> float:
        """Return how far the noise moves in that time, as a standard deviation."""
        return self.noise * math.sqrt(1 - math.exp(-2 * seconds / CORRELATION_S))

    def reopen(self, streams: int) -> None:
        """Forget most of the evidence and all levels, as the network has changed.

        The new prior lies around `streams`.
        """
        mixed = zip(self._weights, self._prior(streams), strict=True)
        self._weights = _normal([w**REOPENED * p ** (1 - REOPENED) for w, p in mixed])
        self._last = None

    def add(self, at_s: float, streams: float, goodput_bps: float, worth: float) -> None:
        """Weigh the candidates by one bin: goodput with `streams` (those ramping count in part).

        `worth` is the share of the streams that are up to speed, to the power of 4.
        """
        y, shares = math.log(goodput_bps), self._known.log_shares(streams)
        if self._last is None:
            self._levels = [y - share for share in shares]
            self._level_weight = worth
        else:
            self._compare(at_s, streams, y, shares, worth)
        self._last = (at_s, streams, y, shares, worth)
        self._best = self._weights.index(max(self._weights))

    def _compare(self, at_s: float, streams: float, y: float, shares: list[float], worth: float) -> None:
        """Predict this bin from the last: noise decays towards each candidate's level (AR(1))."""
        assert self._last is not None
        then_s, streams0, y0, shares0, worth0 = self._last
        passed_s = at_s - then_s
        keep = math.exp(-passed_s / CORRELATION_S)
        fresh, weight = 1 - keep, worth / (1 - keep * keep)
        share_of_noise = 1 / weight + fresh * fresh / self._level_weight
        lacking = (1 - worth**0.25) ** 2 + (1 - worth0**0.25) ** 2
        misfit = (MISFIT * math.log2(streams / streams0)) ** 2 + RAMP_MISFIT**2 * lacking
        self._level_weight *= math.exp(-passed_s / FORGET_S)
        self._level_weight += weight * fresh * fresh
        gain = weight * fresh / self._level_weight
        change = y - keep * y0
        terms = zip(shares, shares0, self._levels, strict=True)
        errors = [change - share + keep * share0 - fresh * level for share, share0, level in terms]
        self._levels = [level + gain * e for level, e in zip(self._levels, errors, strict=True)]
        likely = self._learn_noise([e * e for e in errors], share_of_noise, misfit, passed_s)
        weights = _normal([w * a + 1e-300 for w, a in zip(self._weights, likely, strict=True)])
        changed = 1 - math.exp(-passed_s / CHANGES_S)
        mixed = zip(weights, self._prior(streams), strict=True)
        self._weights = [(1 - changed) * w + changed * p for w, p in mixed]

    def _learn_noise(
        self, squares: list[float], share_of_noise: float, misfit: float, passed_s: float
    ) -> list[float]:
        """Update the noise; return the likelihood of these squared errors for each candidate.

        `misfit` is the variance of the errors that are not noise.
        """
        likely = [0.0] * len(squares)
        seen = []
        remembered = math.exp(-passed_s / NOISE_FORGET_S)
        for (noise, _), share in zip(NOISES, self._noises, strict=True):
            variance = noise * noise * share_of_noise + misfit
            height, spread = share / math.sqrt(variance), TAIL * variance
            power = -(TAIL + 1) / 2
            these = [height * (1 + square / spread) ** power for square in squares]
            likely = list(map(add, likely, these))
            seen.append(_dot(self._weights, these) * share ** (remembered - 1))
        total = sum(seen)
        self._noises = _normal([each / total + NOISE_RETURNS for each in seen])
        return likely

    def hint(self, log_odds: Callable[[float, int], float]) -> None:
        """Add log-odds to every candidate by its knee and by the fewest streams that are good."""
        each = zip(self._weights, self._known.knees, self._known.ranges, strict=True)
        self._weights = _normal([w * math.exp(log_odds(knee, fewest)) for w, knee, (fewest, _) in each])

    def quantile(self, share: float) -> float:
        """Return the streams below which that share of the ends of the good ranges lies, by weight."""
        seen, goal = 0.0, 2 * share
        for n, i in self._ends:
            seen += self._weights[i]
            if seen >= goal:
                return float(n)
        return float(self._ends[-1][0])

    def target(self) -> int:
        """Return the streams that fit best."""
        return max(self._known.targets, key=self.fit)

    def fit(self, streams: int) -> float:
        """Return how well so many streams fit, 0 to 1: 1 inside the good range of all candidates."""
        return _dot(self._weights, self._known.fit(streams))

    def good(self, streams: int) -> float:
        """Return the probability that `streams` is in the good range."""
        x = math.log2(streams)
        pairs = zip(self._weights, self._known.octaves, strict=True)
        return sum(w for w, (low, high) in pairs if low - 1e-9 <= x <= high + 1e-9)

    def value(self, here: int, there: int, noise: float) -> float:
        """Return how much a trial of `there` streams shows about the direction from `here`: up, stay, down.

        It is the share of the variance of the direction that the result explains: the more, the better the
        candidates of one direction agree in the result that they predict, and the less the noise.
        """
        ours, theirs = self._known.log_shares(here), self._known.log_shares(there)
        ratios = [b - a for a, b in zip(ours, theirs, strict=True)]
        x = math.log2(here)
        steps = [max(-STEP_OCTAVES, min(STEP_OCTAVES, middle - x)) for middle in self._known.middles]
        weighed = list(map(mul, self._weights, ratios))
        ratio, step = sum(weighed), _dot(self._weights, steps)
        variance = _dot(weighed, ratios) - ratio * ratio
        covariance = _dot(weighed, steps) - ratio * step
        misfit = MISFIT * math.log2(there / here)
        return float(covariance**2 / (max(0.0, variance) + noise**2 + misfit**2))

    def surprise(self, at_s: float, streams: float, goodput_bps: float) -> tuple[float, float]:
        """Return the log of measured over predicted goodput, by the best candidate: level, last bin."""
        if self._last is None:
            return 0.0, 0.0
        then_s, _, y0, shares0, _ = self._last
        shares = self._known.log_shares(streams)
        off = math.log(goodput_bps) - shares[self._best] - self._levels[self._best]
        before = y0 - shares0[self._best] - self._levels[self._best]
        return off, off - math.exp(-(at_s - then_s) / CORRELATION_S) * before


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(map(mul, a, b), 0.0)


def _normal(weights: Sequence[float]) -> list[float]:
    total = sum(weights)
    return [w / total for w in weights]
