"""The final test of a model, on links that were used neither for training nor for choosing it.

Measure them once with a seed of their own (mpx lab dataset FOLDER --links 8 --seed 2), and judge them once.
It uses the model as mpx does: read from its files, and applied window by window, with the least round-trip
time ever seen on the link, and with what is known of our own data.

Exits 1 if, of any kind of series, more than 6 % of the windows with a mix are said to be unknown, less than
90 % of the outside traffic is, or too few of the windows that were not unknown are put into the right one of
three groups: 97 % by passive probing, 95 % by short active probing and beside copies.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from figures import Verdict
from harness import command, run
from mpx_lab.dataset.load import Example, load_dataset
from mpx_train.scores import Scores, confusion_lines
from mpx_train.train import kind_of
from mpx_train.unknown import LIKE
from numpy.typing import NDArray
from ops_models import ALARMS_ALLOWED, REJECTED

from mpx.ops_classifier import SHIPPED, load
from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.recognition.model import Model
from mpx.recognition.observation import ACTIVE_SHORT, DIPS, KINDS, PASSIVE, TRANSFERS, Own
from mpx.recognition.windows import STEP_S

SECONDS = 10.0
THREE = {
    PASSIVE: 0.97,
    ACTIVE_SHORT: 0.95,
    **dict.fromkeys(TRANSFERS, 0.95),
}  # of windows that were not unknown


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Have the model judge each kind of series."""
    model, examples = load(options.model), load_dataset(options.dataset)
    measured = {}
    for kind in KINDS:
        some = [each for each in examples if kind_of(each) == kind]
        if some and kind in model.parts:
            lines, measured[kind] = asked(some, model)
            print("\n".join([f"{kind}:", "", *lines, ""]))
    return measured


def judge(measured: Mapping[str, Mapping[str, Any]]) -> Iterator[Verdict]:
    """Say of each kind of series whether the model is as good as was promised."""
    for kind, found in measured.items():
        alarms, three, unknown = found["alarms"], found["three"], found["outside_unknown"]
        limit = f"{kind}: false alarms at most {ALARMS_ALLOWED:.2f}"
        yield Verdict(limit, f"{alarms:.3f}", alarms <= ALARMS_ALLOWED)
        if kind in THREE:
            limit = f"{kind}: three groups at least {THREE[kind]:.2f}, where not unknown"
            yield Verdict(limit, f"{three:.3f}", three >= THREE[kind])
        if unknown is not None:
            limit = f"{kind}: outside traffic, {REJECTED:.2f} unknown"
            yield Verdict(limit, f"{unknown:.2f}", unknown >= REJECTED)


def asked(examples: Sequence[Example], model: Model) -> tuple[list[str], dict[str, float | None]]:
    """Return tables of what a model says of series of one kind, and what is judged of it."""
    true, said, links = answers(examples, model)
    known, is_unknown = np.isin(true, MIXES), said == UNKNOWN
    scores = Scores(true[known], said[known], links[known])
    accepted = scores.where(~is_unknown[known])
    alarms = float(is_unknown[known].mean())
    right = [is_unknown[i] or said[i] in LIKE.get(str(true[i]), ()) for i in np.flatnonzero(~known)]
    lines = [
        f"{known.sum()} windows with a mix, {alarms:.1%} of them said to be unknown",
        "",
        "| of these windows | six | three |",
        "|---|---|---|",
        f"| all, unknown is wrong | {scores.six} | {scores.three} |",
        f"| those that were not unknown | {accepted.six} | {accepted.three} |",
        "",
        *confusion_lines(accepted.confusion()),
    ]
    outside = float(np.mean(right)) if right else None
    return lines, {"alarms": alarms, "three": accepted.three.mean, "outside_unknown": outside}


def answers(
    examples: Sequence[Example], model: Model
) -> tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.intp]]:
    """Return what was true of each window, what was said, and the number of its link."""
    true, said, links = [], [], []
    for each in examples:
        kind = kind_of(each)
        own = Own(each.own_congestion, each.own_streams, kind in DIPS) if each.own_streams else None
        seconds = max(SECONDS, model.window_s(kind))
        lasts_s = each.single[-1].t_s - each.single[0].t_s + 2 * STEP_S  # whole windows, whatever the phase
        for number in range(int(lasts_s // seconds)):
            series = [p for p in each.single if number * seconds <= p.t_s < (number + 1) * seconds]
            goodput = None if kind == PASSIVE else each.goodput
            mix = model.classify(series, each.base_s, goodput, kind=kind, own=own, responses=each.responses)
            true.append(each.mix)
            said.append(mix.name)
            links.append(each.link)
    return np.array(true), np.array(said), np.unique(links, return_inverse=True)[1]


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("dataset", type=Path, help="a folder of mpx lab dataset, of links that are new")
    parser.add_argument("--model", type=Path, default=SHIPPED)
    run(parser, measure, judge)
