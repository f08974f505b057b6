"""When dips of a copy on BBR rest, and what ends that."""

from hypothesis import given
from hypothesis import strategies as st

from mpx.recognition.pulses.rests import (
    AFTER,
    AFTER_CHANGE,
    CHANGED,
    FIRST_S,
    LATELY,
    LATEST_S,
    LONGEST_S,
    MORE,
    PulseRests,
)

BPS = 80e6


def steady(until_s: float, bps: float = BPS) -> list[tuple[float, float]]:
    return [(until_s - 20 + number / 10, bps) for number in range(201)]


def resting(now_s: float = 100.0) -> PulseRests:
    rests = PulseRests()
    for number in range(AFTER):
        began = rests.read(now_s - AFTER + 1 + number, 0, steady(now_s))
    assert began and rests.until_s == now_s + FIRST_S
    return rests


def test_a_rest_begins_after_some_readings_if_then_nothing_asks_for_a_change() -> None:
    rests = PulseRests()
    unsure = [3] * (AFTER - 1) + [None] * 15
    assert not any(rests.read(float(number), each, steady(number)) for number, each in enumerate(unsure))
    assert rests.read(20.0, 0, steady(20.0))


def test_rests_grow_up_to_a_bound_and_are_short_again_for_other_streams() -> None:
    rests, lasted, now_s = PulseRests(), [], 0.0
    for _ in range(5 * AFTER):
        now_s += 1
        if rests.read(now_s, 0, steady(now_s)):
            lasted.append(rests.until_s - now_s)
    assert lasted == [FIRST_S, MORE * FIRST_S, LONGEST_S, LONGEST_S, LONGEST_S]
    rests.begin_anew()
    assert rests.until_s < now_s and not any(rests.read(now_s, 0, steady(now_s)) for _ in range(AFTER - 1))
    assert rests.read(now_s, 0, steady(now_s)) and rests.until_s == now_s + FIRST_S


@given(times=st.floats(0, 10), after_s=st.floats(0, FIRST_S + 5))
def test_only_another_goodput_ends_a_rest_before_its_time(times: float, after_s: float) -> None:
    rests, now_s = resting(), 100.0 + after_s
    cut = rests.cut_short(now_s, steady(now_s, times * BPS))
    may = LATEST_S <= after_s < FIRST_S
    assert cut == (may and not 1 / CHANGED < times < CHANGED)
    assert rests.until_s == (now_s if cut else 100.0 + FIRST_S)


def test_the_next_rest_after_one_that_was_cut_short_is_short() -> None:
    rests = resting()
    assert rests.cut_short(110.0, steady(110.0, 2 * BPS)) and not rests.cut_short(110.5, steady(110.5))
    assert [rests.read(120.0 + number, 0, steady(120.0)) for number in range(AFTER)][-1]
    assert rests.until_s == 120.0 + AFTER - 1 + FIRST_S


def test_without_any_goodput_before_a_rest_none_ends_it() -> None:
    rests = PulseRests()
    assert any(rests.read(float(number), 0, []) for number in range(AFTER))
    assert not rests.cut_short(20.0, steady(20.0))


def test_rests_do_not_grow_without_sure_readings_and_end_without_any_lately() -> None:
    rests, lasted = resting(), []
    for number in range(1, 2 * LATELY):
        if rests.read(200.0 * number, number, steady(200.0)):
            lasted.append(rests.until_s - 200.0 * number)
    assert lasted == [FIRST_S] * ((LATELY - 1) // AFTER)
    assert rests.read(1e6, 0, steady(1e6)) and rests.until_s == 1e6 + MORE * FIRST_S


def test_after_a_rest_that_was_cut_short_readings_go_on_until_one_is_sure_or_there_were_many() -> None:
    rests = resting()
    assert rests.cut_short(110.0, steady(110.0, 2 * BPS))
    assert not any(
        rests.read(110.0 + number, 1 + number, steady(110.0)) for number in range(AFTER_CHANGE - 1)
    )
    assert rests.read(140.0, AFTER_CHANGE, steady(140.0)) and rests.until_s == 140.0 + FIRST_S
    assert rests.cut_short(150.0, steady(150.0, 2 * BPS))
    assert [rests.read(150.0 + number, 0, steady(150.0)) for number in range(AFTER)][-1]
