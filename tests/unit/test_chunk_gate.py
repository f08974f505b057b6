"""The gate lets through what it was told."""

import hypothesis.strategies as st
from hypothesis import given

from mpx.engine.chunk_gate import ChunkGate


@given(st.lists(st.tuples(st.sampled_from(["open", "take", "give back"]), st.integers(1, 1000)), max_size=40))
def test_the_gate_lets_through_what_it_was_told_and_no_more(steps: list[tuple[str, int]]) -> None:
    gate = ChunkGate()
    left: int | None = None
    passed = taken = 0
    for step, size in steps:
        if step == "open":
            left = size
            gate.open(size)
        elif step == "take" and left != 0:
            got = gate.take(size)
            assert got == (size if left is None else min(left, size))
            passed, taken = passed + got, taken + got
            left = None if left is None else left - got
        elif step == "give back" and taken >= size:
            gate.give_back(size)
            passed, taken = passed - size, taken - size
            left = None if left is None else left + size
        assert gate.passed_bytes == passed
        assert gate.is_shut == (left == 0)
    gate.open(None)
    assert gate.take(1 << 40) == 1 << 40


def test_a_shut_gate_is_opened_again() -> None:
    gate = ChunkGate()
    gate.open(10)
    assert gate.take(100) == 10
    assert gate.take(100) == 0
    gate.open(5)
    assert gate.take(100) == 5
