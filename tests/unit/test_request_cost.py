"""How large ranges are to be where each request costs something beside its bytes."""

from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.web.fetch import FIRST_PIECE
from mpx.endpoints.web.goodput import Goodput
from mpx.endpoints.web.request_cost import LARGEST_PIECE, STEP, WORTH, RequestCost

MIB = 1 << 20
SOME_S = st.floats(0.0, 100.0)


def test_no_wait_costs_nothing() -> None:
    cost = RequestCost()
    cost.note(0.0, 10 * MIB, 1.0)
    assert cost.least_bytes == 0


def test_pieces_grow_until_they_last_longer_than_their_wait() -> None:
    cost, rate, wait_s = RequestCost(), 100e6, 0.5
    sizes = [FIRST_PIECE]
    for _ in range(6):
        cost.note(wait_s, sizes[-1], sizes[-1] / rate)
        sizes.append(max(FIRST_PIECE, cost.least_bytes))
    assert sizes[:4] == [MIB, STEP * MIB, STEP**2 * MIB, LARGEST_PIECE]
    assert set(sizes[4:]) == {LARGEST_PIECE}
    assert Goodput(cost).piece_bytes == LARGEST_PIECE


def test_a_slow_path_is_asked_for_no_more_than_its_waits_are_worth() -> None:
    cost, rate, wait_s = RequestCost(), 2e6, 0.1
    for _ in range(6):
        cost.note(wait_s, FIRST_PIECE, FIRST_PIECE / rate)
    assert cost.least_bytes == int(WORTH * wait_s * rate)
    assert Goodput(cost).piece_bytes == FIRST_PIECE


def test_what_a_server_costs_no_longer_is_forgotten() -> None:
    cost = RequestCost()
    cost.note(1.0, 8 * MIB, 0.1)
    assert cost.least_bytes == STEP * 8 * MIB
    cost.note(0.001, 32 * MIB, 0.4)
    assert cost.least_bytes < FIRST_PIECE


def test_one_late_answer_says_nothing() -> None:
    cost = RequestCost()
    for waited_s in (0.0, 5.0, 0.0):
        cost.note(waited_s, 8 * MIB, 0.1)
        assert (cost.wait_s, cost.least_bytes) == (0.0, 0)


def test_the_end_of_a_file_tells_little() -> None:
    cost = RequestCost()
    cost.note(0.5, 8 * MIB, 0.1)
    before = cost.least_bytes
    cost.note(0.0, 1000, 0.1)
    assert cost.least_bytes == before


@given(st.lists(st.tuples(SOME_S, st.integers(0, 1 << 40), SOME_S), max_size=20))
def test_bounds(notes: list[tuple[float, int, float]]) -> None:
    cost = RequestCost()
    for waited_s, size_bytes, took_s in notes:
        cost.note(waited_s, size_bytes, took_s)
        assert 0 <= cost.least_bytes <= LARGEST_PIECE
        assert FIRST_PIECE <= Goodput(cost).piece_bytes <= LARGEST_PIECE
