"""Evidence of the background: many readings are surer than one, but less than as many independent ones."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.recognition.evidence import CONTRADICTED_S, Evidence, EvidenceRule
from mpx.recognition.mix import GROUP_OF, MIXES, UNKNOWN, Mix, likeliest

RULE = EvidenceRule()
SHARES = st.lists(st.floats(0.001, 1), min_size=6, max_size=6).map(
    lambda them: tuple(each / sum(them) for each in them)
)
READINGS = st.builds(
    lambda shares, is_unknown: Mix(UNKNOWN, 0.97, shares) if is_unknown else likeliest(shares),
    SHARES,
    st.booleans(),
)


def mix(name: str, probability: float) -> Mix:
    rest = (1 - probability) / (len(MIXES) - 1)
    return likeliest([probability if each == name else rest for each in MIXES])


def unknown(name: str, probability: float) -> Mix:
    return Mix(UNKNOWN, 0.97, mix(name, probability).shares)


def after(*readings: Mix, rule: EvidenceRule = RULE) -> Evidence:
    evidence = None
    for each in readings:
        evidence = rule.after(evidence, each, 1.0)
    assert evidence is not None
    return evidence


@given(SHARES)
def test_one_reading_says_what_it_says(shares: tuple[float, ...]) -> None:
    assert after(likeliest(shares)).mix.shares == pytest.approx(shares)


@given(st.lists(READINGS, min_size=1, max_size=60), st.floats(0.5, 20))
def test_whatever_is_read_shares_are_probabilities(readings: list[Mix], step_s: float) -> None:
    evidence = None
    for each in readings:
        evidence = RULE.after(evidence, each, step_s)
        said = evidence.mix
        assert sum(said.shares) == pytest.approx(1) and min(said.shares) >= 0
        assert 0 <= said.probability <= 1
        assert evidence.rival is None or evidence.rival.spans_s < CONTRADICTED_S


@given(st.sampled_from(MIXES), st.floats(0.3, 0.9), st.integers(2, 60))
def test_readings_that_agree_are_surer_together_but_not_as_if_they_were_independent(
    name: str, probability: float, times: int
) -> None:
    said = after(*[mix(name, probability)] * 20 * times).mix
    assert said.name == name and said.probability > probability
    odds, one = (math.log(each / (1 - each)) for each in (said.probability, probability))
    rest = math.log(len(MIXES) - 1)
    # Each second counts for a tenth of what is left: all readings together as much as two at most.
    assert odds + rest <= 2.01 * (one + rest)


def test_more_readings_of_the_right_one_outweigh_fewer_of_the_wrong_one() -> None:
    turns = [mix("BC", 0.5), mix("BC", 0.5), mix("BB", 0.5)] * 10
    assert after(*turns).mix.name == "BC" and turns[-1].name == "BB"


def test_old_readings_fade() -> None:
    def left(rule: EvidenceRule) -> float:
        return after(*[mix("C", 0.9)] * 10, *[mix("CC", 0.6)] * 20, rule=rule).mix.shares[MIXES.index("C")]

    assert left(EvidenceRule(fade=0.9)) < left(RULE) < left(EvidenceRule(fade=1.0))


def test_readings_of_another_group_replace_what_they_contradict_once_no_probe_is_shared() -> None:
    before = [mix("C", 0.95)] * 100
    contradict = [mix("B", 0.9)] * (int(CONTRADICTED_S) + 1)
    assert after(*before, *contradict).mix == after(*contradict).mix
    assert after(*before, *contradict[:-1]).mix.group == "cubic only"
    interrupted = [*contradict[:-1], mix("CC", 0.5), *contradict[:-1]]
    assert after(*before, *interrupted).spans_s > 100  # agreement begins the count anew


@given(st.integers(1, 11), st.integers(1, 11))
def test_a_contradiction_outlasts_readings_that_say_nothing(first: int, gap: int) -> None:
    before = [mix("C", 0.95)] * 100
    run = [mix("B", 0.9)] * first + [unknown("C", 0.9)] * gap + [mix("B", 0.9)] * (14 - first)
    assert GROUP_OF[after(*before, *run).mix.name] == "any bbr"


def test_it_is_unknown_where_most_readings_are() -> None:
    known = mix("C", 0.9)
    assert after(known, *[unknown("B", 0.9)] * 3).mix.name == "C"
    said = after(known, *[unknown("B", 0.9)] * 30).mix
    assert (said.name, said.probability) == (UNKNOWN, 0.97)
    assert after(unknown("B", 0.9), *[known] * 30).mix.name == "C"


def test_a_reading_that_is_unknown_adds_little() -> None:
    first = mix("C", 0.6)
    added = after(first, *[unknown("C", 0.9)] * 3).mix.probability
    assert added < after(first, *[mix("C", 0.9)] * 3).mix.probability


@given(st.lists(READINGS, min_size=2, max_size=12))
def test_a_long_step_counts_as_one_whole_reading_at_most(readings: list[Mix]) -> None:
    """Windows that share nothing: the last of them can only count as the first did."""
    evidence = None
    for each in readings:
        evidence = RULE.after(evidence, each, 1000.0)
    last = after(readings[-1])
    if readings[-1].name != UNKNOWN:
        assert evidence is not None and evidence.mix.shares == pytest.approx(last.mix.shares, abs=1e-6)
