"""The rows on recognising the background: what they compute, and when they say that something is not so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mpx_lab.dataset.load import Example
from mpx_train.cut import even, gridded
from mpx_train.learn import Judged, Kind, Settings
from mpx_train.scores import Scores
from ops_examples import example, simulated
from ops_f22 import BY_PIECE, F22, NEAREST, slope
from ops_f23 import F23
from ops_f24 import F24
from ops_f24 import PASSIVE as PASSIVE_CURVE
from ops_f25 import F25, folds
from ops_f26 import F26, diagonal
from ops_f27_f28 import F27F28
from recognition.bounds import place_lines, whole_runs
from recognition.candidates import CANDIDATES, OURS, PAPER_BEST, Task
from recognition.compare import LINK, RANGE, RUN, SPLITS, Comparison, comparison_lines
from recognition.outside import never_seen, rejection, rejection_lines
from recognition.paper_cell import Cell
from recognition.row import Row
from simulated_background import Wan, simulate

from mpx.errors import UsageError
from mpx.mix import MIXES
from mpx.ops_model import PASSIVE
from mpx.rtt_series import Probe

PIECES = 5


def the_papers_link() -> list[Example]:
    """Five short pieces of each mix, passive; and active, where the mix is plain to see."""
    wan = Wan(50e6, 0.128, 0.75)
    plan = [(wan, mix, 0.0) for _ in range(PIECES) for mix in MIXES]
    found = []
    for number, ((_, mix, _), series) in enumerate(zip(plan, simulate(plan, 120.0, 7), strict=True)):
        run = example(mix, series, run=f"{mix} {number}", link="paper", part="paper", wan=wan)
        plain = [Probe(p.t_s, 0.128 + 0.01 * MIXES.index(mix)) for p in series]
        found += [
            run,
            replace(run, run=f"{mix} {number} active", active=True, single=plain, paper=plain[::10]),
        ]
    return found


@pytest.fixture(scope="module")
def cell() -> list[Example]:
    return the_papers_link()


def perfect(count: int = 60, wrong: int = 0) -> Scores:
    true = np.array([MIXES[i % 6] for i in range(count)])
    said = true.copy()
    said[:wrong] = np.array([MIXES[(i + 1) % 6] for i in range(wrong)])
    return Scores(true, said, np.arange(count) // 6 % 5)


def test_the_papers_cell_is_judged_window_by_window(cell: list[Example]) -> None:
    passive = Cell.of(cell, active=False)
    for by_piece in (True, False):
        scores = passive.neighbours(10, [1, 3], by_piece=by_piece)[1]
        assert scores.six.windows == PIECES * 6 * 12 and len(np.unique(scores.fold)) == 5
        assert scores.three.mean > 0.5
    assert Cell.of(cell, active=True).neighbours(10, [1])[1].six.mean == 1.0
    with pytest.raises(UsageError, match="no active runs of the paper's link"):
        Cell.of([each for each in cell if not each.active], active=True)


@pytest.mark.parametrize("row", [F22(), F23(), F24(), F25(), F26(), F27F28()], ids=lambda row: row.name)
def test_every_row_computes_tells_and_draws(row: Row, cell: list[Example], monkeypatch) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr("recognition.paper_cell.QUICK_SECONDS", (10, 20, 40, 50))
    results = row.compute(cell, "quick")
    assert sum(line.startswith("|") for line in row.table(results)) > 4
    assert all("kept" in str(verdict) for verdict in row.verdicts(results))
    figure, axes = plt.subplots(*row.panels)
    row.draw(results, axes)
    plt.close(figure)


def test_f22_says_what_rises_and_falls() -> None:
    rising = {10: perfect(wrong=12), 20: perfect(wrong=6), 40: perfect()}
    falling = {10: perfect(wrong=20), 20: perfect(wrong=30), 40: perfect(wrong=40)}
    good = {NEAREST: rising, "MLP": falling, "SVM": falling, "GNB": falling, BY_PIECE: rising}
    assert all(verdict.kept for verdict in F22().verdicts(good))
    bad = {NEAREST: falling, "MLP": rising, "SVM": rising, "GNB": rising, BY_PIECE: rising}
    assert not any(verdict.kept for verdict in F22().verdicts(bad))
    assert slope({10: 0.5, 20: 0.7}) == pytest.approx(0.02)


def test_f24_asks_for_more_from_20_s_on() -> None:
    passive = dict.fromkeys((10, 20), perfect(wrong=6))
    barely = {
        **dict.fromkeys((f"active {k}-NN" for k in (1, 3, 5)), dict.fromkeys((10, 20), perfect(wrong=5)))
    }
    said = F24().verdicts({**barely, PASSIVE_CURVE: passive})
    assert [verdict.kept for verdict in said] == [True, False]


def test_f25_to_f28_by_hand() -> None:
    curve = {10: perfect(wrong=30), 40: perfect(wrong=3), 50: perfect(wrong=3)}
    assert [v.kept for v in F25().verdicts({"active 1-NN": curve})] == [True, True, False]
    assert folds(perfect(wrong=6)) == pytest.approx([0.5, 1, 1, 1, 1])
    assert diagonal(perfect(wrong=6)) == pytest.approx(0.9)
    matrices = {f"active {k}-NN": perfect(wrong=k) for k in (1, 3, 5)}
    assert all(v.kept for v in F26().verdicts({**matrices, PASSIVE_CURVE: perfect(wrong=9)}))
    assert not any(v.kept for v in F26().verdicts({**matrices, PASSIVE_CURVE: perfect()}))
    assert all(v.kept for v in F27F28().verdicts({"active": perfect(), "passive": perfect(wrong=6)}))
    assert not any(v.kept for v in F27F28().verdicts({"active": perfect(wrong=20), "passive": perfect()}))


@pytest.fixture(scope="module")
def links() -> list[Example]:
    return simulated(6, 10.0, loads=(0.0, 0.08))


def test_all_candidates_learn_and_what_they_said_is_kept(links: list[Example], tmp_path: Path) -> None:
    grids, kind = gridded(links, with_goodput=False), Kind(PASSIVE, 5.0)
    comparison = Comparison(grids, kind, 3, tmp_path)
    some = [PAPER_BEST, OURS]
    assert len(comparison.missing(some, SPLITS)) == 6
    for candidate in some:
        comparison.compute(candidate, LINK)
    assert comparison.missing(some, SPLITS) == [(c, s) for s in (RUN, RANGE) for c in some]
    ours, paper = (comparison.outcome(candidate, LINK) for candidate in (OURS, PAPER_BEST))
    assert ours.clean.six.windows == ours.disturbed.six.windows == 6 * 6 * 2
    assert ours.clean.three.mean > paper.clean.three.mean
    assert len(list(comparison_lines({(OURS, LINK): ours}))) == 3


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_candidate_says_a_mix_for_every_window(name: str, links: list[Example]) -> None:
    grids = gridded(links[:24], with_goodput=False)
    judge = even(gridded(links[24:30], with_goodput=False), 5.0)
    said = CANDIDATES[name](Task(grids, judge, 5.0, 1))
    assert said.shape == judge.mix.shape and set(said.tolist()) <= set(MIXES)


def wild(number: int) -> Example:
    """Traffic that no mix makes."""
    dice = np.random.default_rng(number)
    series = [Probe(i / 10, float(rtt)) for i, rtt in enumerate(0.02 + dice.exponential(0.1, 100))]
    return example("wild", series, run=f"wild {number}", link=f"link {number}", part="outside")


def test_what_is_outside_is_told_apart(links: list[Example]) -> None:
    known = gridded(links, with_goodput=False)
    outside = gridded([wild(number) for number in range(6)], with_goodput=False)
    by, kind = Settings(trees=20, copies=2, folds=3), Kind(PASSIVE, 5.0)
    seen, unseen = rejection(known, outside, kind, by), never_seen(known, outside, kind, by)
    assert seen.mean > 0.9 and unseen.mean > 0.9
    assert seen.alarms <= 0.06 and unseen.alarms <= 0.06
    assert any(line.startswith("| wild | 1.00 |") for line in rejection_lines(seen, unseen))


def test_where_it_fails_is_told_by_place_and_runs_are_judged_whole(links: list[Example]) -> None:
    windows = even(gridded(links, with_goodput=False), 5.0)
    shares = np.full((len(windows), 7), 0.01)
    truth = np.array([MIXES.index(mix) for mix in windows.mix])
    shares[np.arange(len(truth)), truth] = 0.5
    shares[::2] = 1 / 7  # every other window says nothing
    judged = Judged(windows, np.zeros(len(truth), int), shares, np.zeros(len(truth)))
    lines = place_lines(judged)
    assert sum(int(line.split("|")[2]) for line in lines[2:]) == 2 * len(truth)
    whole = whole_runs(judged)
    assert whole.six.windows == len(links) and whole.six.mean == 1.0
