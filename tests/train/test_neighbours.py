"""Time warping: against the definition, and against tslearn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_train.paper import NEIGHBOURS
from tslearn.metrics import cdist_dtw
from tslearn.neighbors import KNeighborsTimeSeriesClassifier

from mpx.errors import UsageError
from mpx.ops_classifier import RADIUS, Classifier, NearestNeighbours
from mpx.recognition.dtw import distances
from mpx.recognition.mix import UNKNOWN
from mpx.recognition.observation import Own
from mpx.rtt.series import Probe


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
    ours = NearestNeighbours(known, mixes, k)
    assert ours.predict(asked).tolist() == theirs.predict(asked[:, :, None]).tolist()


def series_of(samples_ms: list[float | None]) -> list[Probe]:
    """Ten probes a second; None: nothing of that second was answered."""
    return [
        Probe(second + tenth / 10 - 0.45, None if ms is None else ms / 1e3)
        for second, ms in enumerate(samples_ms)
        for tenth in range(10)
    ]


KNOWN = NearestNeighbours(
    np.array([[10.0] * 5, [11.0] * 5, [30.0] * 5, [50.0, 20.0] * 2 + [50.0]]),
    np.array(["none", "none", "C", "BC"]),
    k=3,
)


def test_the_end_of_a_series_is_classified_by_votes() -> None:
    classifier: Classifier = KNOWN
    assert classifier.window_s("passive") == 5.0
    said = classifier.classify(series_of([90.0] * 20 + [10.5] * 6), 0.01)
    assert (said.name, said.probability) == ("none", pytest.approx(2 / 3))
    assert said.groups == pytest.approx({"none": 2 / 3, "cubic only": 1 / 3, "any bbr": 0.0})
    nearest = NearestNeighbours(KNOWN.windows_ms, KNOWN.mixes)
    assert nearest.classify(series_of([49.0, 21.0, 49.0, None, 20.0, 50.0]), 0.01).name == "BC"


@pytest.mark.parametrize("samples", [[10.0] * 3, [10.0] * 4 + [None] * 6, [None] * 9, []])
def test_too_few_samples_are_unknown(samples: list[float | None]) -> None:
    assert KNOWN.classify(series_of(samples), 0.01).name == UNKNOWN


def test_nearest_neighbours_know_passive_series_only() -> None:
    with pytest.raises(UsageError, match="'active'"):
        KNOWN.window_s("active")
    for own in ({"own": Own("cubic", 1)}, {"goodput": [(0.0, 1e6)]}):
        with pytest.raises(UsageError, match="data of our own"):
            KNOWN.classify(series_of([10.0] * 6), 0.01, **own)
