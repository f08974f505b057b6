"""Time warping: against the definition, and against tslearn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_train.dtw import distances
from mpx_train.paper import NEIGHBOURS, RADIUS, vote
from tslearn.metrics import cdist_dtw
from tslearn.neighbors import KNeighborsTimeSeriesClassifier


def by_definition(a: list[float], b: list[float], radius: int) -> float:
    """The least cost over all paths, tried one by one."""

    def least(i: int, j: int) -> float:
        if abs(i - j) > radius:
            return math.inf
        cost = (a[i] - b[j]) ** 2
        if not i and not j:
            return cost
        ways = [(i - 1, j), (i, j - 1), (i - 1, j - 1)]
        return cost + min(least(*way) for way in ways if min(way) >= 0)

    return math.sqrt(least(len(a) - 1, len(b) - 1))


values = st.floats(-100, 100)
pairs = st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(values, min_size=n, max_size=n)] * 2))


@given(pairs, st.integers(1, 6))
def test_it_is_the_cheapest_path(pair: tuple[list[float], list[float]], radius: int) -> None:
    a, b = pair
    found = distances(np.array([a]), np.array([b]), radius)[0, 0]
    assert found == pytest.approx(by_definition(a, b, radius), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("steps", [5, 10, 40, 60])
def test_as_tslearn_has_it(steps: int) -> None:
    dice = np.random.default_rng(steps)
    some, others = dice.normal(size=(7, steps)), dice.normal(size=(11, steps))
    theirs = cdist_dtw(some, others, global_constraint="sakoe_chiba", sakoe_chiba_radius=RADIUS)
    assert distances(some, others, RADIUS) == pytest.approx(theirs, abs=1e-9)


def test_many_pairs_are_each_their_own() -> None:
    """More than fit into one block."""
    dice = np.random.default_rng(1)
    some, others = dice.normal(size=(5, 8)), dice.normal(size=(9000, 8))
    found = distances(some, others, 3)
    for i, j in ((0, 0), (4, 8999), (2, 8192), (3, 8191)):
        assert found[i, j] == distances(some[i : i + 1], others[j : j + 1], 3)[0, 0]


@pytest.mark.parametrize("k", NEIGHBOURS)
def test_votes_as_tslearn_counts_them(k: int) -> None:
    dice = np.random.default_rng(k)
    known, asked = dice.normal(size=(60, 10)), dice.normal(size=(30, 10))
    mixes = dice.choice(["none", "C", "BC"], 60)
    settings = {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": RADIUS}
    theirs = KNeighborsTimeSeriesClassifier(n_neighbors=k, metric="dtw", metric_params=settings)
    theirs.fit(known[:, :, None], mixes)
    ours = vote(distances(asked, known, RADIUS), mixes, k)
    assert ours.tolist() == theirs.predict(asked[:, :, None]).tolist()
