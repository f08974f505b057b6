"""Which classifier recognises the background best on links it has not seen, and what limits it.

All classifiers on all splits (by run, by link, by range: learnt up to 60 ms and judged above), six mixes and
three groups, clean and beside other traffic, windows of 10 s. Then ours in more ways of watching, what it
says of traffic that is none of the mixes, where it fails, and what a decision costs. The base RTT is the
least of the window throughout, as for somebody who has just begun to probe.

What was computed is kept, so it can be made in pieces: --minutes ends it early.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from figures import Verdict, machine
from mpx_lab.dataset.load import Example, load_dataset
from mpx_train.card import scores_of
from mpx_train.cut import even, gridded
from mpx_train.dtw import distances
from mpx_train.learn import DEFAULT, Judged, Kind, Settings, out_of_fold, part_from
from mpx_train.paper import RADIUS
from mpx_train.scores import Scores, confusion_lines
from mpx_train.train import runs_for
from recognition.bounds import overlap_lines, place_lines, whole_runs
from recognition.candidates import CANDIDATES, OURS, PAPER_BEST
from recognition.compare import FOLDS, LINK, RUN, SPLITS, Comparison, Outcome, comparison_lines
from recognition.outside import never_seen, rejection, rejection_lines
from recognition.row import SEED

from mpx.mix import MIXES
from mpx.ops_model import ACTIVE, PASSIVE, TRANSFER

WINDOW_S = 10.0
BETTER = 0.15  # than the paper's best, on unseen links
TEMPLATES = 1000
OTHER_KINDS = (Kind(PASSIVE, 5.0), Kind(PASSIVE, 20.0), Kind(ACTIVE, 20.0), Kind(TRANSFER, 10.0))
DECISION_S, REPETITIONS = 0.005, 100


def main() -> None:
    """Read the command line, compute what is missing, and say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path, help="a folder of mpx lab dataset")
    parser.add_argument("--effort", choices=("quick", "full"), default="quick", help="5 folds or 10")
    parser.add_argument(
        "--out", type=Path, default=Path("reports/ops"), help="what was computed, and the figure"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing new after so many")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    print(machine())
    examples = load_dataset(options.dataset)
    kind = Kind(PASSIVE, WINDOW_S)
    known, outside, alike = runs_for(kind, examples)
    grids = gridded(known, with_goodput=False)
    comparison = Comparison(grids, kind, FOLDS[options.effort], options.out / "models")
    for candidate, split in comparison.missing(list(CANDIDATES), SPLITS):
        if time.monotonic() > until:
            left = len(comparison.missing(list(CANDIDATES), SPLITS))
            sys.exit(f"{left} comparisons are missing; run it again to go on")
        sys.stderr.write(f"{candidate}, {split}\n")
        comparison.compute(candidate, split)
    outcomes = {(c, s): comparison.outcome(c, s) for s in SPLITS for c in CANDIDATES}
    print("\n".join(comparison_lines(outcomes)))
    by = Settings(folds=FOLDS[options.effort])
    judged = out_of_fold(grids, [], kind, SEED, by)
    print("\n".join(["", *confusion_lines(scores_of(judged).confusion()), "", *place_lines(judged), ""]))
    print("\n".join(overlap_lines(what_would_help(judged, outcomes, comparison, by))))
    verdicts = list(of_the_comparison(outcomes))
    if outside:
        others = gridded([*outside, *alike], with_goodput=False)
        seen, unseen = rejection(grids, others, kind, by), never_seen(grids, others, kind, by)
        print("\n".join(["", *rejection_lines(seen, unseen)]))
        told = f"{seen.mean:.2f} at {seen.alarms:.1%} false alarms; never seen {unseen.mean:.2f}"
        verdicts.append(
            Verdict("outside traffic: 0.90 unknown at 5 %", told, seen.mean >= 0.9 and seen.alarms <= 0.051)
        )
    print()
    verdicts += of_other_kinds(examples, by)
    verdicts.append(cost(judged, comparison))
    for verdict in verdicts:
        print(verdict)
    print(f"figure: {draw(outcomes, options.out)}")
    sys.exit(any(not verdict.kept for verdict in verdicts))


def of_the_comparison(outcomes: dict[tuple[str, str], Outcome]) -> Iterator[Verdict]:
    """Hold ours against the goals of the issue, on unseen links."""
    ours, paper = outcomes[OURS, LINK], outcomes[PAPER_BEST, LINK]
    for name, part, six, three in (
        ("clean", ours.clean, 0.90, 0.99),
        ("beside other traffic", ours.disturbed, 0.80, 0.97),
    ):
        yield Verdict(f"passive 10 s, {name}: six at least {six:.2f}", str(part.six), part.six.mean >= six)
        yield Verdict(
            f"passive 10 s, {name}: three at least {three:.2f}", str(part.three), part.three.mean >= three
        )
    gain = ours.scores.six.mean - paper.scores.six.mean
    yield Verdict("ours at least 15 points over the paper's 1-NN", f"{gain * 100:+.1f}", gain >= BETTER)
    best = max(CANDIDATES, key=lambda name: outcomes[name, LINK].scores.six.mean)
    told = f"{outcomes[best, LINK].scores.six} against {ours.scores.six}"
    is_best = ours.scores.six.mean >= outcomes[best, LINK].scores.six.mean - 0.005
    yield Verdict("ours is the best on unseen links, or within half a point", f"{best}: {told}", is_best)


def what_would_help(
    judged: Judged, outcomes: dict[tuple[str, str], Outcome], comparison: Comparison, by: Settings
) -> list[tuple[str, Scores]]:
    """Return ours with more knowledge than it has."""
    known_base = out_of_fold(comparison.grids, [], comparison.kind, SEED, by, base_known=True)
    return [
        ("as it is, on unseen links", scores_of(judged)),
        ("the base RTT were known", scores_of(known_base)),
        ("all windows of a run were taken together", whole_runs(judged)),
        ("the links were known (by run)", outcomes[OURS, RUN].scores),
    ]


def of_other_kinds(examples: Sequence[Example], by: Settings) -> list[Verdict]:
    """Judge ours in the other ways of watching, on unseen links; those that were not measured are said so."""
    verdicts = []
    print("| ours | clean: six | three | beside other traffic: six | three |\n|---|---|---|---|---|")
    for kind in OTHER_KINDS:
        runs, _, _ = runs_for(kind, examples)
        name = f"{kind.name} {kind.window_s:g} s"
        if {run.mix for run in runs} != set(MIXES):
            print(f"| {name} | not measured | | | |")
            continue
        judged = out_of_fold(
            gridded(runs, with_goodput=kind.with_goodput, least_s=kind.window_s), [], kind, SEED, by
        )
        outcome = Outcome(scores_of(judged), judged.windows.is_clean)
        cells = [
            part.six if classes == 6 else part.three
            for part in (outcome.clean, outcome.disturbed)
            for classes in (6, 3)
        ]
        print(f"| {name} | {' | '.join(str(cell) if cell.windows else '-' for cell in cells)} |")
        six, three = outcome.scores.six, outcome.scores.three
        if kind.name == ACTIVE:
            verdicts.append(Verdict(f"{name}: six at least 0.95", str(six), six.mean >= 0.95))
        if kind.name == TRANSFER:
            verdicts.append(Verdict(f"{name}: three at least 0.95", str(three), three.mean >= 0.95))
    return verdicts


def cost(judged: Judged, comparison: Comparison) -> Verdict:
    """Say what a decision of ours costs, and one of the paper's with 1,000 templates."""
    part = part_from(comparison.grids[:60], [], comparison.kind, judged, SEED, DEFAULT)
    probes = list(comparison.grids[0].example.single)[: int(WINDOW_S * 10)]
    began = time.process_time()
    for _ in range(REPETITIONS):
        part.judge(probes, 0.01, None)
    ours_s = (time.process_time() - began) / REPETITIONS
    windows = even(comparison.grids, WINDOW_S).paper_ms
    templates = np.resize(windows, (TEMPLATES, windows.shape[1]))
    began = time.process_time()
    distances(windows[:20], templates, RADIUS)
    theirs_s = (time.process_time() - began) / 20
    print(
        f"a decision: ours {ours_s * 1e3:.1f} ms, 1-NN DTW with {TEMPLATES} templates {theirs_s * 1e3:.1f} ms"
    )
    return Verdict("a decision takes under 5 ms of CPU", f"{ours_s * 1e3:.2f} ms", ours_s < DECISION_S)


def draw(outcomes: dict[tuple[str, str], Outcome], folder: Path) -> Path:
    """Draw the accuracy of every classifier on every split."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(12, 5), sharey=True)
    names = list(CANDIDATES)
    for panel, title in zip(axes, ("clean", "beside other traffic"), strict=True):
        for shift, split in enumerate(SPLITS):
            parts = [
                outcomes[name, split].clean if title == "clean" else outcomes[name, split].disturbed
                for name in names
            ]
            places = np.arange(len(names)) + 0.27 * (shift - 1)
            panel.barh(places, [part.six.mean for part in parts], height=0.25, label=split)
        panel.set(
            yticks=range(len(names)),
            yticklabels=names,
            xlim=(0, 1),
            xlabel="accuracy, six mixes",
            title=title,
        )
        panel.grid(axis="x", alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "models.png"
    figure.savefig(file, dpi=150)
    return file


if __name__ == "__main__":
    main()
