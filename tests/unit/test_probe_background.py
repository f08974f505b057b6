"""What a probe says of who shares the path, and what a copy would do; the model says what it is told."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.choices import POLICIES, SVM
from mpx.errors import UsageError
from mpx.probing.background import CongestionChoice, background, bottleneck, unrecognised
from mpx.recognition.mix import GROUPS, MIXES, UNKNOWN, Mix
from mpx.recognition.policy import before_anything_is_known
from mpx.recognition.switching import STEADY_READINGS, SwitchHysteresis
from mpx.rtt.series import Probe

SERIES = [Probe(i / 10, 0.06 + 0.01 * (i % 5)) for i in range(100)]


class Says:
    """A model."""

    def __init__(self, mix: Mix, window_s: float = 5.0) -> None:
        self.asked: list[tuple[float, Any, str]] = []
        self._mix, self._window_s = mix, window_s

    @property
    def name(self) -> str:
        return SVM

    def window_s(self, kind: str) -> float:
        return self._window_s

    def classify(self, series: Any, base_s: float, goodput: Any = None, *, kind: str) -> Mix:
        self.asked.append((base_s, goodput, kind))
        return self._mix


def of(group: str, name: str = "C", share: float = 0.9) -> Mix:
    return Mix(name, share, shares({**dict.fromkeys(GROUPS, (1 - share) / 2), group: share}))


def shares(groups: Mapping[str, float]) -> list[float]:
    """Return shares of the mixes that give the groups these, all in the first mix of each."""
    firsts = {"none": "none", "C": "cubic only", "B": "any bbr"}
    return [groups[firsts[mix]] if mix in firsts else 0.0 for mix in MIXES]


def told(mix: Mix, policy: str = "fair", why_not: Callable[[str], str] = lambda _: "", **more: Any) -> Any:
    return background(SERIES, policy, load=lambda: Says(mix), why_not=why_not, **more)


def test_the_least_of_the_window_is_its_base() -> None:
    model = Says(of("none"))
    goodput = [(0.1, 1e6)]
    background(SERIES, "fair", "active short", goodput, load=lambda: model, why_not=lambda _: "")
    assert model.asked == [(0.06, goodput, "active short")]


@pytest.mark.parametrize(
    ("policy", "group", "wants"),
    [
        ("fair", "none", "cubic"),
        ("fair", "cubic only", "cubic"),
        ("fair", "any bbr", "bbr"),
        ("fast", "cubic only", "bbr"),
        ("scavenger", "any bbr", "cubic"),
    ],
)
def test_the_decision_is_the_policys(policy: str, group: str, wants: str) -> None:
    found = told(of(group), policy)
    assert (found.decision.congestion, found.decision.policy) == (wants, policy)
    assert f"probably {group}" in found.decision.reason and found.trouble == ""


def test_what_is_not_permitted_is_not_decided() -> None:
    found = told(of("any bbr"), why_not=lambda name: f"no {name} here" if name == "bbr" else "")
    assert found.decision.congestion == "cubic" and "no bbr here" in found.decision.reason
    found = told(of("any bbr"), why_not=lambda name: f"no {name} here")
    assert found.decision.congestion is None


def test_it_decides_nothing_that_no_copy_would() -> None:
    """A copy waits for a probability of 0.8, of all groups for which the policy wants the same."""
    likeliest = Mix("B", 0.5, shares({"none": 0.05, "cubic only": 0.2, "any bbr": 0.75}))
    for policy, wants in ("fair", "cubic"), ("fast", "bbr"):
        assert told(likeliest, policy).decision.congestion == wants
    assert told(likeliest).decision.reason == "the background is not certain (any bbr, 75%)"
    both = told(Mix("none", 0.45, shares({"none": 0.45, "cubic only": 0.4, "any bbr": 0.15})))
    together = "the background is probably none or cubic only (85% together)"
    assert both.decision == CongestionChoice("fair", "cubic", together)
    assert told(likeliest, "fast").decision.reason == "the policy has the same choice for any background"


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), st.sampled_from(POLICIES))
def test_it_decides_what_a_copy_would_do_that_reads_the_same_again_and_again(
    weights: list[float], policy: str
) -> None:
    """But for what only many readings show that are not sure: a probe has one."""
    groups = {group: each / sum(weights) for group, each in zip(GROUPS, weights, strict=True)}
    mix = Mix("C", 0.3, shares(groups))
    uses = before_anything_is_known(policy)
    hysteresis = SwitchHysteresis(policy, uses, lambda _: "")
    for _ in range(STEADY_READINGS - 1):
        if switch := hysteresis.read(mix):
            uses = switch.congestion
            hysteresis.made(uses)
    assert told(mix, policy).decision.congestion == uses


def test_what_only_comes_with_the_route_is_had_to_begin_with() -> None:
    def unless(*names: str) -> Callable[[str], str]:
        return lambda name: f"no {name} here" if name in names else ""

    def decided(group: str, begins: tuple[str, ...], later: tuple[str, ...]) -> str | None:
        found = told(of(group), why_not=unless(*begins), why_not_open=unless(*later))
        return str(found.decision.congestion)

    assert decided("none", (), ("cubic",)) == "cubic"
    assert decided("any bbr", (), ("bbr",)) == "cubic"
    assert decided("any bbr", (), ()) == "bbr"


@pytest.mark.parametrize("policy", ["fair", "fast"])
def test_beside_the_unknown_it_begins_as_beside_nobody(policy: str) -> None:
    alone = told(of("none"), policy).decision.congestion
    found = told(of("cubic only", UNKNOWN), policy)
    assert found.decision.congestion == alone and "is not known" in found.decision.reason
    assert found.mix is not None and found.mix.name == UNKNOWN
    assert unrecognised("why", policy).mix is None


def test_a_round_trip_that_is_too_short_to_tell_is_named() -> None:
    """Where the classifier takes whatever happens for noise, as over loopback, `unknown` has that reason."""

    def over(rtt_s: float, name: str) -> Any:
        series = [Probe(each.t_s, each.rtt_s and each.rtt_s * rtt_s / 0.06) for each in SERIES]
        return background(series, "fair", load=lambda: Says(of("none", name)), why_not=lambda _: "")

    short = "the RTT of 50 us is too short to tell; at least 1 ms is needed"
    found = over(0.00005, UNKNOWN)
    assert found.in_words() == f"unknown: {short} (nearest: none 90%, cubic only 5%, any bbr 5%)"
    assert found.decision.reason == f"the background is not known: {short}"
    assert "too short" not in over(0.00005, "none").in_words()
    assert over(0.002, UNKNOWN).in_words().startswith("unknown: unlike all training data")


def test_what_is_decided_is_told_and_after_how_long() -> None:
    sure = told(of("any bbr", "B", 0.96))
    assert sure.evidence_in_words() == "1 reading: any bbr decided after 10 s, B after 10 s"
    decided = {"group": {"name": "any bbr", "after_s": 10.0}, "class": {"name": "B", "after_s": 10.0}}
    assert sure.as_dict()["evidence"] == {"readings": 1, **decided}
    split = told(Mix("B", 0.5, [0.0, 0.02, 0.5, 0.0, 0.48, 0.0]))
    assert split.evidence_in_words() == "1 reading: any bbr decided after 10 s, the mix undecided"
    open_ = told(of("any bbr", "B", 0.9))
    assert open_.evidence_in_words() == "1 reading: undecided"
    assert open_.as_dict()["evidence"] == {"readings": 1, "group": None, "class": None}
    assert unrecognised("why", "fair").evidence_in_words() == ""
    assert unrecognised("why", "fair").as_dict()["evidence"] is None


def test_why_there_is_no_mix() -> None:
    short = background(SERIES[:40], "fair", load=lambda: Says(of("none")), why_not=lambda _: "")
    assert short.mix is None and "5 s of probes" in short.trouble

    def broken() -> Any:
        raise UsageError("the model is damaged")

    found = background(SERIES, "fair", load=broken, why_not=lambda _: "")
    assert (found.mix, found.trouble) == (None, "the model is damaged")
    silent = [Probe(i / 10, None) for i in range(100)]
    assert background(silent, "fair", load=broken, why_not=lambda _: "").trouble == "no probe was answered"


@pytest.mark.parametrize("fails", ["load", "classify"])
def test_whatever_keeps_the_model_from_telling_costs_only_the_mix(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise ImportError("no numpy")

    model = Says(of("none"))
    if fails == "classify":
        monkeypatch.setattr(model, "classify", broken)
    load = broken if fails == "load" else lambda: model
    found = background(SERIES, "fair", load=load, why_not=lambda _: "")
    assert (found.mix, found.trouble) == (None, "ImportError: no numpy")
    assert found.decision.congestion == "cubic"


def test_the_model_that_was_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it had too few probes to answer; not where there was none to ask."""
    assert told(of("none")).as_dict()["classifier"] == {"name": "svm", "model": None}
    monkeypatch.setenv("MPX_MODEL", "/models/mine")
    short = background(SERIES[:40], "fair", load=lambda: Says(of("none")), why_not=lambda _: "")
    assert short.mix is None
    assert short.as_dict()["classifier"] == {"name": "svm", "model": "/models/mine"}

    def broken() -> Any:
        raise UsageError("the model is damaged")

    assert background(SERIES, "fair", load=broken, why_not=lambda _: "").as_dict()["classifier"] is None
    assert unrecognised("why", "fair").as_dict()["classifier"] is None


