"""What is learnt from streams that their receivers' windows hold back."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.tuning.receive_window import NEARLY, Windows
from mpx.tuning.settling import AT_THE_WINDOWS

HELD, FREE = 0.95, 0.0


def rooms(*bins: tuple[int, float], held_back: float | None = HELD) -> list[bool]:
    windows, found = Windows(), []
    for streams, bps in bins:
        windows.learn(streams, bps, held_back, None)
        found.append(windows.room)
    return found


def test_there_is_room_while_more_carry_in_proportion() -> None:
    assert rooms((4, 20e6), (16, 80e6), (32, 158e6), (48, 160e6)) == [False, True, True, False]


def test_windows_that_arrive_in_lumps_do_not_hide_it() -> None:
    assert rooms((6, 47e6), (24, 140e6), (36, 190e6)) == [False, True, True]
    assert rooms((6, 13e6), (24, 150e6)) == [False, True]


@pytest.mark.parametrize("held_back", [FREE, None])
def test_without_windows_that_bind_there_is_no_room(held_back: float | None) -> None:
    assert rooms((4, 20e6), (16, 80e6), held_back=held_back) == [False, False]


def test_where_more_have_carried_hardly_more_there_is_no_room() -> None:
    assert rooms((16, 100e6), (32, 190e6), (28, 185e6)) == [False, True, False]
    assert rooms((16, 100e6), (32, 190e6), (20, 125e6)) == [False, True, True]


def test_windows_are_a_wall() -> None:
    windows = Windows()
    windows.learn(4, 20e6, HELD, None)
    assert windows.needed(1e9) == 0
    windows.learn(8, 13e6, HELD, 5e6)  # whatever arrived in that bin
    assert windows.needed(100e6) == math.ceil(NEARLY * 20)
    windows.learn(8, 13e6, FREE, 10e6)  # windows have grown
    assert windows.needed(100e6) == math.ceil(NEARLY * 10)
    windows.learn(8, 13e6, HELD, 1e6)  # a slow reader has closed them for a moment
    assert windows.needed(100e6) == math.ceil(NEARLY * 10)
    windows.forget()
    assert windows.needed(100e6) == 0 and not windows.room


maybe = st.one_of(st.none(), st.floats(0.0, 1.0))


@given(
    st.lists(
        st.tuples(
            st.integers(1, 256), st.floats(1.0, 1e12), maybe, st.one_of(st.none(), st.floats(1.0, 1e12))
        ),
        min_size=1,
    )
)
def test_whatever_comes_it_says_something(
    bins: list[tuple[int, float, float | None, float | None]],
) -> None:
    windows = Windows()
    for streams, bps, held_back, window_bps in bins:
        windows.learn(streams, bps, held_back, window_bps)
        assert windows.needed(bps) >= 0
        assert not windows.room or (held_back or 0.0) > AT_THE_WINDOWS


def test_a_receiver_that_reads_slowly_shows_no_wall() -> None:
    """Its windows are as small as what it reads: four streams carried as much as sixteen do."""
    windows = Windows()
    windows.learn(4, 100e6, 0.9, None)
    windows.learn(16, 100e6, 0.9, 6.25e6)
    assert windows.needed(100e6) == 4
    windows.forget()
    windows.learn(16, 100e6, 0.9, 6.25e6)
    assert windows.needed(100e6) == 16
