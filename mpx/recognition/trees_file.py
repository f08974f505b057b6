"""Trees in the arrays of a model on disk, where they take a third of the room that they take in memory.

Inner nodes have a threshold and how many nodes further on the right one is, leaves a row of `counts`: all in
the order of the nodes. Thresholds have 16 bits, as they are trained.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpx.recognition.trees import LEAF, Trees

FILED = {"roots": "<i4", "feature": "<i2", "threshold": "<f2", "right": "<i4", "leaf": "<u2", "counts": "<u2"}


def filed(trees: Trees) -> dict[str, NDArray[Any]]:
    """Return the arrays of FILED; raises ValueError where a number of the trees does not fit."""
    is_leaf = trees.feature == LEAF
    inner = np.flatnonzero(~is_leaf)
    found = {
        "roots": trees.roots,
        "feature": trees.feature,
        "threshold": trees.threshold[inner],
        "right": trees.right[inner] - inner,
        "leaf": trees.right[is_leaf],
        "counts": trees.counts,
    }
    as_filed = {name: found[name].astype(kind) for name, kind in FILED.items()}
    if any(np.any(as_filed[name] != found[name]) for name in FILED):
        raise ValueError("a threshold of the trees has more than 16 bits, or a leaf a row above 65535")
    return as_filed


def trees_of(arrays: Mapping[str, NDArray[Any]]) -> Trees:
    """Return the trees of arrays of the types of FILED; raises ValueError where they are not valid."""
    is_leaf = arrays["feature"] == LEAF
    inner = np.flatnonzero(~is_leaf)
    if not len(arrays["threshold"]) == len(arrays["right"]) == len(inner):
        raise ValueError("the inner nodes of the trees differ in number")
    if len(arrays["leaf"]) != len(is_leaf) - len(inner):
        raise ValueError("the leaves of the trees differ in number")
    threshold = np.zeros(len(is_leaf), "<f4")
    threshold[inner] = arrays["threshold"]
    right = np.zeros(len(is_leaf), "<i8")
    right[inner] = inner + arrays["right"]
    right[is_leaf] = arrays["leaf"]
    right = np.clip(right, -1, 2**31 - 1)  # beyond all nodes: no tree has such a one
    return Trees(arrays["roots"], arrays["feature"], threshold, right.astype("<i4"), arrays["counts"])
