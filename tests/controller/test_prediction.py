"""How many streams: the numbers that huang prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_controller.path_sets.prediction import (
    BYTES_PER_STREAM,
    bytes_per_stream,
    learnt,
    predicted_streams,
    within,
)

VIRTUAL, PRAGMA = bytes_per_stream(0.001495), bytes_per_stream(0.000065)


def test_the_unit() -> None:
    assert round(VIRTUAL) == 83_612 and round(PRAGMA / 1e6, 2) == 1.92
    assert pytest.approx(PRAGMA, rel=0.02) == BYTES_PER_STREAM


@pytest.mark.parametrize(
    ("rate", "rtt", "streams"),
    [
        (50, 20, 1),
        (50, 40, 3),
        (50, 60, 4),
        (50, 80, 6),
        (50, 100, 7),
        (100, 120, 18),
        (50, 30, 2),
        (50, 0, 1),
    ],
)
def test_the_virtual_testbed(rate: float, rtt: float, streams: int) -> None:
    """Figure 4.3, and the paths of topology C (figure 6.7)."""
    assert predicted_streams(rate * 1e6, rtt / 1e3, VIRTUAL) == streams


@pytest.mark.parametrize(
    ("rate", "rtt", "streams"),
    [
        (728.4, 191, 9), (638, 183, 8), (916, 211, 13), (780.5, 191, 10),  # table 6.3
        (660, 191, 8), (200, 183, 2), (740, 211, 10), (170, 191, 2),  # table 6.4
    ],
)  # fmt: skip
def test_pragma(rate: float, rtt: float, streams: int) -> None:
    assert predicted_streams(rate * 1e6, rtt / 1e3, PRAGMA) == streams


@pytest.mark.parametrize("bad", [(float("nan"), 0.1, 1e6), (1e9, float("inf"), 1e6), (1e9, 0.1, 0.0)])
def test_nonsense_is_refused(bad: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="no number of streams"):
        predicted_streams(*bad)


def test_what_transfers_report_is_learnt() -> None:
    each = BYTES_PER_STREAM
    for _ in range(20):
        each = learnt(each, 50e6, 0.1, 7)
    assert predicted_streams(50e6, 0.1, each) == 7
    assert learnt(each, 1e6, 0.001, 1) == each  # one was enough for less than one's worth
    assert learnt(each, 0.0, 0.1, 3) == each
    assert learnt(16e3, 1e3, 0.001, 64) == 16e3


def test_the_ratio_of_topology_c() -> None:
    """1:1:9 (figure 6.8)."""
    assert within([2, 2, 18], 11) == [1, 1, 9]
    assert within([8, 2, 10, 2], 22) == [8, 2, 10, 2]
    assert within([8, 2, 10, 2], 11) == [4, 1, 5, 1]
    assert within([20, 10], 1) == [1, 0]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=8), st.integers(0, 300))
def test_no_more_than_there_may_be(streams: list[int], most: int) -> None:
    given = within(streams, most)
    assert sum(given) == min(sum(streams), most)
    if sum(streams) <= most:
        assert given == streams
        return
    assert min(given) >= (1 if most >= len(streams) else 0)
    exact = [each / sum(streams) * most for each in streams]
    if sum(max(1.0, each) for each in exact) <= most:  # none was raised to one
        assert all(abs(had - each) < 1 for had, each in zip(given, exact, strict=True))


@given(st.floats(16e3, 1e9), st.floats(1, 1e13), st.floats(1e-9, 1e3), st.integers(1, 65_535))
def test_one_transfer_changes_what_is_believed_by_a_factor_of_2_at_most(
    each: float, rate_bps: float, rtt_s: float, streams: int
) -> None:
    assert each / 2 <= learnt(each, rate_bps, rtt_s, streams) <= each * 2
