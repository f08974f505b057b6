"""Series of round-trip times against what is told by hand, and against properties of any series."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.rtt.series import Probe, p99, resampled, summary

TIMES = st.floats(0, 100)
RTTS = st.none() | st.floats(1e-6, 10)
SERIES = st.lists(st.builds(Probe, TIMES, RTTS), max_size=60)


def at(step_s: float, *rtts: float | None) -> list[Probe]:
    return [Probe(5 + i * step_s, rtt) for i, rtt in enumerate(rtts)]


def test_the_figures_of_a_series() -> None:
    told = summary(at(0.1, 0.030, 0.010, None, 0.020, 0.022))
    assert (told.sent, told.lost, told.loss) == (5, 1, 0.2)
    assert (told.min_s, told.median_s, told.p99_s) == (0.010, pytest.approx(0.021), 0.030)
    assert told.jitter_s == pytest.approx((0.020 + 0.002) / 2)  # not over the one that was lost


def test_one_slow_probe_of_two_hundred_is_beyond_the_99th_of_a_hundred() -> None:
    fast = [0.01] * 199
    assert summary(at(0.1, *fast, 0.5)).p99_s == 0.01
    assert summary(at(0.1, *fast[:98], 0.5, 0.5)).p99_s == 0.5
    assert summary(at(0.1, *fast[:99], 0.5)).p99_s == 0.01


def test_where_nothing_came_back() -> None:
    told = summary(at(0.1, None, None))
    assert (told.sent, told.lost, told.loss) == (2, 2, 1.0)
    assert (told.min_s, told.median_s, told.p99_s, told.jitter_s) == (None, None, None, None)
    assert summary([]).loss == 0.0
    assert resampled([], 0.1) == []
    with pytest.raises(ValueError, match="no values"):
        p99([])


def test_steps_lie_around_the_first_probe() -> None:
    probes = [Probe(1.0, 1), Probe(1.14, 2), Probe(1.06, 4), Probe(1.31, 7), Probe(1.2, None)]
    assert resampled(probes, 0.1) == [1, 3, None, 7]


def test_a_train_is_one_sample_of_its_second() -> None:
    """However late its later probes left, and also where the whole train before it did not leave at all."""
    train = [Probe(3 + i / 1000, 0.01 * i if i < 9 else None) for i in range(10)]
    held_up = [Probe(5 + i / 20, 0.02) for i in range(10)]
    lost = [Probe(6.0, None), Probe(6.001, None)]
    assert resampled([*lost, *train, *held_up], 1.0) == [pytest.approx(0.04), None, pytest.approx(0.02), None]


@given(SERIES, st.randoms())
def test_the_order_in_which_answers_came_does_not_count(series: list[Probe], chance) -> None:
    series = list({probe.t_s: probe for probe in series}.values())
    mixed = series[:]
    chance.shuffle(mixed)
    assert summary(mixed) == summary(series)
    assert resampled(mixed, 0.5) == resampled(series, 0.5)


@given(SERIES)
def test_figures_agree_with_each_other(series: list[Probe]) -> None:
    told = summary(series)
    assert 0 <= told.lost <= told.sent == len(series)
    assert 0 <= told.loss <= 1
    if told.min_s is None:
        assert told.lost == told.sent
        return
    assert told.median_s is not None and told.p99_s is not None
    assert told.min_s <= told.median_s
    assert told.min_s <= told.p99_s <= max(probe.rtt_s or 0 for probe in series)
    if told.jitter_s is not None:
        assert told.jitter_s <= max(probe.rtt_s or 0 for probe in series) - told.min_s + 1e-12


@given(st.lists(RTTS, min_size=1, max_size=50), st.floats(-0.4, 0.4))
def test_what_is_spaced_evenly_stays_as_it_is(rtts: list[float | None], late: float) -> None:
    probes = [Probe(7 + (i + (late if i else 0)) * 0.1, rtt) for i, rtt in enumerate(rtts)]
    assert resampled(probes, 0.1) == rtts  # the mean of one is that one


@given(SERIES, st.floats(0.1, 20))
def test_samples_stay_within_what_was_seen(series: list[Probe], step_s: float) -> None:
    seen = [probe.rtt_s for probe in series if probe.rtt_s is not None]
    kept = [rtt for rtt in resampled(series, step_s) if rtt is not None]
    assert bool(kept) == bool(seen)
    near = 1 + 1e-12  # sums are rounded
    assert all(min(seen) / near <= rtt <= max(seen) * near for rtt in kept)
