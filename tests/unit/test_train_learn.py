"""Learning: what is judged on was never learnt from, and what comes out is what mpx will say."""

from dataclasses import replace

import numpy as np
import pytest
from mpx_train.card import scores_of
from mpx_train.cut import Grid, even, gridded
from mpx_train.forest import OUTSIDE
from mpx_train.learn import Kind, Settings, grown, out_of_fold, part_from
from ops_examples import simulated

from mpx.errors import UsageError
from mpx.mix import MIXES
from mpx.ops_features import features
from mpx.ops_model import PASSIVE

KIND = Kind(PASSIVE, 5.0)
QUICK = Settings(trees=20, copies=2, folds=4)


@pytest.fixture(scope="module")
def known() -> list[Grid]:
    return gridded(simulated(8, 10.0), with_goodput=False)


def test_links_that_were_not_learnt_from_are_recognised(known: list[Grid]) -> None:
    judged = out_of_fold(known, [], KIND, 1, QUICK)
    assert len(judged.windows) == 8 * 6 * 2
    scores = scores_of(judged)
    assert scores.six.mean > 0.5 and scores.three.mean > 0.7
    for fold in range(4):
        assert len(set(judged.windows.link[judged.fold == fold])) == 2


def test_names_given_by_lot_cannot_be_learnt_unless_windows_leak(known: list[Grid]) -> None:
    """Each run has a name by lot. Whoever had seen the run would know it; nobody else can."""
    dice = np.random.default_rng(1)
    lots = [
        replace(grid, example=replace(grid.example, mix=str(mix)))
        for grid, mix in zip(known, dice.choice(MIXES, len(known)), strict=True)
    ]
    judged = out_of_fold(lots, [], KIND, 1, QUICK)
    assert scores_of(judged).six.mean < 0.35
    seen = grown(lots, [], KIND, 1, replace(QUICK, copies=4))
    rows = even(lots, KIND.window_s)

    said = [seen.trees.shares(row)[: len(MIXES)].argmax() for row in features(rows.windows)]
    assert np.mean(np.array(MIXES)[said] == rows.mix) > 0.6


def test_what_is_only_judged_teaches_nothing(known: list[Grid]) -> None:
    many = [replace(grid, example=replace(grid.example, mix="many", part="outside")) for grid in known[::6]]
    judged = out_of_fold(known, [], KIND, 1, QUICK, only_judged=many)
    assert (judged.windows.mix == "many").sum() == 8 * 2
    assert judged.shares[:, -1].max() == 0.0
    learnt = out_of_fold(known, many, KIND, 1, QUICK)
    assert learnt.shares[:, -1].max() > 0.2 and OUTSIDE not in MIXES


def test_a_part_says_what_the_trees_and_the_calibration_say(known: list[Grid]) -> None:
    judged = out_of_fold(known, [], KIND, 1, QUICK)
    part = part_from(known, [], KIND, judged, 1, QUICK)
    said = part.judge(known[0].example.single, known[0].example.rtt_s, None)
    assert said is not None and sum(said.probabilities) == pytest.approx(1)
    assert (part.window_s, part.with_goodput) == (5.0, False)


def test_a_mix_that_nobody_has_measured(known: list[Grid]) -> None:
    with pytest.raises(UsageError, match="no passive run of B, BB to learn from"):
        grown([grid for grid in known if grid.example.mix not in ("B", "BB")], [], KIND, 1, QUICK)
