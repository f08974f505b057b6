"""All probes of a path together: which windows are read, and since when a group or a mix is decided."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.choices import SVM
from mpx.recognition.accumulated import KEPT_S, SURE, Accumulated, Decided, accumulated, windows
from mpx.recognition.mix import MIXES, NO_IDEA, UNKNOWN, Mix, likeliest
from mpx.rtt.series import Probe


def series(seconds: float) -> list[Probe]:
    return [Probe(i / 10, 0.06) for i in range(round(10 * seconds))]


class Replays:
    """A classifier that says one thing after the other, the last again and again."""

    def __init__(self, *says: Mix, window_s: float = 5.0) -> None:
        self.asked: list[Sequence[Probe]] = []
        self._says, self._window_s = list(says), window_s

    @property
    def name(self) -> str:
        return SVM

    def window_s(self, kind: str = "passive") -> float:
        return self._window_s

    def classify(self, series: Sequence[Probe], *_: Any, **__: Any) -> Mix:
        self.asked.append(series)
        return self._says.pop(0) if len(self._says) > 1 else self._says[0]


def mix(name: str, probability: float) -> Mix:
    return likeliest([probability if each == name else (1 - probability) / 5 for each in MIXES])


def told(seconds: float, *says: Mix) -> Accumulated:
    return accumulated(Replays(*says), series(seconds), 0.06)


@given(st.floats(5, 10.9), st.sampled_from(MIXES), st.floats(0.3, 0.99))
def test_ten_seconds_or_less_are_one_reading_of_them_all(seconds: float, name: str, share: float) -> None:
    model = Replays(mix(name, share))
    said = accumulated(model, series(seconds), 0.06)
    assert said.mix == mix(name, share) and said.readings == len(model.asked) == 1
    (asked,), probes = model.asked, series(seconds)
    assert asked[-1] == probes[-1] and min(100, len(probes)) <= len(asked) <= 106


def test_each_further_second_is_a_reading() -> None:
    model = Replays(mix("C", 0.7))
    assert accumulated(model, series(30), 0.06).readings == 21
    assert [round(asked[-1].t_s, 1) for asked in model.asked] == [9.9 + i for i in range(21)]
    assert all(100 <= len(asked) <= 106 for asked in model.asked)


def test_bursts_are_read_after_each_whole_period() -> None:
    model = Replays(mix("C", 0.7), window_s=10.0)
    accumulated(model, series(25), 0.06, [], kind="active short")
    assert [asked[-1].t_s for asked in model.asked] == [9.9, 14.9, 19.9, 24.9]


def test_of_a_day_the_last_two_minutes_are_read() -> None:
    ends = [end_s for end_s, _ in windows(series(1000), 10.0, 1.0)]
    assert ends[-1] == series(1000)[-1].t_s and ends[0] == pytest.approx(ends[-1] - KEPT_S + 9.9, abs=1.01)


def test_what_one_reading_leaves_open_many_decide_and_since_when_is_told() -> None:
    assert told(10, mix("BC", 0.7)) == Accumulated(mix("BC", 0.7), 1, None, None)
    said = told(60, mix("BC", 0.7))
    assert said.one is not None and said.one.name == "BC" and 10 < said.one.after_s < 60
    assert said.group is not None and said.group.name == "any bbr" and said.group.after_s <= said.one.after_s
    sooner = told(said.one.after_s, mix("BC", 0.7)).one
    assert sooner == said.one and told(said.one.after_s - 1, mix("BC", 0.7)).one is None


def test_one_sure_reading_decides_at_once() -> None:
    assert told(10, mix("C", SURE)).one == Decided("C", pytest.approx(10.0))
    assert told(10, mix("C", SURE - 0.01)).one is None


def test_a_decision_that_did_not_hold_is_none() -> None:
    """Since when it is what it is at the end counts, not when there was a decision first."""
    said = told(60, *[mix("C", 0.95)] * 10, mix("B", 0.95))
    assert said.one is not None and said.one.name == "B" and said.one.after_s > 30
    assert told(30, *[mix("C", 0.95)] * 10, mix("B", 0.7)).group is None


def test_what_is_unknown_is_not_decided() -> None:
    said = told(30, Mix(UNKNOWN, 0.99, mix("C", 0.99).shares))
    assert (said.mix.name, said.group, said.one) == (UNKNOWN, None, None)
    nothing = accumulated(Replays(Mix(UNKNOWN, 1.0, NO_IDEA)), [], 0.06)
    assert nothing == Accumulated(Mix(UNKNOWN, 1.0, NO_IDEA), 1, None, None)
