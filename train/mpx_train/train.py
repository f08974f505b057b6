"""Trains a model on a dataset: the function behind `mpx train`."""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mpx_lab.dataset.load import Example, load_dataset

from mpx._version import __version__
from mpx.errors import UsageError
from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.recognition.observation import (
    ACTIVE,
    ACTIVE_SHORT,
    DIPS_BBR,
    DIPS_CUBIC,
    PASSIVE,
    TRANSFER_BBR,
    TRANSFER_CUBIC,
    period_s,
)
from mpx.recognition.window_classifier import WindowClassifier
from mpx_train.card import data_of
from mpx_train.cut import gridded
from mpx_train.figures import BASES, NOISY, figures_of
from mpx_train.learn import DEFAULT, Kind, Settings, out_of_fold, part_from
from mpx_train.model_writer import check_model_writable, write_model
from mpx_train.noise import recorded_noise
from mpx_train.unknown import LIKE

TRAINED = (
    Kind(PASSIVE, 5.0),
    Kind(PASSIVE, 10.0),
    Kind(PASSIVE, 20.0),
    Kind(ACTIVE, period_s(ACTIVE)),
    Kind(ACTIVE_SHORT, 2 * period_s(ACTIVE_SHORT)),
    Kind(TRANSFER_CUBIC, 5.0),
    Kind(TRANSFER_CUBIC, 10.0),
    Kind(TRANSFER_BBR, 5.0),
    Kind(TRANSFER_BBR, 10.0),
    Kind(DIPS_CUBIC, 5.0),
    Kind(DIPS_CUBIC, 10.0),
    Kind(DIPS_BBR, 5.0),
    Kind(DIPS_BBR, 10.0),
)
FEWEST_LINKS = 2


def train(dataset: Path, model: Path, seed: int, by: Settings = DEFAULT) -> Iterator[str]:
    """Train on a dataset, write the model, and yield lines that say how good it is.

    Raises UsageError where the dataset holds too little to train and judge on, or no model can be written.
    """
    check_model_writable(model)
    examples = load_dataset(dataset)
    by = replace(by, noise=recorded_noise(dataset))
    parts: dict[str, list[WindowClassifier]] = {}
    figures = []
    lacks = too_few_links(dataset)
    for kind in TRAINED:
        known, outside, alike = (
            gridded(runs, kind.name, least_s=kind.window_s) for runs in runs_for(kind.name, examples)
        )
        if len({grid.example.link for grid in known}) < FEWEST_LINKS:
            yield f"{kind.name}, {kind.window_s:g} s: fewer than {FEWEST_LINKS} links, so no part for it"
            continue
        try:
            judged = out_of_fold(known, outside, kind, seed, by, only_judged=alike)
            part = part_from(known, outside, kind, judged, seed, by)
        except UsageError as error:  # a mix is missing, on some links or at all
            lacks = str(error)
            yield f"{kind.name}, {kind.window_s:g} s: {lacks}, so no part for it"
            continue
        parts.setdefault(kind.name, []).append(part)
        figures.append(figures_of(kind, judged))
        yield from _lines(figures[-1])
    if not parts:
        raise UsageError(lacks)
    card = {
        "what": "recognises the mix of congestion controls in the background from round-trip times",
        "command": f"mpx train DATASET -o MODEL --seed {seed}",
        "made with": {
            "mpx": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "joblib", "scikit-learn")},
        },
        "data": data_of(dataset, examples),
        "parts": figures,
    }
    write_model(model, parts, card)
    yield f"wrote {model}"


def too_few_links(dataset: Path) -> str:
    """Return what is wrong with a dataset that is too small to be judged on, and what mends it."""
    return f"{dataset} has fewer than {FEWEST_LINKS} links; measure more with: mpx lab dataset {dataset}"


def runs_for(kind: str, examples: Sequence[Example]) -> tuple[list[Example], list[Example], list[Example]]:
    """Return the series with a mix, those of what is none, and those that are none but like one."""
    some = [each for each in examples if kind_of(each) == kind]
    none = [each for each in some if each.mix not in MIXES]
    return (
        [each for each in some if each.mix in MIXES],
        [each for each in none if each.mix not in LIKE],
        [each for each in none if each.mix in LIKE],
    )


def kind_of(example: Example) -> str:
    """Return the way of watching that a series teaches, empty for those of the paper's one link."""
    if example.part in ("transfer", "dips"):
        return f"{example.part} {example.own_congestion}"
    if example.part == "active":
        return {"paper": ACTIVE, "short": ACTIVE_SHORT}[example.profile]
    return PASSIVE if example.part == "passive" else ""


def _lines(figures: dict[str, Any]) -> list[str]:
    lines = [f"{figures['kind']}, {figures['window_s']:g} s, {figures['windows']} windows of unseen links:"]
    for base in (*BASES, NOISY):
        for condition, figure in figures[base].items():
            for classes in ("six", "three"):
                if said := figure["said"][classes]:
                    spread = f"{said['least']:.2f} to {said['most']:.2f}"
                    likeliest = f"{figure['likeliest'][classes]['mean']:.3f} without {UNKNOWN}"
                    lines.append(
                        f"  {base}, {condition}, {classes}: {said['mean']:.3f} ({spread}), {likeliest}"
                    )
    if (share := figures["none, with the noise of hosts"]) is not None:
        lines.append(f"  none, with the noise of hosts, said to be so: {share:.3f}")
    alarms = figures["false alarms of unknown"]
    lines.append(f"  known windows said to be unknown: {alarms['mean']:.3f}")
    lines += [
        f"  {name} said to be unknown: {share:.2f}"
        for name, share in figures.get("said to be unknown", {}).items()
    ]
    return lines
