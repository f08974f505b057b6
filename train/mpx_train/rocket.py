"""MiniROCKET: how often a series matches each of many small patterns (Dempster, Schmidt, Webb, KDD 2021).

The 84 patterns of nine steps have the weights -1 and, at three places, 2. They are laid over a series with
gaps of 1, 2, 4, ... steps; a number is the share of places where the match exceeds a bias, and biases are
quantiles of the matches of series that are learnt from. As published: half of the numbers without padding.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LENGTH = 9
PATTERNS = tuple(combinations(range(LENGTH), 3))
GOLDEN = (np.sqrt(5) + 1) / 2


@dataclass(frozen=True)
class Rocket:
    """The gaps and the biases of each pattern at each gap."""

    gaps: tuple[int, ...]
    biases: Floats  # gaps, patterns, biases of each

    @classmethod
    def fit(cls, series: Floats, numbers: int, dice: np.random.Generator) -> "Rocket":
        """Choose gaps and biases for series (rows) such that there are about so many numbers."""
        steps = series.shape[1]
        most = int(np.log2(max(1, (steps - 1) // (LENGTH - 1))))
        gaps = tuple(2**power for power in range(most + 1))
        each = max(1, numbers // (len(PATTERNS) * len(gaps)))
        shares = (np.arange(1, each + 1) * GOLDEN) % 1
        biases = np.empty((len(gaps), len(PATTERNS), each))
        for g, gap in enumerate(gaps):
            for p, matches in enumerate(_matches(series[dice.integers(0, len(series), 8)], gap)):
                biases[g, p] = np.quantile(matches, shares)
        return cls(gaps, biases)

    def transform(self, series: Floats) -> Floats:
        """Return a row of numbers for each series."""
        found = []
        for g, gap in enumerate(self.gaps):
            edge = (LENGTH // 2) * gap
            for p, matches in enumerate(_matches(series, gap)):
                part = matches if p % 2 else matches[:, edge:-edge]
                found += [(part > bias).mean(axis=1) for bias in self.biases[g, p]]
        return np.stack(found, axis=1)


def _matches(series: Floats, gap: int) -> list[Floats]:
    """Return for each pattern how well it matches at each place; beyond the ends is nothing."""
    edge = (LENGTH // 2) * gap
    padded = np.pad(series, ((0, 0), (edge, edge)))
    steps = series.shape[1]
    shifted = [padded[:, place * gap : place * gap + steps] for place in range(LENGTH)]
    all_minus = -np.sum(shifted, axis=0)
    return [all_minus + 3 * (shifted[i] + shifted[j] + shifted[k]) for i, j, k in PATTERNS]
