"""Samples of what an earlier run has stored: some of each range, within it, and not too many."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.web.part_samples import MOST_SAMPLES, SAMPLE_BYTES, samples_of
from mpx.engine.ranges import RangeSet

RANGES = st.lists(
    st.tuples(st.integers(0, 10**12), st.integers(1, 10**10)).map(lambda each: (each[0], sum(each))),
    min_size=1,
    max_size=200,
).map(RangeSet)


@given(RANGES)
def test_samples_are_of_what_has_arrived(arrived: RangeSet) -> None:
    samples = samples_of(arrived)
    assert 0 < len(samples) <= 2 * MOST_SAMPLES
    for start, end in samples:
        assert 0 < end - start <= SAMPLE_BYTES
        assert arrived.covers(start, end)


@given(st.integers(1, 10**13))
def test_one_range_is_sampled_all_over(size: int) -> None:
    samples = sorted(samples_of([(0, size)]))
    assert samples[-1][1] == size
    gaps = [start - end for (_, end), (start, _) in zip([(0, 0), *samples], samples, strict=False)]
    assert max(gaps) <= max(2 * size / MOST_SAMPLES, SAMPLE_BYTES)


@given(st.integers(1, 10**12), st.integers(SAMPLE_BYTES, 10**9))
def test_samples_are_as_far_apart_as_they_are_to_be(size: int, apart_bytes: int) -> None:
    ends = [end for _, end in samples_of([(0, size)], apart_bytes)]
    assert ends[0] == size
    assert all(first - second >= apart_bytes for first, second in pairwise(ends))
