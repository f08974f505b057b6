"""An ensemble of decision trees as arrays: classifies a row of numbers. A model contains no code.

The nodes of all trees lie one after the other. An inner node goes to the next node where its feature is at
most its threshold, and else to the node its `right` names, which lies further on in the same tree: so every
path ends. A leaf has the feature -1, and its `right` names a row of `counts`: how many examples of each class
ended there in training; leaves with the same counts share a row. The result of the ensemble is the mean,
over trees, of the shares in the leaves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpx.recognition.windows import Floats

LEAF = -1


@dataclass(frozen=True)
class Trees:
    """All trees of an ensemble. Raises ValueError for arrays that are not valid."""

    roots: NDArray[np.int32]  # where each tree begins
    feature: NDArray[np.int16]  # of each node
    threshold: NDArray[np.float32]
    right: NDArray[np.int32]
    counts: NDArray[np.uint16]  # a row for each that leaves have, a column for each class

    def __post_init__(self) -> None:
        nodes, leaves = len(self.feature), len(self.counts)
        if not len(self.threshold) == len(self.right) == nodes:
            raise ValueError("the arrays of the nodes differ in length")
        if not len(self.roots) or self.roots[0] != 0 or np.any(np.diff(self.roots) <= 0):
            raise ValueError("the trees do not begin one after the other")
        if self.roots[-1] >= nodes:
            raise ValueError("a tree has no nodes")
        is_leaf = self.feature == LEAF
        if np.any(self.feature < LEAF) or not np.isfinite(self.threshold).all():
            raise ValueError("a node has no such feature, or a threshold that is not a finite number")
        ends = np.append(self.roots[1:], nodes)
        end_of = np.repeat(ends, np.diff(np.append(self.roots, nodes)))
        inner = np.flatnonzero(~is_leaf)
        if np.any(self.right[inner] <= inner + 1) or np.any(self.right[inner] >= end_of[inner]):
            raise ValueError("a node refers to one outside its tree, or before it")
        if np.any(self.right[is_leaf] < 0) or np.any(self.right[is_leaf] >= leaves):
            raise ValueError("a leaf has no counts")
        if np.any(self.counts.sum(axis=1) == 0):
            raise ValueError("a leaf has no examples")

    @property
    def features(self) -> int:
        """How many numbers a row must have at least."""
        return int(np.max(self.feature)) + 1

    def leaves(self, row: Floats) -> NDArray[np.int32]:
        """Return in which leaf of each tree a row of numbers ends; a row of `counts` each."""
        exact = row.astype(np.float32)  # as the trees were grown
        at = self.roots.copy()
        feature = self.feature[at]
        walking = np.flatnonzero(feature != LEAF)
        while len(walking):
            here = at[walking]
            goes_left = exact[feature[walking]] <= self.threshold[here]
            here = np.where(goes_left, here + 1, self.right[here])
            at[walking] = here
            feature[walking] = self.feature[here]
            walking = walking[feature[walking] != LEAF]
        return self.right[at]

    def shares(self, row: Floats) -> Floats:
        """Return the share of each class, the mean over trees; they sum to 1."""
        counts = self.counts[self.leaves(row)].astype(np.float64)
        return np.asarray((counts / counts.sum(axis=1, keepdims=True)).mean(axis=0))
