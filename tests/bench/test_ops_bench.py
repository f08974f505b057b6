"""The rows on recognising the background: what they compute, and when they say that something is not so."""

import argparse
import importlib
import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import ops_noise
import pytest
from figures import Verdict
from mpx_lab.dataset.load import Example
from mpx_train.crossfit import Heard
from mpx_train.cut import even, gridded
from mpx_train.learn import Judged, Kind, Settings, out_of_fold
from mpx_train.noise import Noise
from mpx_train.scores import Scores
from ops_examples import example, simulated, with_our_copy
from ops_f8 import F8, Signatures
from ops_f22 import BY_PIECE, F22, NEAREST, slope
from ops_f23 import F23
from ops_f24 import F24
from ops_f24 import PASSIVE as PASSIVE_CURVE
from ops_f25 import F25, folds
from ops_f26 import F26, diagonal
from ops_f27_f28 import F27F28, bc_for_bb
from ops_held_out import answers, asked
from ops_models import PASSIVE_10, cost, of_goals, of_the_comparison, ways_of_watching
from recognition.bounds import place_lines, stream_lines, whole_runs
from recognition.candidates import CANDIDATES, OURS, PAPER_BEST, Task
from recognition.compare import LINK, RANGE, RUN, SPLITS, Comparison, code_files, comparison_lines
from recognition.outside import never_seen, rejection, rejection_lines
from recognition.paper_cell import PaperRuns
from recognition.row import SeriesRow
from simulated_background import Wan, simulate
from small_model import write_small_model

from mpx.errors import UsageError
from mpx.ops_classifier import load
from mpx.recognition.mix import MIXES, UNKNOWN, Mix, likeliest
from mpx.recognition.model import Model
from mpx.recognition.observation import DIPS_BBR, PASSIVE, TRANSFER_BBR, Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.series import Probe

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
            replace(run, run=f"{mix} {number} active", profile="paper", single=plain, paper=plain[::10]),
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


@pytest.mark.long
def test_the_papers_cell_is_judged_window_by_window(cell: list[Example]) -> None:
    passive = PaperRuns.of(cell, active=False)
    for by_piece in (True, False):
        scores = passive.neighbours(10, [1, 3], by_piece=by_piece)[1]
        assert scores.six.windows == PIECES * 6 * 12 and len(np.unique(scores.fold)) == 5
        assert scores.three.mean > 0.5
    assert PaperRuns.of(cell, active=True).neighbours(10, [1])[1].six.mean == 1.0
    with pytest.raises(UsageError, match="no active runs of the paper's link"):
        PaperRuns.of([each for each in cell if not each.profile], active=True)


def judged(row: SeriesRow, results: Any) -> list[Verdict]:
    """Return what a row says of its results, as they are stored."""
    stored = json.loads(json.dumps(row.measured(results)))
    return list(importlib.import_module(type(row).__module__).judge(stored))


LATER = (F22(), F23(), F24(), F25(), F26(), F27F28())


@pytest.mark.parametrize(
    "row",
    [pytest.param(F8(), id="f8"), *(pytest.param(row, id=row.name, marks=pytest.mark.long) for row in LATER)],
)
def test_every_row_computes_tells_and_draws(row: SeriesRow, cell: list[Example], monkeypatch) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr("recognition.paper_cell.QUICK_SECONDS", (10, 20, 40, 50))
    results = row.compute(cell, "quick")
    assert sum(line.startswith("|") for line in row.table(results)) >= 4
    said = judged(row, results)
    assert said and all(str(verdict).count(" / ") == 2 for verdict in said)
    figure, axes = plt.subplots(*row.panels)
    row.draw(results, axes)
    plt.close(figure)


def test_f22_says_what_rises_and_falls() -> None:
    rising = {10: perfect(wrong=12), 20: perfect(wrong=6), 40: perfect()}
    falling = {10: perfect(wrong=20), 20: perfect(wrong=30), 40: perfect(wrong=40)}
    good = {NEAREST: rising, "MLP": falling, "SVM": falling, "GNB": falling, BY_PIECE: rising}
    assert all(verdict.kept for verdict in judged(F22(), good))
    bad = {NEAREST: falling, "MLP": rising, "SVM": rising, "GNB": rising, BY_PIECE: rising}
    assert not any(verdict.kept for verdict in judged(F22(), bad))
    assert slope({"10": 0.5, "20": 0.7}) == pytest.approx(0.02)


