"""When goodput counts again after streams came or went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.tuning.settling import AT_LEAST_RTT, AT_MOST_RTT, FLAT_RTT, Settling

RTT_S = 0.1


def waiting(before_bps: float = 100e6, grew: bool = False) -> Settling:
    takeover = Settling()
    takeover.begin(0.0, before_bps, grew)
    return takeover


def over(takeover: Settling, rtts: float, bps: float, held: float | None = 0.0, noise: float = 0.02) -> bool:
    return takeover.over(rtts * RTT_S, bps, held, noise, RTT_S)


def test_nothing_is_waited_for_at_first() -> None:
    takeover = Settling()
    assert not takeover.pending and over(takeover, 0.0, 1.0)


def test_what_was_under_way_arrives_first() -> None:
    takeover = waiting()
    assert not over(takeover, AT_LEAST_RTT - 1, 100e6) and takeover.pending
    assert over(takeover, AT_LEAST_RTT + 1, 100e6) and not takeover.pending


def test_goodput_that_still_rises_is_waited_for() -> None:
    takeover = waiting()
    rising = [over(takeover, rtts, 60e6 * 1.02 ** (rtts - 5)) for rtts in range(5, 27)]
    assert not any(rising)
    assert over(takeover, 28, 96e6)


def test_goodput_that_rises_no_more_counts() -> None:
    takeover = waiting()
    answers = {rtts: over(takeover, rtts, 50e6) for rtts in range(5, 16)}
    assert next(rtts for rtts, answer in answers.items() if answer) == pytest.approx(5 + FLAT_RTT, abs=1.5)


def test_streams_at_their_windows_have_nothing_to_grow_to() -> None:
    assert not over(waiting(), 6, 50e6, held=0.3)
    assert over(waiting(), 6, 50e6, held=0.9)
    assert not over(waiting(), 6, 50e6, held=None)


def test_new_streams_with_free_windows_overshoot_first() -> None:
    assert not over(waiting(grew=True), 6, 120e6, held=0.1)
    assert over(waiting(grew=True), 6, 120e6, held=0.4)
    assert over(waiting(grew=True), 6, 120e6, held=None)  # where nobody tells, goodput has to do
    falling = waiting(grew=True)
    assert not any(over(falling, rtts, 180e6 * 0.98 ** (rtts - 5), held=0.1) for rtts in range(5, 40))
    assert not over(falling, 41, 88e6, held=0.1)
    assert over(falling, 42 + FLAT_RTT, 88e6, held=0.1)


def test_noise_lets_less_be_enough() -> None:
    assert not over(waiting(), 6, 85e6, noise=0.05)
    assert over(waiting(), 6, 85e6, noise=0.3)


@given(st.lists(st.floats(1.0, 1e12), min_size=1, max_size=200))
def test_it_never_waits_for_ever(rates: list[float]) -> None:
    takeover = waiting()
    for i, bps in enumerate(rates):
        over(takeover, 5 + i, bps)
    assert over(takeover, AT_MOST_RTT + 1, 1.0)
