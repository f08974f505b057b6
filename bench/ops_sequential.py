"""How much surer the background is the longer a path is probed, and after how long it is decided.

Passive series of links that nothing was learnt from, read once a second and added up (EvidenceRule). Rule and
limits are tuned on half of the links, drawn at random, and judged on the other half; both ways. --long is a
data set of further links with a minute of each mix (mpx lab dataset FOLDER --part long --links 6 --seed 4
--simulated), read by the model that comes with mpx, with the rule and the limit that mpx uses.

Exits 1 if on links that were not tuned on all windows of a series are hardly better than its first, decisions
err in more than twice what is allowed, or all windows make more of the known unknown, or less of the rest.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from figures import Verdict
from harness import command, run
from mpx_lab.dataset.draws import LONG
from mpx_lab.dataset.load import load_dataset
from mpx_train.learn import DEFAULT, Kind
from mpx_train.noise import recorded_noise
from mpx_train.readings import ReadSeries, read_unseen
from recognition.sequential import (
    AT_S,
    CLASSES,
    ERRORS,
    WINDOW_S,
    Tuned,
    crossed,
    figures,
    tuned,
    unknown,
)
from recognition.switches import switches

from mpx.choices import BBR, CUBIC
from mpx.ops_classifier import load
from mpx.recognition.accumulated import STEP_S, SURE, windows
from mpx.recognition.evidence import EvidenceRule
from mpx.recognition.mix import MIXES
from mpx.recognition.observation import DIPS_BBR, DIPS_CUBIC, PASSIVE

SEED = 1  # of the folds, and of the halves
USED = Tuned(EvidenceRule(), {classes: {str(error): SURE for error in ERRORS} for classes in CLASSES})
BETTER = {"six": 0.05, "three": 0.01}  # all windows of a series than its first, at least
LOST = 0.05  # of what is said to be unknown of other traffic
ALL, CLEAN, OTHERS = "all", "clean", "beside other traffic"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Read all series, and judge each by what was tuned on the other half of the links."""
    examples = load_dataset(options.dataset)
    by = replace(DEFAULT, noise=recorded_noise(options.dataset))
    series = list(read_unseen(examples, Kind(PASSIVE, WINDOW_S), SEED, by))
    known = [each for each in series if each.mix in MIXES]
    outside = [each for each in series if each.mix not in MIXES]
    judged = crossed(known, SEED)
    found: dict[str, Any] = {
        "tuned on all": asdict(tuned(known)),
        "used": asdict(EvidenceRule()),
        ALL: figures(judged),
        CLEAN: figures([(each, by) for each, by in judged if each.is_clean]),
        OTHERS: figures([(each, by) for each, by in judged if not each.is_clean]),
        "unknown": {"known": unknown(known, EvidenceRule()), "outside": unknown(outside, EvidenceRule())},
        "copies": {},
    }
    for kind, now in ((DIPS_CUBIC, CUBIC), (DIPS_BBR, BBR)):
        read = read_unseen(examples, Kind(kind, WINDOW_S), SEED, by)
        known = [each for each in read if each.mix in MIXES]
        ways = {"as they are": None, "added up": EvidenceRule()}
        found["copies"][kind] = {way: switches(known, now, rule) for way, rule in ways.items()}
    if options.long:
        found[LONG] = figures([(each, USED) for each in read_long(options.long)])
    return found


def read_long(dataset: Path) -> list[ReadSeries]:
    """Return the long series of a data set, read by the model that comes with mpx."""
    model, found = load(), []
    for each in load_dataset(dataset):
        if each.part == LONG:
            readings = [
                model.classify(window, each.base_s) for _, window in windows(each.single, WINDOW_S, STEP_S)
            ]
            found.append(ReadSeries(each.link, each.mix, True, readings))
    return found


def show(measured: Mapping[str, Any], _: argparse.Namespace) -> None:
    """Print the tables."""
    print(f"tuned on all links: {measured['tuned on all']}\nused: {measured['used']}, from {SURE} on\n")
    print("| series | classes | read | 10 s | 20 s | 30 s | 60 s |\n|---|---|---|---|---|---|---|")
    named = [name for name in (ALL, CLEAN, OTHERS, LONG) if name in measured]
    for name in named:
        for classes in CLASSES:
            for how in ("one window", "all windows"):
                row = " | ".join(_accuracy(measured[name][classes][how].get(str(at))) for at in AT_S)
                print(f"| {name}, {measured[name]['links']} links | {classes} | {how} | {row} |")
    print("\n| series | classes | error allowed | error, by link | undecided | median | nine of ten |")
    print("|---|---|---|---|---|---|---|")
    for name in named:
        for classes in CLASSES:
            for allowed, made in measured[name][classes]["decisions"].items():
                print(
                    f"| {name} | {classes} | {allowed} | {made['error']:.3f} | {made['undecided']:.0%} "
                    f"| {made['median_s']:.0f} s | {made['p90_s']:.0f} s |"
                )
    for name, shares in measured["unknown"].items():
        told = ", ".join(f"{how} {share:.3f}" for how, share in shares.items())
        print(f"\n{name} traffic, said to be unknown: {told}")
    print("\n| copy | given readings | switches due | made | median | not due, but made |")
    print("|---|---|---|---|---|---|")
    for kind, ways in measured["copies"].items():
        for way, told in ways.items():
            not_due = f"{told['wrong']} of {told['others']}"
            print(
                f"| {kind} | {way} | {told['due']} | {told['made']} | {told['median_s']:.0f} s | {not_due} |"
            )


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Say whether adding up is worth it, on links that were not tuned on."""
    judged, said = measured[ALL], measured["unknown"]
    for classes, least in BETTER.items():
        first, last = (
            judged[classes]["one window"]["10"]["mean"],
            judged[classes]["all windows"]["30"]["mean"],
        )
        limit = f"{classes}: 30 s at least {least:.2f} above one window"
        yield Verdict(limit, f"{first:.3f}, {last:.3f}", last - first >= least)
        for error in map(str, ERRORS):
            wrong = judged[classes]["decisions"][error]["error"]
            limit = f"{classes}: decisions that may err in {float(error):.0%} err in twice that at most"
            yield Verdict(limit, f"{wrong:.3f}", wrong <= 2 * float(error))
    known, outside = said["known"], said["outside"]
    alarms = f"{known['first window']:.3f}, {known['all windows']:.3f}"
    yield Verdict(
        "false alarms: no more than by one window", alarms, known["all windows"] <= known["first window"]
    )
    rejected = f"{outside['first window']:.3f}, {outside['all windows']:.3f}"
    limit = f"other traffic unknown: at most {LOST} less than by one window"
    yield Verdict(limit, rejected, outside["all windows"] >= outside["first window"] - LOST)


def _accuracy(of: Mapping[str, float] | None) -> str:
    return f"{of['mean']:.3f} ({of['least']:.2f} to {of['most']:.2f})" if of else "-"


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("dataset", type=Path, nargs="?", help="a folder of mpx lab dataset, as for mpx train")
    parser.add_argument("--long", type=Path, help="a folder of its part `long`, of other links")
    run(parser, measure, judge, show)
