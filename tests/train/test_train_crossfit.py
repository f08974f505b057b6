"""What would have been said is never calibrated on what it is said of."""

from dataclasses import replace

import numpy as np
import pytest
from mpx_train.crossfit import Heard, heard
from mpx_train.cut import even, gridded
from mpx_train.figures import accepted_scores, figures_of, likeliest_scores, said_scores
from mpx_train.forest import CLASSES
from mpx_train.learn import Judged, Kind
from mpx_train.unknown import alarms, said_to_be_unknown
from ops_examples import example

from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.recognition.observation import PASSIVE, TRANSFER_BBR
from mpx.rtt.series import Probe

LINKS, EACH = 8, 30


def series(seconds: int = 5) -> list[Probe]:
    return [Probe(i / 10, 0.05) for i in range(10 * seconds)]


def judged(strange_links: tuple[int, ...] = (), right: float = 0.9) -> Judged:
    """Windows of all mixes on some links, a fold each; on the strange ones all are far from every mix."""
    dice = np.random.default_rng(1)
    plan = [(link, MIXES[i % 6]) for link in range(LINKS) for i in range(EACH)]
    examples = [
        example(mix, series(), run=f"{link} {i}", link=f"link {link}", own=("bbr", 4 if i % 2 else 1))
        for i, (link, mix) in enumerate(plan)
    ]
    windows = even(gridded(examples), 5.0)
    links = np.array([link for link, _ in plan])
    shares = np.full((len(plan), len(CLASSES)), 0.02)
    said = [MIXES.index(mix) if dice.random() < right else int(dice.integers(0, 6)) for _, mix in plan]
    shares[np.arange(len(plan)), said] = 0.88
    far = np.isin(links, strange_links)
    return Judged(windows, np.zeros(len(plan), bool), links, shares, dice.uniform(1, 2, len(plan)) + 50 * far)


def test_a_link_that_is_unlike_all_others_is_a_false_alarm_throughout() -> None:
    """Were it among what calibrates, its windows would be an eighth of the known, and so not strange."""
    said = heard(judged((3,)))
    strange = said.judged.windows.link == "link 3"
    assert said.is_novel[strange].all() and said.is_novel[~strange].mean() < 0.1
    told = alarms(said)
    assert told.most == 1.0 and told.mean == pytest.approx(said.is_novel.mean())
    assert told.links_with_many == pytest.approx(1 / LINKS, abs=0.13)


def test_the_temperature_of_a_fold_comes_from_the_others() -> None:
    """One link where the trees are always wrong makes them less sure elsewhere, but not on itself."""
    plain = judged(right=1.0)
    wrong = plain.fold == 0
    shares = plain.shares.copy()
    shares[wrong, :6] = np.roll(shares[wrong, :6], 1, axis=1)
    said = heard(replace(plain, shares=shares))
    sure = said.probabilities.max(axis=1)
    assert sure[wrong].min() > 0.99 > sure[~wrong].max()


def test_calibration_takes_other_folds() -> None:
    with pytest.raises(ValueError, match="other fold"):
        heard(replace(judged(), fold=np.zeros(LINKS * EACH, int)))


def said_by_hand() -> Heard:
    plain = judged(right=1.0)
    some = heard(plain)
    strange = np.arange(len(plain.fold)) % 10 == 0
    probabilities = some.probabilities.copy()
    wrong = np.arange(len(plain.fold)) % 10 == 1
    probabilities[wrong] = np.roll(probabilities[wrong], 1, axis=1)
    return Heard(plain, probabilities, strange)


def test_unknown_is_wrong_as_said_and_left_out_where_it_was_not_unknown() -> None:
    some = said_by_hand()
    assert (some.said == UNKNOWN).mean() == pytest.approx(0.1)
    assert said_scores(some).six.mean == pytest.approx(0.8)
    assert likeliest_scores(some).six.mean == pytest.approx(0.9)
    assert accepted_scores(some).six.mean == pytest.approx(8 / 9)
    assert said_scores(some).three.mean <= accepted_scores(some).three.mean


def test_outside_traffic_is_right_as_unknown_or_as_what_it_is_like() -> None:
    plain = judged(right=1.0)
    mixes = plain.mix.copy().astype("<U9")
    names = np.array(["many", "reno"] * (len(mixes) // 2))
    outside = np.arange(len(mixes)) < 60
    mixes[outside] = names[outside]
    changed = replace(plain, windows=replace(plain.windows, mix=mixes))
    some = Heard(changed, heard(plain).probabilities, np.zeros(len(mixes), bool))
    told = said_to_be_unknown(some)
    assert told["many"] == 0.0
    truth = plain.mix[outside & (mixes == "reno")]
    assert told["reno"] == pytest.approx((truth == "C").mean()) and told["reno"] > 0
    strange = replace(some, is_novel=np.ones(len(mixes), bool))
    assert set(said_to_be_unknown(strange).values()) == {1.0}


def test_the_figures_of_a_part_say_all_of_it() -> None:
    plain = judged()
    both = replace(plain, base_known=np.arange(len(plain.fold)) % 2 == 0)
    told = figures_of(Kind(TRANSFER_BBR, 5.0), both)
    assert told["split"].startswith("8 folds of 8 links") and told["windows"] == LINKS * EACH / 2
    for base in ("base: least of the window", "base: least ever seen"):
        clean = told[base]["clean"]
        assert clean["said"]["six"]["mean"] <= clean["likeliest"]["six"]["mean"] <= 1
        assert told[base]["with other traffic"]["said"]["six"] is None
    assert set(told["by our streams"]) == {"1", "4"}
    assert "by our streams" not in figures_of(Kind(PASSIVE, 5.0), both)
    assert sum(sum(row.values()) for row in told["confusion"].values()) == LINKS * EACH