def test_f8_compares_medians_of_pairs() -> None:
    mixes = np.array(["C", "C", "B", "B"])

    def those(same: float, other: float) -> Signatures:
        apart = np.where(mixes[:, None] == mixes, same, other) * (1 - np.eye(4))
        return Signatures(np.zeros((4, 90)), mixes, apart)

    assert (those(2, 3).within, those(2, 3).between) == (2, 3)
    said = judged(F8(), {"passive": those(2, 3), "active": those(2, 8)})
    assert [verdict.kept for verdict in said] == [True, True, True]
    said = judged(F8(), {"passive": those(3, 2), "active": those(3, 1)})
    assert not any(verdict.kept for verdict in said)


def test_f24_asks_for_more_from_20_s_on() -> None:
    passive = dict.fromkeys((10, 20), perfect(wrong=6))
    barely = {
        **dict.fromkeys((f"active {k}-NN" for k in (1, 3, 5)), dict.fromkeys((10, 20), perfect(wrong=5)))
    }
    said = judged(F24(), {**barely, PASSIVE_CURVE: passive})
    assert [verdict.kept for verdict in said] == [True, False]


def test_f25_to_f28_by_hand() -> None:
    curve = {10: perfect(wrong=30), 40: perfect(wrong=3), 50: perfect(wrong=3)}
    assert [v.kept for v in judged(F25(), {"active 1-NN": curve})] == [True, True, False]
    assert folds(perfect(wrong=6)) == pytest.approx([0.5, 1, 1, 1, 1])
    assert diagonal(perfect(wrong=6)) == pytest.approx(0.9)
    matrices = {f"active {k}-NN": perfect(wrong=k) for k in (1, 3, 5)}
    assert all(v.kept for v in judged(F26(), {**matrices, PASSIVE_CURVE: perfect(wrong=9)}))
    assert not any(v.kept for v in judged(F26(), {**matrices, PASSIVE_CURVE: perfect()}))
    assert all(v.kept for v in judged(F27F28(), {"active": perfect(), "passive": perfect(wrong=6)}))
    assert not any(v.kept for v in judged(F27F28(), {"active": perfect(wrong=20), "passive": perfect()}))
    assert bc_for_bb(perfect(wrong=6)) == pytest.approx(0.1)  # of ten windows of BC one is taken for BB


@pytest.fixture(scope="module")
def links() -> list[Example]:
    return simulated(6, 10.0, loads=(0.0, 0.08))


def test_all_candidates_learn_and_what_they_said_is_kept(links: list[Example], tmp_path: Path) -> None:
    grids, kind = gridded(links), Kind(PASSIVE, 5.0)
    comparison = Comparison(grids, kind, "quick", tmp_path)
    some = [PAPER_BEST, OURS]
    assert len(comparison.missing(some, SPLITS)) == 6
    for candidate in some:
        comparison.compute(candidate, LINK)
    assert comparison.missing(some, SPLITS) == [(c, s) for s in (RUN, RANGE) for c in some]
    ours, paper = (comparison.outcome(candidate, LINK) for candidate in (OURS, PAPER_BEST))
    assert ours.clean.six.windows == ours.disturbed.six.windows == 6 * 6 * 2
    assert ours.clean.three.mean > paper.clean.three.mean
    assert len(list(comparison_lines({(OURS, LINK): ours}))) == 3
    other = [replace(grids[0], rtt_s=grids[0].rtt_s + 0.001), *grids[1:]]
    assert (
        len(Comparison(other, kind, "quick", tmp_path).missing(some, SPLITS)) == 6
    )  # other series, same names


def test_what_was_computed_is_named_for_all_code_that_makes_it() -> None:
    named = {str(file.relative_to(BENCH.parent)) for file in code_files()}
    recognition = {f"mpx/recognition/{part}.py" for part in ("features", "windows", "mix", "trees")}
    assert named >= {*recognition, "train/mpx_train/cut.py", "bench/recognition/candidates.py"}


