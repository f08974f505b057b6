"""What a policy wants beside each mix, and what it takes where it may not have it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.choices import POLICIES
from mpx.recognition.mix import ANY_BBR, CUBIC_ONLY, GROUPS, NOBODY
from mpx.recognition.policy import before_anything_is_known, permitted, wanted


def test_fair_takes_bbr_only_where_bbr_is() -> None:
    assert {group: wanted("fair", group) for group in GROUPS} == {
        NOBODY: "cubic",
        CUBIC_ONLY: "cubic",
        ANY_BBR: "bbr",
    }
    assert before_anything_is_known("fair") == "cubic"


def test_fast_takes_bbr_and_a_scavenger_never() -> None:
    assert {wanted("fast", group) for group in GROUPS} == {before_anything_is_known("fast")} == {"bbr"}
    assert {wanted("scavenger", group) for group in GROUPS} == {"cubic"}


@pytest.mark.parametrize(
    ("congestion", "may", "taken"),
    [
        ("cubic", {"cubic", "bbr", "reno"}, "cubic"),
        ("cubic", {"bbr", "reno"}, "reno"),
        ("cubic", {"bbr"}, None),
        ("bbr", {"cubic", "reno"}, "cubic"),
        ("bbr", {"reno"}, "reno"),
    ],
)
def test_what_does_no_more_harm_comes_next(congestion: str, may: set[str], taken: str | None) -> None:
    found = permitted(congestion, lambda name: "" if name in may else f"no {name}")
    assert (found.congestion, found.taken) == (congestion, taken)
    assert found.refused == ("" if taken == congestion else f"no {congestion}")


@given(st.sampled_from(POLICIES), st.sampled_from(GROUPS), st.sets(st.sampled_from(["cubic", "bbr", "reno"])))
def test_nothing_is_taken_that_may_not_be_used(policy: str, group: str, may: set[str]) -> None:
    wish = wanted(policy, group)
    found = permitted(wish, lambda name: "" if name in may else "no")
    assert found.taken is None or found.taken in may
    assert found.taken == wish or wish not in may
    if wish == "cubic":
        assert found.taken != "bbr"
