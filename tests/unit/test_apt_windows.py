"""What is learnt from streams that their receivers' windows hold back."""

import math

from hypothesis import given
from hypothesis import strategies as st

from mpx.apt_windows import NEARLY, Windows

HELD, FREE = 0.95, 0.0


def test_there_is_room_while_each_carries_what_each_of_fewer_did() -> None:
    windows = Windows()
    rooms = []
    for streams, bps in ((4, 20e6), (16, 80e6), (32, 158e6), (48, 190e6)):
        windows.learn(streams, streams, bps, HELD)
        rooms.append(windows.room)
    assert rooms == [False, True, True, False]


def test_without_windows_that_bind_nothing_is_known() -> None:
    windows = Windows()
    for held_back in (FREE, None):
        for streams in (4, 16, 32):
            windows.learn(streams, streams, 5e6 * streams, held_back)
            assert not windows.room and windows.needed(1e9) == 0


def test_where_more_have_carried_hardly_more_there_is_no_room() -> None:
    windows = Windows()
    for streams, bps in ((16, 100e6), (32, 190e6), (28, 175e6)):
        windows.learn(streams, streams, bps, HELD)
    assert not windows.room
    windows.learn(24, 24, 150e6, HELD)
    assert windows.room


def test_windows_are_a_wall_until_they_have_grown() -> None:
    windows = Windows()
    windows.learn(4, 4, 20e6, HELD)
    assert windows.needed(100e6) == math.ceil(NEARLY * 20)
    windows.learn(4, 4, 24e6, FREE)
    assert windows.needed(100e6) == 0
    windows.learn(4, 4, 24e6, HELD)
    assert windows.needed(120e6) == math.ceil(NEARLY * 20)
    windows.forget()
    assert windows.needed(120e6) == 0 and not windows.room


def test_streams_on_their_way_up_carry_less_than_their_windows_let_them() -> None:
    windows = Windows()
    windows.learn(4, 3.2, 16e6, HELD)
    assert windows.needed(100e6) == math.ceil(NEARLY * 20)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 256),
            st.floats(1.0, 1e12),
            st.one_of(st.none(), st.floats(0.0, 1.0)),
            st.floats(0.5, 1.0),
        ),
        min_size=1,
    )
)
def test_whatever_comes_what_runs_is_never_too_few(
    bins: list[tuple[int, float, float | None, float]],
) -> None:
    """The streams of a bin have carried it, so the wall is not above them by more than the noise allowed."""
    windows = Windows()
    for streams, bps, held_back, share_up in bins:
        windows.learn(streams, share_up * streams, bps, held_back)
        assert windows.needed(bps) >= 0
        if held_back is not None and held_back > 0.6:
            assert windows.needed(bps) <= streams
