"""Switches between congestion controls: only when sure, and ever more rarely back and forth."""

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.recognition.mix import MIXES, UNKNOWN, Mix, likeliest
from mpx.recognition.switching import (
    IN_A_ROW,
    MOST_READINGS,
    STEADY_READINGS,
    SURE,
    UNSURE_READINGS,
    SwitchHysteresis,
)
from mpx.transfer.watched_path import SharedModel, WatchedPath


def mix(name: str, probability: float = 0.95) -> Mix:
    rest = (1 - probability) / (len(MIXES) - 1)
    return likeliest([probability if each == name else rest for each in MIXES])


def permitted(_: str) -> str:
    return ""


def switches(hysteresis: SwitchHysteresis, readings: Iterable[Mix]) -> list[tuple[int, str]]:
    found = []
    for i, each in enumerate(readings, 1):
        switch = hysteresis.read(each)
        if switch:
            hysteresis.made(switch.congestion)
            found.append((i, switch.congestion))
    return found


def test_it_switches_once_when_it_is_sure() -> None:
    assert switches(SwitchHysteresis("fair", "cubic", permitted), [mix("B")] * 20) == [(IN_A_ROW, "bbr")]
    assert switches(SwitchHysteresis("fair", "cubic", permitted), [mix("BB", 0.4)] * 20) == []  # 0.64


def test_what_it_says_names_the_mix_and_the_policy() -> None:
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    (switch,) = (found for found in (hysteresis.read(mix("BC")) for _ in range(IN_A_ROW)) if found)
    assert switch.reason == "the background is probably BC (any bbr with 97%); policy fair"


def test_what_asks_for_the_same_need_not_be_told_apart() -> None:
    doubtful = likeliest([0.5, 0.4, 0.02, 0.04, 0.02, 0.02])  # nobody, or one CUBIC stream
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    assert switches(hysteresis, [mix("B")] * 3) == [(3, "bbr")]
    assert [switch.reason for switch in map(hysteresis.read, [doubtful] * 3) if switch] == [
        "the background is probably none or cubic only (94% together); policy fair"
    ]


def test_two_mixes_of_a_group_agree() -> None:
    assert switches(SwitchHysteresis("fair", "cubic", permitted), [mix("B"), mix("BB"), mix("BC")]) == [
        (3, "bbr")
    ]


def test_one_reading_in_between_that_is_not_sure_begins_anew() -> None:
    for other in (mix("C"), mix("B", 0.4), Mix(UNKNOWN, 0.99, [0, 0, 1, 0, 0, 0])):
        sure = [mix("B")] * (IN_A_ROW - 1)
        assert switches(SwitchHysteresis("fair", "cubic", permitted), [*sure, other, *sure]) == []


def test_what_is_there_already_is_not_asked_for() -> None:
    for name in ("none", "C", "CC"):
        assert switches(SwitchHysteresis("fair", "cubic", permitted), [mix(name)] * 20) == []
    for name in MIXES:
        assert switches(SwitchHysteresis("scavenger", "cubic", permitted), [mix(name)] * 20) == []
        assert switches(SwitchHysteresis("fast", "bbr", permitted), [mix(name)] * 20) == []


def test_it_goes_back_when_the_background_has_changed() -> None:
    readings = [mix("B")] * 20 + [mix("none")] * 20
    assert switches(SwitchHysteresis("fair", "cubic", permitted), readings) == [(3, "bbr"), (23, "cubic")]


def test_back_and_forth_takes_ever_longer_and_more_certainty() -> None:
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    turns = [mix("B", 0.99), mix("C", 0.99)] * 6
    found = [switches(hysteresis, [turn] * 30) for turn in turns]
    waits = [each[0][0] for each in found if each]
    assert waits == [3, 3, 6, 12, 24]
    assert switches(hysteresis, [mix("C", 0.75)] * 100) == []
    assert switches(hysteresis, [mix("C", 0.95)] * 100) == [(MOST_READINGS, "cubic")]  # never deaf


