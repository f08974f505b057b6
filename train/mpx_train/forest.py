"""Grows extra trees and turns them into the arrays that mpx reads (mpx/recognition/trees.py)."""

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from mpx.recognition.mix import MIXES
from mpx.recognition.neighbours import Texts
from mpx.recognition.trees import LEAF, Trees
from mpx.recognition.windows import Floats

OUTSIDE = "outside"  # the class of traffic that is none of the mixes
CLASSES = (*MIXES, OUTSIDE)
LARGEST_COUNT = 2**16 - 1


def grow(rows: Floats, classes: Texts, trees: int, least_in_leaf: int, features: float, seed: int) -> Trees:
    """Grow trees over rows of features; `features` is the share of them that a node may choose from."""
    numbers = np.array([CLASSES.index(name) for name in classes])
    forest = ExtraTreesClassifier(
        trees, min_samples_leaf=least_in_leaf, max_features=features, n_jobs=-1, random_state=seed
    )
    return as_arrays(forest.fit(rows, numbers))


def as_arrays(forest: ExtraTreesClassifier) -> Trees:
    """Return a forest of scikit-learn, whose classes are numbers of CLASSES, as arrays.

    scikit-learn grows each tree depth first, left before right, and compares 32-bit features with 64-bit
    thresholds; the next lower 32-bit threshold decides the same.
    """
    roots, feature, threshold, right, counts = [], [], [], [], []
    nodes = leaves = 0
    for grown in forest.estimators_:
        tree = grown.tree_
        is_leaf = tree.children_left < 0
        inner = np.flatnonzero(~is_leaf)
        if np.any(tree.children_left[inner] != inner + 1):
            raise RuntimeError("this version of scikit-learn orders the nodes of a tree in another way")
        lower = tree.threshold.astype(np.float32)
        lower = np.where(lower > tree.threshold, np.nextafter(lower, np.float32(-np.inf)), lower)
        ended = np.zeros((int(is_leaf.sum()), len(CLASSES)))
        ended[:, forest.classes_] = tree.value[is_leaf, 0] * tree.weighted_n_node_samples[is_leaf, None]
        roots.append(nodes)
        feature.append(np.where(is_leaf, LEAF, tree.feature))
        threshold.append(np.where(is_leaf, np.float32(0), lower))
        right.append(np.where(is_leaf, leaves + np.cumsum(is_leaf) - 1, nodes + tree.children_right))
        counts.append(np.rint(ended))
        nodes += tree.node_count
        leaves += len(ended)
    if max(of.max() for of in counts) > LARGEST_COUNT:
        raise ValueError(f"a leaf holds over {LARGEST_COUNT} examples; grow deeper trees")
    return Trees(
        np.array(roots, dtype="<i4"),
        np.concatenate(feature).astype("<i2"),
        np.concatenate(threshold).astype("<f4"),
        np.concatenate(right).astype("<i4"),
        np.concatenate(counts).astype("<u2"),
    )


def shares_of(trees: Trees, rows: Floats) -> Floats:
    """Return what the trees say of each of many rows."""
    return np.stack([trees.shares(row) for row in rows])
