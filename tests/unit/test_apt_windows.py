"""What is learnt from streams that their receivers' windows hold back."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.apt_windows import NEARLY, Windows

HELD, FREE = 0.95, 0.0


def rooms(*bins: tuple[int, float], held_back: float | None = HELD) -> list[bool]:
    windows, found = Windows(), []
    for streams, bps in bins:
        windows.learn(streams, streams, bps, held_back)
        found.append(windows.room)
    return found


def test_there_is_room_while_more_carry_in_proportion() -> None:
    assert rooms((4, 20e6), (16, 80e6), (32, 158e6), (48, 160e6)) == [False, True, True, False]


def test_windows_that_arrive_in_lumps_do_not_hide_it() -> None:
    assert rooms((6, 47e6), (24, 140e6), (36, 190e6)) == [False, True, True]
    assert rooms((6, 13e6), (24, 150e6)) == [False, True]


@pytest.mark.parametrize("held_back", [FREE, None])
def test_without_windows_that_bind_nothing_is_known(held_back: float | None) -> None:
    assert rooms((4, 20e6), (16, 80e6), held_back=held_back) == [False, False]
    windows = Windows()
    windows.learn(4, 4, 20e6, held_back)
    assert windows.needed(1e9) == 0


def test_where_more_have_carried_hardly_more_there_is_no_room() -> None:
    assert rooms((16, 100e6), (32, 190e6), (28, 185e6)) == [False, True, False]
    assert rooms((16, 100e6), (32, 190e6), (20, 125e6)) == [False, True, True]


def test_windows_are_a_wall_until_they_have_grown() -> None:
    windows = Windows()
    windows.learn(4, 4, 20e6, HELD)
    assert windows.needed(100e6) == math.ceil(NEARLY * 20)
    windows.learn(40, 40, 150e6, FREE)
    assert windows.needed(100e6) == math.ceil(NEARLY * 20)
    windows.learn(2, 2, 14e6, FREE)
    assert windows.needed(100e6) == 0
    windows.learn(2, 2, 14e6, HELD)
    assert windows.needed(140e6) == math.ceil(NEARLY * 20)
    windows.forget()
    assert windows.needed(120e6) == 0 and not windows.room


def test_streams_on_their_way_up_carry_less_than_their_windows_let_them() -> None:
    windows = Windows()
    windows.learn(24, 18, 108e6, HELD)
    assert windows.needed(120e6) == math.ceil(NEARLY * 20)


def test_the_most_streams_tell_best_what_a_window_is() -> None:
    windows = Windows()
    for streams, bps in ((4, 26e6), (24, 144e6), (8, 50e6)):  # 6 Mbit/s each, a lump more with few
        windows.learn(streams, streams, bps, HELD)
    assert windows.needed(120e6) == math.ceil(NEARLY * 20)


@given(
    st.lists(
        st.tuples(st.integers(1, 256), st.floats(1.0, 1e12), st.one_of(st.none(), st.floats(0.0, 1.0))),
        min_size=1,
    )
)
def test_whatever_comes_it_says_something(bins: list[tuple[int, float, float | None]]) -> None:
    windows = Windows()
    for streams, bps, held_back in bins:
        windows.learn(streams, streams, bps, held_back)
        assert windows.needed(bps) >= 0
        assert not windows.room or (held_back or 0.0) > 0
