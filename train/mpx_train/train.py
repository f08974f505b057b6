"""Makes the model from a dataset: the one function behind `mpx train`."""

import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from mpx_lab.dataset.load import Example, load_dataset

from mpx._version import __version__
from mpx.errors import UsageError
from mpx.mix import MIXES
from mpx.ops_model import ACTIVE, PASSIVE, TRANSFER
from mpx.ops_part import Part
from mpx_train.card import data_of, figures_of
from mpx_train.cut import gridded
from mpx_train.learn import Kind, out_of_fold, part_from
from mpx_train.model_writer import write_model
from mpx_train.unknown import LIKE

# The paper's profile of bursts lasts 20 s.
TRAINED = (
    Kind(PASSIVE, 5.0),
    Kind(PASSIVE, 10.0),
    Kind(PASSIVE, 20.0),
    Kind(ACTIVE, 20.0),
    Kind(TRANSFER, 10.0),
)
FEWEST_LINKS = 2


def train(dataset: Path, model: Path, seed: int) -> Iterator[str]:
    """Train on all that a dataset has, write the model, and yield lines that say how good it is.

    Raises UsageError where the dataset holds too little to train and judge on.
    """
    examples = load_dataset(dataset)
    parts: dict[str, list[Part]] = {}
    figures = []
    for kind in TRAINED:
        known, outside, alike = (
            gridded(runs, with_goodput=kind.with_goodput, least_s=kind.window_s)
            for runs in runs_for(kind, examples)
        )
        if len({grid.example.link for grid in known}) < FEWEST_LINKS:
            continue
        judged = out_of_fold(known, outside, kind, seed, only_judged=alike)
        part = part_from(known, outside, kind, judged, seed)
        parts.setdefault(kind.name, []).append(part)
        figures.append(figures_of(kind, judged, part))
        yield from _lines(figures[-1])
    if not parts:
        raise UsageError(
            f"{dataset} has fewer than {FEWEST_LINKS} links; measure more with: mpx lab dataset {dataset}"
        )
    card = {
        "what": "recognises the mix of congestion controls in the background from round-trip times",
        "command": f"mpx train DATASET -o MODEL --seed {seed}",
        "made with": {
            "mpx": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "data": data_of(dataset, examples),
        "parts": figures,
    }
    write_model(model, parts, card)
    yield f"wrote {model}"


def runs_for(kind: Kind, examples: Sequence[Example]) -> tuple[list[Example], list[Example], list[Example]]:
    """Return the runs with a mix, those of what is none, and those that are none but like one."""
    known = [each for each in examples if each.part == kind.name and each.mix in MIXES]
    none = [each for each in examples if each.part == "outside"] if kind.name == PASSIVE else []
    return known, [e for e in none if e.mix not in LIKE], [e for e in none if e.mix in LIKE]


def _lines(figures: dict[str, Any]) -> list[str]:
    lines = [f"{figures['kind']}, {figures['window_s']:g} s, {figures['windows']} windows of unseen links:"]
    for condition in ("clean", "with other traffic"):
        for classes in ("six", "three"):
            if told := figures[condition][classes]:
                spread = f"{told['least']:.2f} to {told['most']:.2f}"
                lines.append(f"  {condition}, {classes}: {told['mean']:.3f} ({spread})")
    lines += [
        f"  {name} said to be unknown: {share:.2f}"
        for name, share in figures.get("said to be unknown", {}).items()
    ]
    return lines
