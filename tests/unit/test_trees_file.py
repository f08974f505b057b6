"""Trees on disk: as they are in memory, and refused where they would not be the same or fit nowhere."""

from dataclasses import fields, replace

import numpy as np
import pytest
from mpx_train.forest import CLASSES, grow

from mpx.recognition.trees import Trees
from mpx.recognition.trees_file import FILED, filed, trees_of


@pytest.fixture(scope="module")
def trees() -> Trees:
    dice = np.random.default_rng(5)
    return grow(dice.normal(size=(300, 7)), dice.choice(CLASSES, 300), 8, 2, 0.5, seed=1)


def test_what_was_filed_is_read(trees: Trees) -> None:
    arrays = filed(trees)
    assert {name: array.dtype.str for name, array in arrays.items()} == FILED
    read = trees_of(arrays)
    for field in fields(Trees):
        assert np.array_equal(getattr(read, field.name), getattr(trees, field.name)), field.name


def test_leaves_with_the_same_counts_share_a_row(trees: Trees) -> None:
    assert len(np.unique(trees.counts, axis=0)) == len(trees.counts) < (trees.feature < 0).sum()


def test_a_threshold_of_more_bits_is_not_filed(trees: Trees) -> None:
    finer = np.where(trees.feature < 0, trees.threshold, trees.threshold + np.float32(1e-6))
    with pytest.raises(ValueError, match="more than 16 bits"):
        filed(replace(trees, threshold=finer))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("threshold", lambda array: array[1:], "inner nodes"),
        ("right", lambda array: array[1:], "inner nodes"),
        ("leaf", lambda array: array[1:], "leaves"),
        ("right", lambda array: np.full_like(array, 2**31 - 1), "outside its tree"),
        ("right", lambda array: np.full_like(array, -(2**31)), "outside its tree"),
        ("leaf", lambda array: np.full_like(array, 2**16 - 1), "no counts"),
    ],
)
def test_what_fits_nowhere_is_refused(trees: Trees, name: str, change: object, said: str) -> None:
    arrays = filed(trees)
    with pytest.raises(ValueError, match=said):
        trees_of({**arrays, name: change(arrays[name])})  # type: ignore[operator]
