"""Times in which something stayed as it was, and means over time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.explain.path_story import told_stretches
from mpx.explain.stretches import (
    OUTAGE_S,
    Arrivals,
    full_share,
    last_attempt,
    lost_share,
    mean_share,
    outages,
    steps,
    stretches,
)
from mpx.intervals import Interval
from mpx.report import Event

PARTS = st.lists(
    st.tuples(st.floats(0.1, 10), st.integers(0, 10**9), st.sampled_from([None, "none", "C", "B"])),
    max_size=40,
)


def intervals(parts: list[tuple[float, int, str | None]]) -> list[Interval]:
    made, now_s = [], 0.0
    for took_s, size, background in parts:
        made.append(Interval("p", now_s, now_s + took_s, 4, size, 0, background=background))
        now_s += took_s
    return made


def an_event(t_s: float, streams: int) -> Event:
    return Event(t_s, "p", streams, 0.0, None, None, "cubic", "why")


@given(PARTS)
def test_stretches_are_in_order_and_cover_what_is_known(parts: list[tuple[float, int, str | None]]) -> None:
    some = intervals(parts)
    found = stretches(some, lambda each: each.background)
    assert all(one.until_s <= other.from_s for one, other in pairwise(found))
    assert all(one.what != other.what or one.until_s < other.from_s for one, other in pairwise(found))
    known_s = sum(each.length_s for each in some if each.background)
    assert sum(each.length_s for each in found) == pytest.approx(known_s)
    lasting = told_stretches(some)
    assert all(one.what != other.what for one, other in pairwise(lasting))
    assert {each.what for each in lasting} <= {each.what for each in found}


@given(PARTS)
def test_goodput_over_all_is_what_arrived(parts: list[tuple[float, int, str | None]]) -> None:
    some = intervals(parts)
    whole = Arrivals(some).goodput_bps(0.0, 1e6)
    if not some:
        assert whole is None
        return
    assert whole == pytest.approx(sum(each.arrived_bytes for each in some) * 8 / some[-1].until_s)


@given(PARTS, st.floats(0, 400), st.floats(0, 400))
def test_goodput_over_a_part_is_that_of_what_it_shares(
    parts: list[tuple[float, int, str | None]], one_s: float, other_s: float
) -> None:
    some, (from_s, until_s) = intervals(parts), sorted((one_s, other_s))
    arrived = known_s = 0.0
    for each in some:
        shared_s = max(0.0, min(until_s, each.until_s) - max(from_s, each.from_s))
        arrived += each.arrived_bytes * shared_s / each.length_s
        known_s += shared_s
    found = Arrivals(some).goodput_bps(from_s, until_s)
    assert known_s < 1e-6 or found == pytest.approx(arrived * 8 / known_s, rel=1e-3, abs=1e3)


@given(PARTS)
def test_outages_last_and_lie_between_data(parts: list[tuple[float, int, str | None]]) -> None:
    some = intervals(parts)
    for outage in outages(some):
        assert outage.length_s >= OUTAGE_S
        within = [i for i in some if outage.from_s <= i.from_s < outage.until_s]
        assert within and not any(each.arrived_bytes for each in within)
        assert any(each.arrived_bytes for each in some if each.until_s <= outage.from_s + 1e-9)
        assert any(each.arrived_bytes for each in some if each.from_s >= outage.until_s - 1e-9)


TIMES_S = st.integers(0, 100_000_000).map(lambda us: us / 1e6)  # goodput over less than that is rounding


@given(st.lists(st.tuples(TIMES_S, st.integers(1, 9)), min_size=1, max_size=20))
def test_steps_follow_each_other_to_the_end(some: list[tuple[float, int]]) -> None:
    events = [an_event(t_s, streams) for t_s, streams in sorted(some)]
    found = steps(events, [Interval("p", 0, 200, 4, 1000, 0)])
    assert found[0].from_s == events[0].t_s or len(found) < len(events)
    assert found[-1].until_s == 200 and found[-1].streams == events[-1].streams
    assert all(one.until_s == other.from_s for one, other in pairwise(found))
    assert all(one.until_s > one.from_s for one in found)
    assert all(step.goodput_bps == pytest.approx(40) for step in found)


def test_a_step_of_a_report_without_intervals_has_no_goodput() -> None:
    (only,) = steps([an_event(0, 4)], [])
    assert (only.streams, only.goodput_bps, only.length_s) == (4, None, 0)


def test_another_attempt_begins_where_times_do() -> None:
    assert [
        e.streams for e in last_attempt([an_event(0, 1), an_event(9, 2), an_event(0, 3), an_event(1, 4)])
    ] == [3, 4]
    assert not last_attempt([])


def test_shares_are_of_the_time_of_streams() -> None:
    some = [
        Interval("p", 0, 1, 10, 1, 0, idle=1.0),
        Interval("p", 1, 3, 5, 1, 0, idle=0.5),
        Interval("p", 3, 9, 5, 1, 0, idle=None),
    ]
    assert mean_share(some, lambda each: each.idle) == pytest.approx(0.75)
    assert mean_share(some, lambda each: each.limited_by_sender) is None


def test_a_path_is_full_while_a_queue_stands() -> None:
    def at(from_s: float, queue_s: float | None) -> Interval:
        return Interval("p", from_s, from_s + 1, 1, 5_000_000, 0, rtt_s=0.05, queue_s=queue_s)

    assert full_share([at(0, 0.02), at(1, 0.0), at(2, None)], 0.05) == 0.5
    assert full_share([at(0, None)], 0.05) is None


def test_losses_are_shares_of_segments() -> None:
    assert lost_share([Interval("p", 0, 1, 1, 1448 * 90, 10)]) == pytest.approx(0.1)
    assert lost_share([Interval("p", 0, 1, 1, 1448 * 90, 0)]) is None  # nobody knows, or none was
