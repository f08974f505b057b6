"""The network of OPS: two hidden layers, then a number for each class.

Anvari and Lu, Computers 10(6):76, 2021, section 5.4: 64 nodes in each hidden layer, six classes. A hidden
layer is max(0, x W + b) (ReLU), the last is x W + b, whose softmax are the shares of the classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from mpx.recognition.windows import Floats


@dataclass(frozen=True)
class Network:
    """Weights: a row for each input, a column for each output. Raises ValueError where they do not fit."""

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats
    last: Floats
    last_bias: Floats
    DIMENSIONS: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"first": 2, "first_bias": 1, "second": 2, "second_bias": 1, "last": 2, "last_bias": 1}
    )

    def __post_init__(self) -> None:
        layers = (
            (self.first, self.first_bias),
            (self.second, self.second_bias),
            (self.last, self.last_bias),
        )
        inputs = self.inputs
        for weights, bias in layers:
            if weights.shape != (inputs, len(bias)):
                raise ValueError(f"a layer of the network is {weights.shape}, not {(inputs, len(bias))}")
            inputs = len(bias)

    @property
    def inputs(self) -> int:
        """How many numbers a row has."""
        return len(self.first)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.last_bias)

    def scores(self, row: Floats) -> Floats:
        """Return a score of each class, whose softmax are shares."""
        hidden = np.maximum(0.0, row @ self.first + self.first_bias)
        hidden = np.maximum(0.0, hidden @ self.second + self.second_bias)
        return np.asarray(hidden @ self.last + self.last_bias)