def test_full_leaves_one_link_out_at_a_time(links: list[Example], tmp_path: Path) -> None:
    comparison = Comparison(gridded(links), Kind(PASSIVE, 5.0), "full", tmp_path)
    assert len(comparison.splits(LINK)) == 6


SLOW = {"boosted trees"}  # to grow


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in CANDIDATES]
)
def test_every_candidate_says_a_mix_for_every_window(name: str, links: list[Example]) -> None:
    judge = even(gridded(links[24:30]), 5.0)
    said = CANDIDATES[name](Task(gridded(links[:24]), judge, Kind(PASSIVE, 5.0), 1))
    assert said.shape == judge.mix.shape and set(said.tolist()) <= set(MIXES)


def wild(number: int) -> Example:
    """Traffic that no mix makes."""
    dice = np.random.default_rng(number)
    series = [Probe(i / 10, float(rtt)) for i, rtt in enumerate(0.02 + dice.exponential(0.1, 100))]
    return example("wild", series, run=f"wild {number}", link=f"link {number}")


def test_what_is_outside_is_told_apart(links: list[Example]) -> None:
    known, outside = gridded(links), gridded([wild(number) for number in range(6)])
    by, kind = Settings(trees=20, copies=2, folds=3), Kind(PASSIVE, 5.0)
    seen, unseen = rejection(out_of_fold(known, outside, kind, 1, by)), never_seen(known, outside, kind, by)
    assert seen.mean > 0.9 and unseen["wild"] > 0.9
    assert seen.alarms.mean <= 0.15
    assert any(line.startswith("| wild | 1.00 |") for line in rejection_lines(seen, unseen))


def test_where_it_fails_is_told_by_place_and_runs_are_judged_whole(links: list[Example]) -> None:
    windows = even(gridded(links), 5.0)
    truth = np.array([MIXES.index(mix) for mix in windows.mix])
    probabilities = np.full((len(windows), 6), 0.01)
    probabilities[np.arange(len(truth)), truth] = 0.5
    probabilities[::2] = 1 / 6  # every other window says nothing
    nothing = np.zeros(len(truth))
    judged = Judged(windows, nothing > 0, nothing.astype(int), probabilities, nothing)
    known = Heard(judged, probabilities, nothing > 0)
    assert sum(int(line.split("|")[2]) for line in place_lines(known)[2:]) == 2 * len(truth)
    assert [int(line.split("|")[2]) for line in stream_lines(known)[2:]] == [len(truth)]
    whole = whole_runs(known)
    assert whole.six.windows == len(links) and whole.six.mean == 1.0


def test_ours_has_to_be_far_above_the_papers_and_the_best() -> None:
    all_alike = dict.fromkeys(CANDIDATES, 0.66)
    said = of_the_comparison({**all_alike, OURS: 0.83})
    assert [verdict.kept for verdict in said] == [True, True]
    barely = of_the_comparison({**all_alike, OURS: 0.80})
    assert [verdict.kept for verdict in barely] == [False, True]
    beaten = of_the_comparison({**all_alike, OURS: 0.83, "QUANT": 0.86})
    assert [verdict.kept for verdict in beaten] == [True, False]


def test_the_goals_are_those_of_the_likeliest_mix() -> None:
    def way(kind: str, condition: str, likeliest: float, said: float) -> dict[str, Any]:
        both = {"likeliest": likeliest, "as_said": said}
        return {
            "kind": kind,
            "condition": condition,
            **{key: dict.fromkeys(("six", "three"), share) for key, share in both.items()},
        }

    (six, three) = of_goals(way(PASSIVE, "clean", 0.9, 0.8))
    assert six.kept and "0.800" in six.measured and not three.kept
    assert not list(of_goals(way(PASSIVE, "all", 1.0, 1.0)))
    (in_a_transfer,) = of_goals(way(TRANSFER_BBR, "all", 0.9, 1.0))
    assert not in_a_transfer.kept and "three" in in_a_transfer.limit


