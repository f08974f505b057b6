"""Grows extra trees and turns them into the arrays that mpx reads (mpx/recognition/trees.py)."""

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier

from mpx.recognition.mix import MIXES
from mpx.recognition.neighbours import Texts
from mpx.recognition.trees import LEAF, Trees
from mpx.recognition.windows import Floats

OUTSIDE = "outside"  # the class of traffic that is none of the mixes
CLASSES = (*MIXES, OUTSIDE)
LARGEST_COUNT = 2**16 - 1
LARGEST_THRESHOLD = 65_000.0  # near the largest number of 16 bits


def grow(rows: Floats, classes: Texts, trees: int, least_in_leaf: int, features: float, seed: int) -> Trees:
    """Grow trees over rows of features; `features` is the share of them that a node may choose from."""
    numbers = np.array([CLASSES.index(name) for name in classes])
    forest = ExtraTreesClassifier(
        trees, min_samples_leaf=least_in_leaf, max_features=features, n_jobs=-1, random_state=seed
    )
    return as_arrays(forest.fit(rows, numbers))


def as_arrays(forest: ExtraTreesClassifier) -> Trees:
    """Return a forest of scikit-learn, whose classes are numbers of CLASSES, as arrays.

    scikit-learn grows each tree depth first, left before right, and compares with 64-bit thresholds. Here the
    next lower 16-bit one decides: what ends at another leaf by that is as near to the threshold as noise.
    """
    roots, feature, threshold, right, counts = [], [], [], [], []
    nodes = leaves = 0
    for grown in forest.estimators_:
        tree = grown.tree_
        is_leaf = tree.children_left < 0
        inner = np.flatnonzero(~is_leaf)
        if np.any(tree.children_left[inner] != inner + 1):
            raise RuntimeError("this version of scikit-learn orders the nodes of a tree in another way")
        exact = np.clip(tree.threshold, -LARGEST_THRESHOLD, LARGEST_THRESHOLD)
        lower = exact.astype(np.float16)
        lower = np.where(lower > exact, np.nextafter(lower, np.float16(-np.inf)), lower)
        ended = np.zeros((int(is_leaf.sum()), len(CLASSES)))
        ended[:, forest.classes_] = tree.value[is_leaf, 0] * tree.weighted_n_node_samples[is_leaf, None]
        roots.append(nodes)
        feature.append(np.where(is_leaf, LEAF, tree.feature))
        threshold.append(np.where(is_leaf, np.float16(0), lower))
        right.append(np.where(is_leaf, leaves + np.cumsum(is_leaf) - 1, nodes + tree.children_right))
        counts.append(np.rint(ended))
        nodes += tree.node_count
        leaves += len(ended)
    if max(of.max() for of in counts) > LARGEST_COUNT:
        raise ValueError(f"a leaf holds over {LARGEST_COUNT} examples; grow deeper trees")
    features = np.concatenate(feature).astype("<i2")
    rows, found = _shared_rows(np.concatenate(counts).astype("<u2"))
    rights = np.concatenate(right).astype("<i4")
    is_leaf = features == LEAF
    rights[is_leaf] = found[rights[is_leaf]]
    return Trees(
        np.array(roots, dtype="<i4"), features, np.concatenate(threshold).astype("<f4"), rights, rows
    )


def _shared_rows(counts: NDArray[np.uint16]) -> tuple[NDArray[np.uint16], NDArray[np.intp]]:
    """Return the different rows, those that most leaves have first, and which of them each row is."""
    rows, which, leaves = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-leaves, kind="stable")
    return rows[order], np.argsort(order)[which.ravel()]


def shares_of(trees: Trees, rows: Floats) -> Floats:
    """Return what the trees say of each of many rows."""
    return np.stack([trees.shares(row) for row in rows])