def test_the_group_that_decides_leads() -> None:
    split = Mix("none", 0.41, shares({"none": 0.41, "cubic only": 0.58, "any bbr": 0.01}))
    found = told(split)
    assert found.in_words() == (
        "CUBIC only, 58% (none 41%, cubic only 58%, any bbr 1%; "
        "most probable single mix no other traffic (none), 41%)"
    )
    assert found.as_dict()["mix"]["group"] == "cubic only"
    assert found.decision.congestion == "cubic"
    assert found.decision.reason == "the background is probably none or cubic only (99% together)"
    assert told(of("any bbr", "B")).in_words() == (
        "one BBR stream (B), 90% (none 5%, cubic only 5%, any bbr 90%)"
    )


def test_interrupted_before_it_began_it_says_what_it_needs() -> None:
    assert "5 s of probes" in background([], "fair", load=lambda: Says(of("none"), 5.0)).trouble


def test_the_bottleneck_is_the_best_half_second() -> None:
    goodput = [(i / 10, 1e6 * bps) for i, bps in enumerate([0, 90, 10, 40, 50, 50, 50, 50, 50, 0])]
    found = bottleneck(SERIES, goodput, retransmits=3)
    assert found is not None and found.dropped
    assert found.rate_bps == pytest.approx(50e6) and found.queue_s == pytest.approx(0.04)
    halfway = bottleneck(SERIES, goodput, retransmits=0)
    assert halfway is not None and not halfway.dropped
    assert bottleneck(SERIES, [(0.1, 0.0)] * 10, 0) is None and bottleneck([], goodput, 0) is None
