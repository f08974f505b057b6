"""What a path did over time stays bounded, and adds up."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.engine.tuner import Sample
from mpx.intervals import MOST, Interval, Intervals
from mpx.transfer.path_meter import PathMeter

SHARES = st.none() | st.floats(0, 1)
STEPS = st.lists(
    st.tuples(st.floats(0.01, 100.0), st.integers(0, 10**12), st.integers(0, 50), SHARES), max_size=700
)


def kept(steps: list[tuple[float, int, int, float | None]], paths: int = 1) -> Intervals:
    intervals, now_s = Intervals(), 0.0
    for took_s, size, streams, share in steps:
        for path in range(paths):
            intervals.add(
                Interval(str(path), now_s, now_s + took_s, streams, size, resent=size % 7, idle=share)
            )
        now_s += took_s
    return intervals


@given(STEPS, st.integers(1, 3))
def test_they_are_bounded_without_gaps_and_nothing_is_lost(
    steps: list[tuple[float, int, int, float | None]], paths: int
) -> None:
    whole = kept(steps, paths)
    for path in range(paths):
        mine = [each for each in whole if each.path == str(path)]
        assert len(mine) <= MOST
        assert all(one.until_s == other.from_s for one, other in pairwise(mine))
        assert sum(each.arrived_bytes for each in mine) == sum(size for _, size, *_ in steps)
        assert sum(each.resent for each in mine) == sum(size % 7 for _, size, *_ in steps)
        stream_s = sum(each.streams * each.length_s for each in mine)
        assert stream_s == pytest.approx(sum(took * n for took, _, n, _ in steps), rel=1e-6, abs=1e-6)
        assert all(each.idle is None or -1e-9 <= each.idle <= 1 + 1e-9 for each in mine)


def test_a_long_copy_is_resolved_in_many_intervals() -> None:
    day = kept([(0.1, 1000, 4, None)] * 30_000)
    assert MOST / 2 <= len(list(day)) <= MOST
    assert {round(each.length_s, 6) for each in list(day)[:-1]} == {day.length_s} == {12.8}


def test_a_short_copy_is_resolved_to_a_tenth_of_a_second() -> None:
    assert [round(each.length_s, 6) for each in kept([(0.1, 1, 1, None)] * 5)] == [0.1] * 5


def test_what_is_joined_is_the_mean_and_the_latest() -> None:
    one = Interval("p", 0, 3, 4, 10, 1, rtt_s=0.1, queue_s=None, congestion="cubic", background="C")
    other = Interval("p", 3, 4, 8, 20, 2, rtt_s=0.5, queue_s=0.2, congestion="bbr")
    both = one.joined(other)
    assert (both.from_s, both.until_s, both.streams, both.arrived_bytes, both.resent) == (0, 4, 5, 30, 3)
    assert both.rtt_s == pytest.approx(0.2)
    assert (both.queue_s, both.congestion, both.background) == (0.2, "bbr", "C")


class About:
    congestion: str | None = "cubic"
    reading: str | None = "CC"


def test_counters_become_what_was_added() -> None:
    meter = PathMeter()
    first = Sample(2, 100, 0, retransmits=3, busy_s=0.05, queue_s=-0.001, limited_by_receiver=0.4)
    second = Sample(2, 250, 0, retransmits=4, busy_s=0.15, queue_s=0.02)
    (one,) = meter.passed(0.1, {"p": first}, {"p": About()})
    (two,) = meter.passed(0.2, {"p": second}, {"p": About()})
    assert (one.arrived_bytes, one.resent, one.idle, one.queue_s) == (100, 3, None, 0.0)
    assert one.limited_by_receiver == 0.4
    assert (two.from_s, two.until_s, two.arrived_bytes, two.resent) == (0.1, 0.2, 150, 1)
    assert two.idle == pytest.approx(0.5)
    assert (two.congestion, two.background) == ("cubic", "CC")


def test_who_cannot_tell_says_nothing_of_idle_streams() -> None:
    meter = PathMeter()
    for now_s in (0.1, 0.2):
        (last,) = meter.passed(now_s, {"p": Sample(4, 10, 0)}, {})
    assert (last.idle, last.limited_by_sender, last.background) == (None, None, None)
    assert not list(meter.passed(0.2, {"p": Sample(4, 10, 0)}, {}))
