"""How many streams stay on a full path, and what a look upwards must have gained there."""

from hypothesis import given
from hypothesis import strategies as st

from mpx.tuning.saturation import SHARING, fewer, gained

COUNTS = st.integers(1, 256)


def test_down_in_steps_to_four() -> None:
    steps = [20]
    while (target := fewer(steps[-1], 1)) < steps[-1]:
        steps.append(target)
    assert steps == [20, 14, 10, 7, 5, 4]


@given(COUNTS, COUNTS)
def test_never_below_what_must_stay_and_never_up(streams: int, least: int) -> None:
    assert min(streams, max(least, SHARING)) <= fewer(streams, least) <= streams


def test_what_others_may_have_lost_is_no_gain() -> None:
    """Four of eight streams have a half, eight of twelve two thirds: 1.33 times as much."""
    assert not gained(4, 50e6, 8, 66.7e6, 0.0)
    assert gained(4, 30e6, 8, 60e6, 0.05), "in proportion: there was room"
    assert not gained(4, 30e6, 8, 50e6, 0.15), "with so much noise it may be luck"
    assert gained(4, 0.0, 8, 1e6, 0.0) and not gained(4, 0.0, 8, 0.0, 0.0)
