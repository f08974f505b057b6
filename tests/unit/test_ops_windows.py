"""Windows of round-trip times: the grid, what was lost, and our own goodput beside them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.ops_windows import STEP_S, bridged, enough, on_grid, rates_on_grid, steps_of, the_end
from mpx.rtt_series import Probe


def test_ten_probes_a_second_have_a_step_each() -> None:
    series = [Probe(7.03 + i * STEP_S, 0.05 + i / 1000) for i in range(steps_of(3))]
    assert on_grid(series).tolist() == pytest.approx([probe.rtt_s for probe in series])


def test_what_was_lost_or_not_sent_is_not_known() -> None:
    series = [Probe(0.0, 0.05), Probe(0.1, None), Probe(0.4, 0.07)]
    assert on_grid(series).tolist() == pytest.approx([0.05, np.nan, np.nan, np.nan, 0.07], nan_ok=True)


def test_gaps_are_bridged_and_remembered() -> None:
    nan = np.nan
    grid = np.array([[nan, 0.1, nan, nan, 0.4, nan], [0.2] * 6, [nan] * 6])
    whole, lost = bridged(grid)
    assert whole[0].tolist() == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.4, 0.4])
    assert whole[1].tolist() == [0.2] * 6 and np.isfinite(whole).all()
    assert lost.sum(axis=1).tolist() == [4, 0, 6]
    assert enough(lost).tolist() == [False, True, False]
    assert np.isnan(grid[0, 0])  # what was given is left as it is


@given(st.lists(st.one_of(st.none(), st.floats(0.001, 1.0)), min_size=2, max_size=60))
def test_bridges_stay_between_what_was_measured(rtts: list[float | None]) -> None:
    known = [rtt for rtt in rtts if rtt is not None]
    whole, lost = bridged(np.array([[np.nan if rtt is None else rtt for rtt in rtts]]))
    assert lost[0].tolist() == [rtt is None for rtt in rtts]
    if known:
        assert min(known) <= whole.min() and whole.max() <= max(known)


def test_the_end_of_a_series_is_so_many_steps_whatever_was_lost_before() -> None:
    series = [Probe(i * STEP_S, i / 1000) for i in range(100)]
    found = the_end(series, 30)
    assert found is not None and found[0] == pytest.approx(7.0)
    assert found[1].tolist() == pytest.approx([i / 1000 for i in range(70, 100)])
    silent = [*series[:65], *series[80:]]
    found = the_end(silent, 30)
    assert found is not None and np.isnan(found[1]).tolist() == [True] * 10 + [False] * 20
    assert the_end(series[70:], 31) is None and the_end([], 1) is None


@given(st.lists(st.floats(-0.04, 0.04), min_size=30, max_size=50), st.integers(1, 29))
def test_probes_that_were_sent_late_change_nothing(late_s: list[float], steps: int) -> None:
    series = [Probe(5 + i * STEP_S + each, 0.05) for i, each in enumerate(late_s)]
    found = the_end(series, steps)
    assert found is not None and len(found[1]) == steps
    assert np.isnan(found[1]).mean() <= 0.5


def test_goodput_stands_at_the_step_of_its_time_and_stays_until_the_next() -> None:
    goodput = [(4.9, 9.0), (5.0, 10.0), (5.1, 20.0), (5.14, 40.0), (5.4, 5.0), (9.0, 7.0)]
    assert rates_on_grid(goodput, 5.0, 6).tolist() == [10.0, 30.0, 30.0, 30.0, 5.0, 5.0]
    assert rates_on_grid([], 5.0, 3).tolist() == [0.0, 0.0, 0.0]
