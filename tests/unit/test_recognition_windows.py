"""Windows of round-trip times: the grid, what was lost, and our own goodput beside them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.recognition.pulses.pulse import QueueResponse
from mpx.recognition.windows import (
    STEP_S,
    Grid,
    bridged,
    enough,
    on_grid,
    rates_on_grid,
    responses_on_grid,
    steps_of,
    the_end,
)
from mpx.rtt.series import Probe


def known(grid: Grid) -> list[float | None]:
    return [None if math.isnan(rtt) else round(rtt, 6) for rtt in grid.rtt_s.tolist()]


def test_ten_probes_a_second_have_a_step_each() -> None:
    series = [Probe(7.03 + i * STEP_S, 0.05 + i / 1000) for i in range(steps_of(3))]
    grid = on_grid(series)
    assert grid.rtt_s.tolist() == pytest.approx([probe.rtt_s for probe in series])
    assert grid.from_s == pytest.approx(7.03) and not grid.lost.any()


def test_what_was_not_sent_is_not_known_but_not_lost_either() -> None:
    grid = on_grid([Probe(0.0, 0.05), Probe(0.1, None), Probe(0.4, 0.07), Probe(0.42, None)])
    assert known(grid) == [0.05, None, None, None, 0.07]
    assert grid.lost.tolist() == [False, True, False, False, False]
    with pytest.raises(ValueError, match="without probes"):
        on_grid([])


def test_gaps_are_bridged() -> None:
    nan = np.nan
    rtts = np.array([[nan, 0.1, nan, nan, 0.4, nan], [0.2] * 6, [nan] * 6])
    whole = bridged(rtts)
    assert whole[0].tolist() == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.4, 0.4])
    assert whole[1].tolist() == [0.2] * 6 and np.isfinite(whole).all()
    assert enough(rtts).tolist() == [False, True, False]
    assert np.isnan(rtts[0, 0])  # what was given is left as it is


@given(st.lists(st.one_of(st.none(), st.floats(0.001, 1.0)), min_size=2, max_size=60))
def test_bridges_stay_between_what_was_measured(rtts: list[float | None]) -> None:
    there = [rtt for rtt in rtts if rtt is not None]
    whole = bridged(np.array([[np.nan if rtt is None else rtt for rtt in rtts]]))
    if there:
        assert min(there) <= whole.min() and whole.max() <= max(there)


def test_the_end_of_a_series_is_so_many_steps_whatever_was_lost_before() -> None:
    series = [Probe(i * STEP_S, i / 1000) for i in range(100)]
    found = the_end(series, 30)
    assert found is not None and found.from_s == pytest.approx(7.0)
    assert found.rtt_s.tolist() == pytest.approx([i / 1000 for i in range(70, 100)])
    silent = [*series[:65], *series[80:]]
    found = the_end(silent, 30)
    assert found is not None and np.isnan(found.rtt_s).tolist() == [True] * 10 + [False] * 20
    assert found.from_s == pytest.approx(7.0) and not found.lost.any()
    assert the_end(series[70:], 31) is None and the_end([], 1) is None
    whole = the_end(series[70:], 30)
    assert whole is not None and len(whole) == 30


@given(st.lists(st.floats(-0.02, 0.02), min_size=30, max_size=50), st.integers(1, 29))
def test_probes_that_were_sent_early_or_late_change_nothing(late_s: list[float], steps: int) -> None:
    series = [Probe(5 + i * STEP_S + each, i / 1000) for i, each in enumerate(late_s)]
    found = the_end(series, steps)
    assert found is not None
    assert found.rtt_s.tolist() == pytest.approx([i / 1000 for i in range(len(series))][-steps:])
    assert not found.lost.any()


def test_goodput_stands_at_the_step_of_its_time_and_stays_until_the_next() -> None:
    goodput = [(4.9, 9.0), (5.0, 10.0), (5.1, 20.0), (5.14, 40.0), (5.4, 5.0), (9.0, 7.0)]
    assert rates_on_grid(goodput, 5.0, 6).tolist() == [10.0, 30.0, 30.0, 30.0, 5.0, 5.0]
    assert rates_on_grid([], 5.0, 3).tolist() == [0.0, 0.0, 0.0]


def test_what_dips_told_has_its_step() -> None:
    shares, kept = responses_on_grid(
        [QueueResponse(4.0, 1, 1), QueueResponse(5.11, 0.5, 0.6), QueueResponse(5.4, 0.7, 0.8)], 5.0, 5
    )
    assert shares[[1, 4]].tolist() == [0.5, 0.7] and kept[[1, 4]].tolist() == [0.6, 0.8]
    assert np.isnan(shares[[0, 2, 3]]).all() and np.isnan(kept[[0, 2, 3]]).all()
