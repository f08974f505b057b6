"""What streams begin with under each policy, and where who sends may not use it, or cannot be told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.choices import POLICIES
from mpx.recognition.policy import why_not_from
from mpx.report import Severity
from mpx.transfer.congestion_plan import FAST_NOT_HAD, SERVER_CHOOSES, Plan, named, plan

ALL = {"cubic", "bbr", "reno"}


def of(asked: str, policy: str = "fair", may: set[str] | None = None) -> Plan:
    usable = ALL if may is None else may
    return plan(asked, policy, lambda name: "" if name in usable else f"{name} is not permitted")


def test_a_name_is_taken_as_it_is_and_stays() -> None:
    assert of("reno") == Plan("reno")
    assert (named("reno"), named("auto"), named("kernel")) == ("reno", None, None)


def test_the_kernels_choice_is_left_alone() -> None:
    assert of("kernel") == Plan(None)


def test_fair_begins_with_cubic_and_watches() -> None:
    assert of("auto") == Plan("cubic", selects=True)


@pytest.mark.parametrize(("policy", "first"), [("fast", "bbr"), ("scavenger", "cubic")])
def test_policies_that_never_change_watch_nothing(policy: str, first: str) -> None:
    assert of("auto", policy) == Plan(first, yields=policy == "scavenger")


def test_what_may_not_be_used_is_said_with_why() -> None:
    without = of("auto", may={"cubic", "reno"})
    assert (without.congestion, without.selects) == ("cubic", False)
    assert without.note == (
        "--policy fair may want another congestion control later, but bbr is not permitted"
    )
    instead = of("auto", may={"bbr", "reno"})
    assert (instead.congestion, instead.selects) == ("reno", True)
    assert instead.note == "--policy fair wants cubic, but cubic is not permitted"
    nothing = of("auto", may=set())
    assert (nothing.congestion, nothing.selects) == (None, False) and "cubic is not permitted" in nothing.note


def test_a_server_that_cannot_be_told_is_left_alone_and_that_is_said() -> None:
    assert plan("auto", "fair", None) == Plan(None, note=SERVER_CHOOSES)
    assert "congctl" in SERVER_CHOOSES


@given(
    st.sampled_from(["auto", "kernel", "reno"]),
    st.sampled_from(POLICIES),
    st.sets(st.sampled_from(sorted(ALL))),
)
def test_auto_never_takes_what_may_not_be_used(asked: str, policy: str, may: set[str]) -> None:
    found = of(asked, policy, may)
    if asked == "auto":
        assert found.congestion is None or found.congestion in may
        assert found.note or found.congestion in may
    if found.selects:
        assert len(may) >= 2


def test_what_the_route_has_anyway_needs_no_permission() -> None:
    """An ordinary user whose administrator permits reno and bbr, over a route that has cubic."""
    asked = why_not_from("cubic", lambda name: "" if name in ("reno", "bbr") else "no", is_locked=False)
    assert plan("auto", "fair", asked) == Plan("cubic", selects=True)
    assert plan("auto", "fair", why_not_from("reno", asked, is_locked=False)).congestion == "cubic"


def test_what_was_asked_for_by_hand_and_is_not_had_is_said_so() -> None:
    assert plan("auto", "fast", None).note == f"{FAST_NOT_HAD}: {SERVER_CHOOSES}"
    assert plan("auto", "fair", None).note == SERVER_CHOOSES


def test_a_route_that_locks_its_own_leaves_no_choice() -> None:
    locked = plan("auto", "fair", why_not_from("bbr", lambda _: "", is_locked=True))
    assert (locked.congestion, locked.selects) == (None, False)
    assert "the route to the server has bbr and locks it" in locked.note
    assert plan("auto", "fast", why_not_from("bbr", lambda _: "", is_locked=True)).congestion == "bbr"
    assert plan("auto", "fair", why_not_from(None, lambda _: "", is_locked=False)) == Plan(
        "cubic", selects=True
    )


def test_open_streams_are_not_switched_to_what_only_comes_with_the_route() -> None:
    def not_permitted(name: str) -> str:
        return "" if name == "cubic" else f"{name} is not permitted"

    over_bbr = why_not_from("bbr", not_permitted, is_locked=False)
    later = plan("auto", "fair", over_bbr, not_permitted)
    assert (later.congestion, later.selects) == ("cubic", False)
    assert "may want another congestion control later, but bbr is not permitted" in later.note
    assert plan("auto", "fast", over_bbr, not_permitted) == Plan("bbr")


@pytest.mark.parametrize("asked", ["kernel", "reno"])
def test_a_policy_goes_with_any_congestion_control(asked: str) -> None:
    """It then says how much of a path the copy takes, and how it yields."""
    for policy in ("fair", "fast", "scavenger"):
        chosen = plan(asked, policy, lambda _: "")
        assert chosen.congestion == (None if asked == "kernel" else asked)
        assert chosen.yields == (policy == "scavenger") and not chosen.selects


def test_a_name_for_a_server_that_nobody_can_tell_is_a_line_of_the_report() -> None:
    chosen = plan("reno", "scavenger", None)
    assert chosen.congestion is None and chosen.yields
    assert chosen.note.startswith("--congestion reno is not available: the server sends")
    assert chosen.severity is Severity.NOTICE