def test_a_switch_that_is_refused_is_asked_for_more_seldom() -> None:
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    asked = []
    for i in range(1, 30):
        if hysteresis.read(mix("B")):
            hysteresis.refused()
            asked.append(i)
    assert asked == [3, 3 + 6, 9 + 12]
    assert switches(hysteresis, [mix("B")] * 24) == [(24 - 8, "bbr")]
    assert switches(hysteresis, [mix("C")] * 24) == [(24, "cubic")]


def test_what_has_no_reason_for_long_is_given_up_ever_later() -> None:
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    for patience in (UNSURE_READINGS * times for times in (1, 2, 4, 8, 8)):
        assert switches(hysteresis, [mix("B", 0.999)] * MOST_READINGS)[0][1] == "bbr"
        assert switches(hysteresis, [mix("C", 0.5)] * patience) == [(patience, "cubic")]


def test_one_sure_reading_now_and_then_is_reason_enough() -> None:
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    round_of = [mix("C", 0.5)] * (UNSURE_READINGS - 1) + [mix("B", SURE)]
    assert switches(hysteresis, [mix("B", 0.999)] * 3 + round_of * 5) == [(3, "bbr")]


def test_what_it_began_with_needs_no_reason() -> None:
    for policy, congestion in (("fair", "cubic"), ("fast", "bbr")):
        readings = [Mix(UNKNOWN, 0.99, [1, 0, 0, 0, 0, 0])] * (9 * UNSURE_READINGS)
        assert switches(SwitchHysteresis(policy, congestion, permitted), readings) == []


@given(st.lists(st.lists(st.floats(0.001, 1), min_size=6, max_size=6), max_size=60))
def test_whatever_is_read_a_switch_is_to_something_else(rows: list[list[float]]) -> None:
    hysteresis, now = SwitchHysteresis("fair", "cubic", permitted), "cubic"
    for row in rows:
        switch = hysteresis.read(likeliest([share / sum(row) for share in row]))
        if switch:
            assert switch.congestion != now
            now = switch.congestion
            hysteresis.made(now)


def test_it_does_not_ask_for_what_may_not_be_used() -> None:
    hysteresis = SwitchHysteresis("fair", "reno", lambda name: f"no {name}" if name == "cubic" else "")
    assert switches(hysteresis, [mix("none")] * 20) == []
    assert switches(hysteresis, [mix("B")] * 3) == [(3, "bbr")]
    assert switches(hysteresis, [mix("C")] * 20)[0][1] == "reno"
    nothing = SwitchHysteresis("fair", "cubic", lambda name: f"no {name}")
    assert switches(nothing, [mix("B")] * 20) == []


def only_bbr_and_reno(name: str) -> str:
    return "" if name in ("bbr", "reno") else f"{name} is not permitted"


def test_what_the_route_has_is_left_only_for_a_reason_and_reno_takes_its_place() -> None:
    # It begins with CUBIC, as the route has that.
    hysteresis = SwitchHysteresis("fair", "cubic", only_bbr_and_reno)
    assert switches(hysteresis, [mix("none")] * 200) == []
    assert switches(hysteresis, [mix("B")] * IN_A_ROW) == [(IN_A_ROW, "bbr")]
    assert [name for _, name in switches(hysteresis, [mix("none")] * 10)] == ["reno"]


def test_a_switch_without_a_reason_is_given_up_for_what_can_be_had() -> None:
    hysteresis = SwitchHysteresis("fair", "cubic", only_bbr_and_reno)
    unsure = mix("B", 0.5)
    assert switches(hysteresis, [mix("B")] * IN_A_ROW + [unsure] * 1000) == [
        (IN_A_ROW, "bbr"),
        (IN_A_ROW + UNSURE_READINGS, "reno"),
    ]


