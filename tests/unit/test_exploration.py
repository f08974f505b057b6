"""Looks are paid for before the next one."""

import pytest

from mpx.tuning.exploration import OVERDUE_S, PATIENT_RTT, RAREST_S, Exploration

RTT_S = 0.02
BYTES_PER_S = 10_000_000


def after_a_look(lost_s: float) -> Exploration:
    """A look from 10 s to 11 s that cost as much as so many seconds of goodput."""
    looks = Exploration()
    looks.rest(0.0, 0)
    assert looks.paid(10.0, 10 * BYTES_PER_S, good=1.0)
    looks.begin(10.0, 10 * BYTES_PER_S)
    looks.stir()
    looks.end(11.0)
    looks.rest(11.0, arrived(11.0, lost_s))
    return looks


def arrived(at_s: float, lost_s: float) -> int:
    return round((at_s - lost_s) * BYTES_PER_S)


def first_paid_s(looks: Exploration, lost_s: float, good: float = 1.0) -> float:
    tenths = range(111, 2000)
    return next(i / 10 for i in tenths if looks.paid(i / 10, arrived(i / 10, lost_s), good))


@pytest.mark.parametrize(("lost_s", "paid_s"), [(0.0, 11.1), (0.1, 20), (0.3, 40), (0.8, 90)])
def test_a_look_is_paid_for_when_the_mean_is_back_within_a_hundredth(lost_s: float, paid_s: float) -> None:
    assert first_paid_s(after_a_look(lost_s), lost_s) == pytest.approx(paid_s, abs=0.3)


def test_doubt_may_spend_more() -> None:
    assert first_paid_s(after_a_look(0.3), 0.3, good=0.6) == pytest.approx(13, abs=0.3)  # 10 %


def test_what_can_never_be_paid_is_overdue() -> None:
    looks = after_a_look(50.0)
    assert not looks.paid(10 + OVERDUE_S, arrived(10 + OVERDUE_S, 50.0), 1.0)
    assert looks.paid(11 + OVERDUE_S, arrived(11 + OVERDUE_S, 50.0), 1.0)


def test_only_rest_can_be_compared() -> None:
    looks = after_a_look(0.0)
    looks.stir()
    assert not looks.paid(60.0, arrived(60.0, 0.0), 1.0)


def test_time_goes_to_looking_as_the_odds() -> None:
    looks = Exploration()
    look_s = 0.5  # 0.3 s and 10 RTT
    assert looks.due(look_s + 0.01, 0.0, 0.5, RTT_S) and not looks.due(look_s - 0.01, 0.0, 0.5, RTT_S)
    assert looks.due(2.01, 0.0, 0.9, RTT_S) and not looks.due(1.9, 0.0, 0.9, RTT_S)  # four looks at most


def test_looks_become_rarer_up_to_an_end() -> None:
    looks = Exploration()
    for i in range(30):
        looks.rest(i * 100.0, i)
        looks.begin(i * 100.0 + 50, i)
        looks.end(i * 100.0 + 51)
    assert not looks.due(2951 + RAREST_S - 0.1, 0.0, 1.0, RTT_S)
    assert looks.due(2951 + RAREST_S + 0.1, 0.0, 1.0, RTT_S)


def test_patience_shrinks_from_look_to_look() -> None:
    def lasts_s(looks: Exploration, began_s: float, rtt_s: float) -> float:
        half = arrived(began_s, 0.0)
        tenths = range(1, 100)
        return next(
            i / 10
            for i in tenths
            if looks.too_long(began_s + i / 10, half + i * BYTES_PER_S // 20, rtt_s, 0.01)
        )

    looks = after_a_look(0.0)
    assert lasts_s(looks, 10.0, 0.001) == pytest.approx(2.1, abs=0.11)
    looks.begin(30.0, arrived(30.0, 0.0))
    assert lasts_s(looks, 30.0, 0.001) == pytest.approx(1.1, abs=0.11)
    assert lasts_s(looks, 30.0, 0.2) == pytest.approx(PATIENT_RTT * 0.2 + 0.1, abs=0.15)


def test_a_look_that_costs_nothing_may_go_on() -> None:
    looks = after_a_look(0.0)
    assert not looks.too_long(60.0, arrived(60.0, 0.0), 0.02, 0.1)


def test_forgetting_makes_looks_quick_again() -> None:
    looks = after_a_look(0.8)
    looks.forget()
    assert not looks.paid(12.0, arrived(12.0, 0.8), 1.0)  # first some rest
    looks.rest(12.0, arrived(12.0, 0.8))
    assert looks.paid(12.1, arrived(12.1, 0.8), 1.0)


def test_after_a_look_that_told_nothing_the_next_goes_the_other_way() -> None:
    looks = after_a_look(0.0)
    looks.without_result(-4)
    assert looks.sides(8, {2, 4, 11, 16}) == {11, 16}
    assert looks.sides(8, {2, 4}) == {2, 4}, "better there than nowhere"
    looks.begin(100.0, 10**9)
    assert looks.sides(8, {2, 4, 11, 16}) == {2, 4, 11, 16}
