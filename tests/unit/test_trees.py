"""Trees as arrays: as scikit-learn walks them, and nothing but trees."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpx_train.forest import CLASSES, as_arrays, grow, shares_of
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from mpx.recognition.trees import LEAF, Trees


def some_rows(count: int, features: int = 9) -> np.ndarray:
    """Coarse values, so that many are exactly a threshold or near one."""
    return np.round(np.random.default_rng(count).normal(size=(count, features)), 2)


@pytest.mark.parametrize("kind", [ExtraTreesClassifier, RandomForestClassifier])
@pytest.mark.parametrize("least", [1, 4])
def test_they_say_what_scikit_learn_says(kind: type, least: int) -> None:
    rows, classes = some_rows(500), np.random.default_rng(7).integers(0, len(CLASSES), 500)
    forest = kind(30, min_samples_leaf=least, random_state=1).fit(rows, classes)
    for grown in forest.estimators_:  # ours have 16 bits, of which the lower one decides
        exact = grown.tree_.threshold
        near = exact.astype(np.float16).astype(np.float64)
        exact[:] = np.where(near > exact, np.nextafter(near.astype(np.float16), np.float16(-np.inf)), near)
    asked = np.concatenate([rows, some_rows(300), some_rows(200) * 1e6])
    assert shares_of(as_arrays(forest), asked) == pytest.approx(forest.predict_proba(asked), abs=1e-9)


def test_a_class_that_was_not_learnt_has_no_share() -> None:
    rows, classes = some_rows(100), np.array(["C", "BB"] * 50)
    shares = shares_of(grow(rows, classes, 10, 2, 0.5, seed=1), rows)
    assert shares.shape == (100, len(CLASSES))
    assert shares.sum(axis=1) == pytest.approx(np.ones(100))
    assert shares[:, [CLASSES.index("C"), CLASSES.index("BB")]].sum() == pytest.approx(100)


def test_the_same_seed_grows_the_same_trees() -> None:
    rows, classes = some_rows(100), np.random.default_rng(1).choice(CLASSES, 100)
    first, again, other = (grow(rows, classes, 5, 2, 0.5, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(getattr(first, name), getattr(again, name)) for name in vars(first))
    assert not np.array_equal(first.threshold, other.threshold)


def stump(**other: object) -> Trees:
    """Two trees: one that asks once, and one that is a leaf."""
    plain = {
        "roots": np.array([0, 3], dtype="<i4"),
        "feature": np.array([1, LEAF, LEAF, LEAF], dtype="<i2"),
        "threshold": np.array([0.5, 0, 0, 0], dtype="<f4"),
        "right": np.array([2, 0, 1, 2], dtype="<i4"),
        "counts": np.array([[3, 1], [0, 4], [2, 2]], dtype="<u2"),
    }
    return Trees(**{**plain, **other})  # type: ignore[arg-type]


def test_a_walk_by_hand() -> None:
    assert stump().shares(np.array([9.0, 0.5])).tolist() == [(0.75 + 0.5) / 2, (0.25 + 0.5) / 2]
    assert stump().shares(np.array([9.0, 0.6])).tolist() == [(0.0 + 0.5) / 2, (1.0 + 0.5) / 2]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"threshold": np.zeros(3, dtype="<f4")}, "differ in length"),
        ({"roots": np.array([], dtype="<i4")}, "do not begin"),
        ({"roots": np.array([1, 3], dtype="<i4")}, "do not begin"),
        ({"roots": np.array([0, 0], dtype="<i4")}, "do not begin"),
        ({"roots": np.array([0, 4], dtype="<i4")}, "no nodes"),
        ({"feature": np.array([-2, LEAF, LEAF, LEAF], dtype="<i2")}, "no such feature"),
        ({"threshold": np.array([np.nan, 0, 0, 0], dtype="<f4")}, "finite number"),
        ({"right": np.array([0, 0, 1, 2], dtype="<i4")}, "one outside its tree, or before it"),
        ({"right": np.array([1, 0, 1, 2], dtype="<i4")}, "one outside its tree, or before it"),
        ({"right": np.array([3, 0, 1, 2], dtype="<i4")}, "one outside its tree, or before it"),
        ({"right": np.array([2, 0, 3, 2], dtype="<i4")}, "no counts"),
        ({"right": np.array([2, -1, 1, 2], dtype="<i4")}, "no counts"),
        ({"counts": np.array([[3, 1], [0, 0], [2, 2]], dtype="<u2")}, "no examples"),
    ],
)
def test_what_is_no_tree_is_refused(other: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        stump(**other)


@settings(max_examples=200)
@given(st.data())
def test_whatever_is_accepted_can_be_walked(data: st.DataObject) -> None:
    """Any arrays at all: refused, or every walk ends with shares that sum to 1."""
    base = grow(some_rows(60), np.random.default_rng(1).choice(CLASSES, 60), 3, 3, 0.5, seed=1)
    name = data.draw(st.sampled_from(["roots", "feature", "threshold", "right", "counts"]))
    array = getattr(base, name).copy()
    place = data.draw(st.integers(0, array.size - 1))
    limits = (-40, 200) if array.dtype.kind == "i" else (0, 200)
    array.flat[place] = data.draw(st.integers(*limits))
    try:
        damaged = replace(base, **{name: array})
    except ValueError:
        return
    row = np.zeros(max(damaged.features, 9))
    assert damaged.shares(row).sum() == pytest.approx(1)
