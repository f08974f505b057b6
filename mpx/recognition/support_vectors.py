"""Support vectors with a Gaussian kernel (RBF): a line between each two classes, and a vote of all lines.

As scikit-learn's SVC, whose defaults OPS has (Anvari and Lu, Computers 10(6):76, 2021, section 5.4). One of
its defaults is not taken: classes with as many votes are told apart by how clear they are (`break_ties`), not
by their order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from mpx.recognition.windows import Floats


@dataclass(frozen=True)
class SupportVectors:
    """The lines between classes. Raises ValueError for arrays that do not fit."""

    vectors: Floats  # a row of numbers each
    weights: Floats  # a row for each two classes, 0 1, 0 2 and so on, a column for each vector
    intercepts: Floats  # one for each two classes
    gamma: Floats  # of the kernel exp(-gamma |x - y|^2): a single number
    DIMENSIONS: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"vectors": 2, "weights": 2, "intercepts": 1, "gamma": 1}
    )

    def __post_init__(self) -> None:
        pairs, classes = len(self.intercepts), self.classes
        if self.weights.shape != (pairs, len(self.vectors)) or pairs != classes * (classes - 1) // 2:
            raise ValueError(f"{pairs} lines between classes have {self.weights.shape} weights")
        if self.gamma.shape != (1,) or self.gamma[0] <= 0:
            raise ValueError("gamma is not a number above zero")

    @property
    def inputs(self) -> int:
        """How many numbers a row has."""
        return int(self.vectors.shape[1])

    @property
    def classes(self) -> int:
        """How many classes there are: n of them have n (n - 1) / 2 lines."""
        return int((1 + np.sqrt(1 + 8 * len(self.intercepts))) // 2)

    def scores(self, row: Floats) -> Floats:
        """Return the votes of each class, and less than a vote for how clear they are."""
        kernel = np.exp(-self.gamma[0] * ((self.vectors - row) ** 2).sum(axis=1))
        lines = self.weights @ kernel + self.intercepts
        votes, clear = np.zeros((2, self.classes))
        for line, (one, other) in zip(lines, combinations(range(self.classes), 2), strict=True):
            votes[one if line > 0 else other] += 1
            clear[one] += line
            clear[other] -= line
        return np.asarray(votes + clear / (3 * (np.abs(clear) + 1)))
