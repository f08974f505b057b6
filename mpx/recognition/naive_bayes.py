"""Gaussian naive Bayes: of each class every number is normally distributed by itself.

As scikit-learn's GaussianNB, whose defaults OPS has (Anvari and Lu, Computers 10(6):76, 2021, section 5.4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from mpx.recognition.windows import Floats


@dataclass(frozen=True)
class NaiveBayes:
    """The distributions of the classes. Raises ValueError for arrays that do not fit."""

    means: Floats  # a row for each class, a column for each number
    variances: Floats
    priors: Floats  # the share of each class
    DIMENSIONS: ClassVar[Mapping[str, int]] = MappingProxyType({"means": 2, "variances": 2, "priors": 1})

    def __post_init__(self) -> None:
        if not self.means.shape == self.variances.shape == (len(self.priors), self.inputs):
            raise ValueError(f"means are {self.means.shape}, variances {self.variances.shape}")
        if np.any(self.variances <= 0) or np.any(self.priors <= 0):
            raise ValueError("a variance, or the share of a class, is not above zero")

    @property
    def inputs(self) -> int:
        """How many numbers a row has."""
        return int(self.means.shape[1])

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.priors)

    def scores(self, row: Floats) -> Floats:
        """Return the logarithm of how likely each class and this row are together."""
        off = (row - self.means) ** 2 / self.variances + np.log(2 * np.pi * self.variances)
        return np.asarray(np.log(self.priors) - off.sum(axis=1) / 2)
