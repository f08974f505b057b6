"""Learning: what is judged on was never learnt from, and what comes out is what mpx will say."""

from dataclasses import replace

import numpy as np
import pytest
from mpx_train import learn
from mpx_train.crossfit import heard
from mpx_train.cut import Gridded, even, gridded
from mpx_train.figures import likeliest_scores
from mpx_train.forest import OUTSIDE
from mpx_train.learn import Judged, Kind, Settings, grown, out_of_fold, part_from
from mpx_train.noise import Noise
from mpx_train.scores import Scores
from ops_examples import simulated

from mpx.errors import UsageError
from mpx.recognition.features import features
from mpx.recognition.mix import MIXES
from mpx.recognition.observation import PASSIVE

KIND = Kind(PASSIVE, 5.0)
QUICK = Settings(trees=20, copies=2, folds=4)


@pytest.fixture(scope="module")
def known() -> list[Gridded]:
    return gridded(simulated(8, 10.0))


def scores_of(judged: Judged) -> Scores:
    return likeliest_scores(heard(judged.where(judged.is_known)))


def test_links_that_were_not_learnt_from_are_recognised(known: list[Gridded]) -> None:
    judged = out_of_fold(known, [], KIND, 1, QUICK)
    assert len(judged.windows) == 2 * 8 * 6 * 3  # with both bases, and with noise
    bases = [judged.where(rows).windows.windows.base_s for rows in (judged.is_usual, judged.base_known)]
    assert (bases[0] >= bases[1]).all() and (bases[0] > bases[1]).any()
    scores = scores_of(judged)
    assert scores.six.mean > 0.5 and scores.three.mean > 0.7
    for fold in range(4):
        assert len(set(judged.windows.link[judged.fold == fold])) == 2


def test_a_recording_of_noise_is_judged_on_or_learnt_from(
    known: list[Gridded], monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = [np.full(100, 1e-4 * (number + 1)) for number in range(8)]
    learnt: list[list[float]] = []
    monkeypatch.setattr(
        learn, "grown", lambda *given: learnt.append(levels(given[-1].noise)) or grown(*given)
    )
    judged = out_of_fold(known, [], KIND, 1, replace(QUICK, noise=Noise(recordings)))
    noisy = judged.where(judged.windows.is_noisy)
    assert len(noisy.windows) == len(judged.where(judged.is_usual).windows)
    assert len(learnt) == QUICK.folds and all(len(each) == 6 for each in learnt)
    assert {level for each in learnt for level in each} == set(levels(Noise(recordings)))


def levels(noise: Noise) -> list[float]:
    return [float(each[0]) for each in noise.recorded]


def test_names_given_by_lot_cannot_be_learnt_unless_windows_leak(known: list[Gridded]) -> None:
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
    said = [seen.trees.shares(row)[: len(MIXES)].argmax() for row in features(rows.windows, PASSIVE)]
    assert np.mean(np.array(MIXES)[said] == rows.mix) > 0.6


def test_what_is_only_judged_teaches_nothing(known: list[Gridded]) -> None:
    many = [replace(grid, example=replace(grid.example, mix="many", part="outside")) for grid in known[::6]]
    judged = out_of_fold(known, [], KIND, 1, QUICK, only_judged=many)
    assert (judged.windows.mix == "many").sum() == 2 * 8 * 3
    assert judged.shares[:, -1].max() == 0.0
    learnt = out_of_fold(known, many, KIND, 1, QUICK)
    assert learnt.shares[:, -1].max() > 0.2 and OUTSIDE not in MIXES


def test_a_part_says_what_the_trees_and_the_calibration_say(known: list[Gridded]) -> None:
    judged = out_of_fold(known, [], KIND, 1, QUICK)
    part = part_from(known, [], KIND, judged, 1, QUICK)
    said = part.judge(known[0].example.single, known[0].example.rtt_s)
    assert said is not None and sum(said.probabilities) == pytest.approx(1)
    assert (part.window_s, part.kind) == (5.0, PASSIVE)


def test_a_mix_that_nobody_has_measured(known: list[Gridded]) -> None:
    with pytest.raises(UsageError, match="no passive run of B, BB to learn from"):
        grown([grid for grid in known if grid.example.mix not in ("B", "BB")], [], KIND, 1, QUICK)
