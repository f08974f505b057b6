"""Bytes that were written and are not believed yet: they count once, or not at all, whoever brings them."""

import hypothesis.strategies as st
from hypothesis import given
from unit.made_up_context import a_file

from mpx.engine.ranges import RangeSet

SIZE = 300
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "believe", "disbelieve", "land"]),
        st.integers(0, 3),  # who
        st.integers(0, SIZE),
        st.integers(0, SIZE),
    ),
    max_size=60,
)


@given(STEPS)
def test_what_is_held_has_not_arrived(steps: list[tuple[str, int, int, int]]) -> None:
    file, arrived = a_file(SIZE), RangeSet()
    held = [RangeSet() for _ in range(4)]
    for step, who, one, other in steps:
        start, end = min(one, other), max(one, other)
        if step == "hold" and start < end:
            new = arrived.missing(start, end)
            for each in (each for some in held for each in some):
                new.remove(*each)
            assert file.hold(start, end) == list(new)
            held[who].update(new)
        elif step == "believe":
            assert file.believe(held[who]) == arrived.update(held[who])
            held[who] = RangeSet()
        elif step == "disbelieve":
            file.disbelieve(held[who])
            held[who] = RangeSet()
        elif step == "land":
            assert file.landed(start, end) == arrived.add(start, end)
        assert file.arrived_bytes == arrived.size
    assert file.is_whole == (arrived.size == SIZE)
