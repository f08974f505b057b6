"""Idle paths with the noise of hosts, and what the same noise does to the other mixes.

Windows of 10 s of links that were not learnt from (two halves, each judged by the other), without noise and
with each kind of it: of a quiet host, recorded on busy ones (DATASET/noise; recordings that were not learnt
from), and of a radio link (modelled).

Exits 1 if of any kind less than 95 % of the idle paths are named, or the others lose more than 2 points of
three groups by noise that hosts have; radio links are told and not judged by that.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from figures import Verdict
from harness import command, run
from mpx_lab.dataset.load import load_dataset
from mpx_train.cut import Drawing, Labelled, even, gridded
from mpx_train.forest import shares_of
from mpx_train.learn import Kind, Settings, out_of_fold, part_from
from mpx_train.noise import Noise, quiet_s, recorded_noise, some_of, waiting_s
from mpx_train.splits import by_link
from mpx_train.train import runs_for

from mpx.recognition.features import features
from mpx.recognition.mix import GROUP_OF, MIXES, NOBODY
from mpx.recognition.observation import PASSIVE
from mpx.recognition.window_classifier import WindowClassifier, alarms

KIND, SEED = Kind(PASSIVE, 10.0), 1
WITHOUT, QUIET, RECORDED, RADIO = "no noise", "quiet host", "recorded", "radio link"
NAMED, LOST = 0.95, 0.02
FOLDS = 5  # of the half that is learnt from, to calibrate


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Judge each half of the links by the other."""
    known, outside, _ = (
        gridded(runs, PASSIVE, least_s=KIND.window_s)
        for runs in runs_for(PASSIVE, load_dataset(options.dataset))
    )
    noise, everything = recorded_noise(options.dataset), [*known, *outside]
    found: dict[str, list[dict[str, Any]]] = {}
    for half, split in enumerate(by_link([grid.example for grid in everything], 2, SEED)):
        links = {everything[place].example.link for place in split.learn}
        mixes, others = ([grid for grid in some if grid.example.link in links] for some in (known, outside))
        by = Settings(noise=noise.without(half, 2), folds=FOLDS)
        part = part_from(mixes, others, KIND, out_of_fold(mixes, others, KIND, SEED, by), SEED, by)
        left_out = [grid for grid in known if grid.example.link not in links]
        for name, drawing in drawings(noise.only(half, 2)).items():
            found.setdefault(name, []).append(counted(part, even(left_out, KIND.window_s, noise_s=drawing)))
    return {name: _together(halves) for name, halves in found.items()}


def drawings(noise: Noise) -> Mapping[str, Drawing | None]:
    """Return what draws each kind of noise."""
    dice = np.random.default_rng(SEED)

    def recorded(windows: int, steps: int) -> Any:
        long = noise.recorded
        return np.stack([some_of(long[int(dice.integers(len(long)))], steps, dice) for _ in range(windows)])

    return {
        WITHOUT: None,
        QUIET: lambda windows, steps: np.stack([quiet_s(dice, steps) for _ in range(windows)]),
        RECORDED: recorded,
        RADIO: lambda windows, steps: np.stack([waiting_s(dice, steps) for _ in range(windows)]),
    }


def counted(part: WindowClassifier, windows: Labelled) -> dict[str, Any]:
    """Return how many windows there are, idle ones and others, and how many of them are read rightly."""
    rows = features(windows.windows, KIND.name)
    shares, distances = shares_of(part.trees, rows), part.places.distances(rows)
    likeliest = np.array(MIXES)[shares[:, : len(MIXES)].argmax(axis=1)]
    novelty = [
        part.ranks.of(mix).novelty(float(distance), float(outside))
        for mix, distance, outside in zip(likeliest, distances, shares[:, -1], strict=True)
    ]
    is_novel = np.array(novelty) > 1 - np.array([alarms(mix) for mix in likeliest])
    said, true = (np.array([GROUP_OF[mix] for mix in mixes]) for mixes in (likeliest, windows.mix))
    idle, others = (true == NOBODY) & windows.is_clean, true != NOBODY
    return {
        "idle": int(idle.sum()),
        "idle named": int((idle & (said == NOBODY) & ~is_novel).sum()),
        "idle unknown": int((idle & is_novel).sum()),
        "others": int(others.sum()),
        "others likeliest": int((others & (said == true)).sum()),
        "others named": int((others & (said == true) & ~is_novel).sum()),
    }


def _together(halves: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    total = {name: sum(half[name] for half in halves) for name in halves[0]}
    return {
        **total,
        "idle share": total["idle named"] / total["idle"],
        "likeliest share": total["others likeliest"] / total["others"],
        "halves": [half["idle named"] / half["idle"] for half in halves],
    }


def show(measured: Mapping[str, Any], _: argparse.Namespace) -> None:
    """Print the table."""
    print("| noise | idle | named (by half) | unknown | others | right one of three groups | and named |")
    print("|---|---|---|---|---|---|---|")
    for name, found in measured.items():
        by_half = " and ".join(f"{share:.3f}" for share in found["halves"])
        cells = [
            name,
            found["idle"],
            f"{found['idle share']:.3f} ({by_half})",
            f"{found['idle unknown'] / found['idle']:.3f}",
            found["others"],
            f"{found['likeliest share']:.3f}",
            f"{found['others named'] / found['others']:.3f}",
        ]
        print(f"| {' | '.join(map(str, cells))} |")


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Say whether idle paths are named, and what noise costs the others."""
    for name, found in measured.items():
        named = found["idle share"]
        yield Verdict(f"{name}: {NAMED:.0%} of idle paths named", f"{named:.3f}", named >= NAMED)
    before = measured[WITHOUT]["likeliest share"]
    for name in (QUIET, RECORDED):
        lost = before - measured[name]["likeliest share"]
        yield Verdict(f"{name}: others lose {LOST} of three groups at most", f"{lost:+.3f}", lost <= LOST)


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("dataset", type=Path, nargs="?", help="a folder of mpx lab dataset, with noise")
    run(parser, measure, judge, show)
