"""What the row on added readings makes of them: accuracy by link, errors of decisions, switches of a copy."""

from collections.abc import Sequence

import pytest
from mpx_train.readings import ReadSeries
from recognition.sequential import (
    Tuned,
    added_up,
    answers,
    crossed,
    decisions,
    figures,
    right,
    tuned,
    unknown,
)
from recognition.switches import switches

from mpx.recognition.evidence import EvidenceRule
from mpx.recognition.mix import MIXES, UNKNOWN, Mix, likeliest

RULE = EvidenceRule()


def mix(name: str, probability: float) -> Mix:
    return likeliest([probability if each == name else (1 - probability) / 5 for each in MIXES])


def series(link: str, true: str, *readings: Mix) -> ReadSeries:
    return ReadSeries(link, true, True, readings)


def by(limit: float) -> Tuned:
    return Tuned(RULE, {classes: {"0.01": limit, "0.05": limit} for classes in ("six", "three")})


def test_links_count_alike_however_many_series_they_have() -> None:
    many = [series("1", "C", *[mix("C", 0.9)] * 21)] * 9
    said = [answers(each, each.readings, "six") for each in [*many, series("2", "C", *[mix("CC", 0.9)] * 21)]]
    assert right(said, 30) == {"mean": 0.5, "least": 0.0, "most": 1.0}
    made = decisions([("1", (10.0, True))] * 9 + [("2", (20.0, False)), ("3", None)])
    assert made["error"] == 0.5 and made["undecided"] == pytest.approx(1 / 11) and made["median_s"] == 10.0


def test_a_decision_is_the_first_that_is_sure_enough_and_never_unknown() -> None:
    one = series("1", "C", mix("B", 0.5), Mix(UNKNOWN, 0.99, mix("B", 0.99).shares), mix("C", 0.95))
    said = answers(one, one.readings, "six")
    assert said.decided(0.9) == (12.0, True) and said.decided(0.5) == (10.0, False)
    assert said.decided(0.96) is None
    assert [said.is_right(at) for at in (10, 11, 12, 60)] == [False, False, True, True]
    assert answers(one, one.readings, "three").true == "cubic only"


def test_limits_keep_the_error_on_the_links_they_come_from() -> None:
    """Of 105 links one is wrong with 0.91, four with 0.81, six more with 0.93."""
    shares = [0.91] + [0.81] * 4 + [0.97] * 100
    found = [
        series(str(i), "C" if share > 0.95 else "B", *[mix("C", share)] * 2) for i, share in enumerate(shares)
    ]
    sure = tuned(found).sure["six"]
    assert sure["0.01"] <= 0.9 and sure["0.05"] == 0.5
    worse = [*found, *(series(f"more {i}", "B", mix("C", 0.93), mix("C", 0.93)) for i in range(6))]
    assert tuned(worse).sure["six"]["0.01"] > 0.93 and tuned(worse).sure["six"]["0.05"] > 0.9


def test_no_series_is_judged_by_limits_of_its_own_link() -> None:
    """Each half is judged by what was tuned on the other."""
    links = [
        series(str(i), true, *[mix("C", 0.999)] * 3)
        for i, true in enumerate(["C"] * 10 + ["B"] * 10)
        for _ in range(2)
    ]
    judged = crossed(links, 1)
    assert sorted(each.link for each, _ in judged) == sorted(each.link for each in links)
    halves: dict[int, set[str]] = {}
    for each, tuned_by in judged:
        halves.setdefault(id(tuned_by), set()).add(each.link)
    first, second = halves.values()
    assert len(first) == len(second) == 10 and not first & second


def test_figures_compare_one_window_with_all() -> None:
    wrong_at_last = [mix("BC", 0.6)] * 20 + [mix("BB", 0.6)]
    found = figures([(series("1", "BC", *wrong_at_last), by(0.7))])
    assert (
        found["six"]["one window"]["30"]["mean"] == 0.0 and found["six"]["all windows"]["30"]["mean"] == 1.0
    )
    assert found["six"]["one window"]["10"]["mean"] == 1.0 and "60" not in found["six"]["all windows"]
    assert found["six"]["decisions"]["0.05"]["undecided"] == 0.0 and found["links"] == 1


def test_unknown_is_counted_by_window_and_by_all() -> None:
    strange = Mix(UNKNOWN, 0.99, mix("C", 0.9).shares)
    found = unknown([series("1", "C", strange, *[mix("C", 0.9)] * 20, strange)], RULE)
    assert found == {"first window": 1.0, "last window": 1.0, "all windows": 0.0}
    assert len(added_up(series("1", "C", strange), RULE)) == 1


@pytest.mark.parametrize("rule", [None, RULE])
def test_switches_that_are_due_and_others(rule: EvidenceRule | None) -> None:
    def seen(true: str, said: Sequence[Mix]) -> ReadSeries:
        return series("1", true, *said)

    sure_b, sure_c = [mix("B", 0.95)] * 16, [mix("C", 0.95)] * 16
    both = [seen("B", sure_b), seen("BC", sure_c), seen("none", sure_b), seen("C", sure_c)]
    assert switches(both, "cubic", rule) == {"due": 2, "made": 1, "median_s": 12.0, "others": 2, "wrong": 1}
    assert switches(both, "bbr", rule) == {"due": 2, "made": 1, "median_s": 12.0, "others": 2, "wrong": 1}