@pytest.mark.long
def test_all_ways_of_watching_are_told_and_those_not_measured_are_said_so() -> None:
    runs = [*simulated(4, 10.0), *with_our_copy(4, 10.0)]
    ways: list[dict[str, Any]] = []
    lines = list(ways_of_watching(runs, Settings(trees=10, copies=1, folds=2), ways))
    told = "\n".join(lines)
    assert "| passive 5 s | clean |" in told and "| transfer cubic 10 s | all |" in told
    assert "| transfer bbr 10 s | not measured" in told and "| active 20 s | not measured" in told
    assert "| our streams | windows" in told
    verdicts = [verdict for way in ways for verdict in of_goals(way)]
    assert len(verdicts) == 3  # passive clean: six and three; in a transfer with CUBIC: three


def test_what_a_decision_costs(links: list[Example]) -> None:
    known, by = gridded(links), Settings(trees=10, copies=1, folds=2)
    judged = out_of_fold(known, [], PASSIVE_10, 1, by)
    assert all(seconds > 0 for seconds in cost(known, [], judged, by).values())


def test_a_copy_that_makes_dips_is_judged_as_one() -> None:
    asked = []

    class Listens:
        def window_s(self, kind: str) -> float:
            return 10.0

        def classify(self, *_: object, own: Own, responses: object, **__: object) -> Mix:
            asked.append((own.kind, responses))
            return likeliest([1 / len(MIXES)] * len(MIXES))

    responses = [QueueResponse(1.0, 0.5, 0.5)]
    probes = [Probe(i / 10, 0.05) for i in range(101)]
    goodput = [(probe.t_s, 1e7) for probe in probes]
    told = {"own": ("bbr", 4), "goodput": goodput}
    some = [
        example("C", probes, part="dips", responses=responses, **told),
        example("C", probes, part="transfer", **told),
    ]
    answers(some, cast(Model, Listens()))
    assert asked == [(DIPS_BBR, responses), (TRANSFER_BBR, ())]


@pytest.mark.long
def test_the_held_out_links_are_judged_by_the_model_as_it_is_read(tmp_path: Path) -> None:
    model = load(write_small_model(tmp_path / "model"))
    new = [replace(each, link=f"new {each.link}") for each in simulated(4, 20.0, seed=9)]
    wilds = [replace(wild(number), run=f"new {number}") for number in range(4)]
    true, said, links = answers([*new, *wilds], model)
    assert len(true) == len(said) == 4 * 6 * 2 + 4 and set(said) <= {*MIXES, UNKNOWN}
    assert len(set(links.tolist())) == 8
    lines, found = asked([*new, *wilds], model)
    assert lines[0].startswith("48 windows with a mix") and None not in found.values()
    assert (true == said).mean() > 0.3


BENCH = Path(__file__).resolve().parents[2] / "bench"
OF_A_DATASET = sorted(
    file
    for file in BENCH.glob("ops_*.py")
    if "load_dataset" in (text := file.read_text()) or "from recognition." in text
)


@pytest.mark.parametrize("bench", OF_A_DATASET, ids=lambda file: file.stem)
def test_a_folder_without_runs_is_told_in_a_line(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [bench.name, str(tmp_path / "nothing")])
    with pytest.raises(SystemExit, match="nothing holds no run that counts"):
        runpy.run_path(str(bench), run_name="__main__")


def test_these_are_all_benches_of_datasets() -> None:
    assert len(OF_A_DATASET) == 11


def test_idle_paths_and_others_are_counted_with_each_noise(
    links: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = [np.tile([0.0, 0.002], 60), np.tile([0.0, 0.0, 0.004], 40)]
    monkeypatch.setattr(ops_noise, "load_dataset", lambda _: links)
    monkeypatch.setattr(ops_noise, "recorded_noise", lambda _: Noise(recordings, has_radio=True))
    monkeypatch.setattr(ops_noise, "KIND", Kind(PASSIVE, 5.0))
    monkeypatch.setattr(ops_noise, "FOLDS", 2)
    found = ops_noise.measure(argparse.Namespace(dataset=tmp_path))
    assert list(found) == ["no noise", "quiet host", "recorded", "radio link"]
    for each in found.values():
        assert each["idle named"] + each["idle unknown"] <= each["idle"]
        assert each["others named"] <= each["others likeliest"] <= each["others"]
    clean = found["no noise"]
    assert clean["likeliest share"] > 0.6 and clean["idle share"] > 0.5
    assert found["radio link"]["likeliest share"] < clean["likeliest share"] + 0.1