def unknown(name: str, probability: float) -> Mix:
    return replace(mix(name, probability), name=UNKNOWN)


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([unknown("BB", 0.35)] * 20, [(12, "bbr")]),  # 0.61 in the mean for any BBR
        ([unknown("BB", 0.2)] * 20, []),  # 0.52
        ([unknown("CC", 0.6)] * 20, []),
        ([mix("BB", 0.4)] * 20, []),  # known, and not sure
        ([unknown("BB", 0.35), mix("B", 0.35)] * 10, [(12, "bbr")]),
        ([*[unknown("BB", 0.6)] * 3, unknown("CC", 0.6)] * 5, []),  # a quarter leans the other way
        ([*[unknown("BB", 0.35)] * 12, *[unknown("CC", 0.6)] * 30], [(12, "bbr")]),  # back only when sure
    ],
)
def test_unknown_readings_that_lean_one_way_for_long(
    readings: list[Mix], expected: list[tuple[int, str]]
) -> None:
    assert switches(SwitchHysteresis("fair", "cubic", permitted), readings) == expected


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([mix("BB", 0.5)] * 20, [(STEADY_READINGS, "bbr")]),  # 0.7 in the mean for any BBR, none of them sure
        ([unknown("BB", 0.5), mix("B", 0.5)] * 10, [(STEADY_READINGS, "bbr")]),
        ([mix("CC", 0.5), *[mix("B", 0.5)] * 20], [(1 + STEADY_READINGS, "bbr")]),  # one that leans otherwise
        ([*[mix("B", 0.5)] * (STEADY_READINGS - 1), mix("C", 0.5)] * 5, []),
        ([mix("CC", 0.5)] * 20, []),  # what it has
    ],
)
def test_readings_that_all_lean_one_way(readings: list[Mix], expected: list[tuple[int, str]]) -> None:
    assert switches(SwitchHysteresis("fair", "cubic", permitted), readings) == expected


def test_readings_that_lean_count_until_a_switch_was_made_or_refused() -> None:
    """What is known of their errors is of copies that began so."""
    leaning = [mix("B", 0.5)] * STEADY_READINGS
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    found = switches(hysteresis, [*leaning, *[mix("none")] * IN_A_ROW, *leaning * 3])
    assert [name for _, name in found] == ["bbr", "cubic"]
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    assert [bool(hysteresis.read(each)) for each in leaning][-1]
    hysteresis.refused()
    assert not any(map(hysteresis.read, leaning * 3))


def test_what_a_probe_chose_is_left_when_sure_or_where_nothing_confirms_it() -> None:
    """Readings of a copy on BBR that lean to CUBIC mean nothing: they were weighed for copies on CUBIC."""
    leaning = [unknown("CC", 0.6)] * 60
    assert switches(SwitchHysteresis("fair", "bbr", permitted, first="cubic"), leaning) == []
    sure = SwitchHysteresis("fair", "bbr", permitted, first="cubic")
    assert switches(sure, [mix("C")] * 5) == [(IN_A_ROW, "cubic")]
    alone = SwitchHysteresis("fair", "bbr", permitted, first="cubic")
    assert switches(alone, [mix("B", 0.5)] * 300) == [(UNSURE_READINGS, "cubic")]


@pytest.mark.parametrize(("planned", "expected"), [("cubic", []), ("bbr", ["cubic"])])
def test_a_copy_knows_what_a_probe_chose(planned: str, expected: list[str]) -> None:
    """What is used is BBR in both cases, but only in the second one it is the choice for any background."""
    transport: Any = SimpleNamespace(
        begins_with=lambda _: "bbr",
        plan=SimpleNamespace(congestion=planned),
        options=SimpleNamespace(policy="fair"),
        rtt=None,
    )
    ends: Any = SimpleNamespace(far_is_source=False, is_between_servers=False)
    watch: Any = object()
    monitor = WatchedPath("default", ends, transport, None).monitor(SharedModel(), list, watch, 0.0)
    assert monitor is not None
    readings = [unknown("CC", 0.6)] * 12
    assert [name for _, name in switches(monitor._hysteresis, readings)] == expected
