"""What is computed from series of goodput."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpx_lab.series import Sample, bytes_between, goodput_bps, jain, quantile, resample

SERIES = [Sample(1.0, 0), Sample(1.1, 1000), Sample(1.2, 3000), Sample(1.4, 0), Sample(1.5, 500)]


@st.composite
def series(draw: st.DrawFn) -> list[Sample]:
    start_s = draw(st.floats(0, 1000))
    steps = draw(st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 10**9)), max_size=30))
    made = [Sample(start_s, 0)]
    for step_s, size in steps:
        made.append(Sample(made[-1].t_s + step_s, size))
    return made


@pytest.mark.parametrize(
    ("begin_s", "end_s", "expected"),
    [
        (0, 9, 4500),
        (1.1, 1.2, 3000),
        (1.15, 1.2, 1500),
        (1.05, 1.15, 2000),
        (1.2, 1.4, 0),
        (2, 3, 0),
        (1.1, 1.1, 0),
    ],
)
def test_bytes_between(begin_s: float, end_s: float, expected: float) -> None:
    assert math.isclose(bytes_between(SERIES, begin_s, end_s), expected, abs_tol=1e-6)


def test_goodput_and_resample() -> None:
    assert math.isclose(goodput_bps(SERIES, 1.0, 1.5), 72_000)
    assert resample(SERIES, 1.0, 1.5, 0.1) == pytest.approx([80_000, 240_000, 0, 0, 40_000], abs=1e-3)
    assert resample(SERIES, 1.0, 1.49, 0.2) == pytest.approx([160_000, 0], abs=1e-3)
    assert resample([], 0, 1, 0.5) == [0, 0]
    for wrong in (lambda: goodput_bps(SERIES, 2, 2), lambda: resample(SERIES, 0, 1, 0)):
        with pytest.raises(ValueError):
            wrong()


@given(series(), st.floats(0, 1200), st.floats(0, 1200), st.floats(0, 1200))
def test_parts_add_up_to_the_whole(made: list[Sample], a: float, b: float, c: float) -> None:
    begin, middle, end = sorted((a, b, c))
    parts = bytes_between(made, begin, middle) + bytes_between(made, middle, end)
    assert math.isclose(parts, bytes_between(made, begin, end), rel_tol=1e-9, abs_tol=1e-3)


@given(series())
def test_nothing_is_lost_over_all_of_it(made: list[Sample]) -> None:
    total = sum(sample.size_bytes for sample in made)
    assert math.isclose(bytes_between(made, made[0].t_s - 1, made[-1].t_s + 1), total, rel_tol=1e-9)


shares = st.lists(st.floats(0, 1e12), min_size=1, max_size=50)


@given(shares)
def test_jain_lies_between_one_nth_and_one(made: list[float]) -> None:
    assert 1 / len(made) - 1e-9 <= jain(made) <= 1 + 1e-9


@given(shares, st.floats(1e-6, 1e6))
def test_jain_does_not_depend_on_the_unit(made: list[float], factor: float) -> None:
    assume(min((share for share in made if share), default=1) > 1e-200)
    assert math.isclose(jain([share * factor for share in made]), jain(made), rel_tol=1e-6)


def test_jain_known() -> None:
    assert jain([5, 5, 5]) == 1
    assert jain([9, 0, 0]) == pytest.approx(1 / 3)
    assert jain([0, 0]) == 1
    assert jain([415, 75.6]) == pytest.approx(0.676, abs=5e-4)
    for wrong in ([], [1, -1]):
        with pytest.raises(ValueError):
            jain(wrong)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1), st.floats(0, 1))
def test_quantile(values: list[float], share: float) -> None:
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6
    assert quantile(values, 0) == min(values)
    assert quantile(values, 1) == max(values)
