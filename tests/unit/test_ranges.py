"""RangeSet against a plain Python set of byte numbers."""

from hypothesis import given
from hypothesis import strategies as st

from mpx.engine.ranges import RangeSet

RANGES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=20
)


def bytes_of(ranges):
    return {b for start, end in ranges for b in range(start, end)}


def well_formed(ranges: RangeSet) -> bool:
    flat = [edge for pair in ranges for edge in pair]
    return flat == sorted(set(flat))


@given(RANGES, RANGES)
def test_add_and_remove_behave_as_a_set_of_bytes(added, removed):
    ranges, model = RangeSet(), set()
    for start, end in added:
        new = ranges.add(start, end)
        assert new == len(set(range(start, end)) - model)
        model |= set(range(start, end))
    for start, end in removed:
        ranges.remove(start, end)
        model -= set(range(start, end))
        assert well_formed(ranges)
    assert bytes_of(ranges) == model
    assert ranges.size == len(model)


@given(RANGES, st.integers(0, 70), st.integers(0, 20))
def test_missing_within_and_covers(added, start, length):
    ranges, end = RangeSet(added), start + length
    window = set(range(start, end))
    assert bytes_of(ranges.missing(start, end)) == window - bytes_of(ranges)
    assert bytes_of(ranges.within(start, end)) == window & bytes_of(ranges)
    assert ranges.covers(start, end) == (window <= bytes_of(ranges))


@given(RANGES, RANGES)
def test_without_takes_out_what_is_in_the_other(added, others):
    ranges, other = RangeSet(added), RangeSet(others)
    left = ranges.without(other)
    assert left is ranges
    assert well_formed(left)
    assert bytes_of(left) == bytes_of(added) - bytes_of(others)
    assert bytes_of(other) == bytes_of(others)


@given(RANGES, st.integers(1, 9))
def test_take_first_takes_every_byte_once(added, limit):
    ranges, taken = RangeSet(added), set()
    while piece := ranges.take_first(limit):
        assert 0 < piece[1] - piece[0] <= limit
        assert piece[0] > max(taken, default=-1)
        taken |= set(range(*piece))
    assert taken == bytes_of(added)
    assert not ranges.size
