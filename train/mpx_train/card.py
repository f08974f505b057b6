"""The card of a model: what it was made of, how it was judged, how good it is on unseen links."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mpx_lab.dataset.load import Example
from mpx_lab.record_reader import RecordedRun

from mpx.mix import MIXES
from mpx.ops_part import FALSE_ALARMS, Part, tempered
from mpx_train.calibrate import calibration_error
from mpx_train.learn import DEFAULT, Judged, Kind
from mpx_train.scores import Accuracy, Scores, worst_pairs
from mpx_train.unknown import alarms, said_to_be_unknown


def data_of(folder: Path, examples: Sequence[Example]) -> dict[str, Any]:
    """Return what a dataset holds: runs, hours, links, and what was thrown out for which reasons."""
    runs: dict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        runs[example.part][example.mix] += 1
    seconds = sum(example.single[-1].t_s - example.single[0].t_s for example in examples if example.single)
    return {
        "links": len({example.link for example in examples}),
        "runs": {part: dict(sorted(mixes.items())) for part, mixes in sorted(runs.items())},
        "hours": round(seconds / 3600, 2),
        "thrown out": thrown_out(folder),
    }


def thrown_out(folder: Path) -> dict[str, int]:
    """Return how many runs did not count for which reason; one may have several."""
    found: Counter[str] = Counter()
    for file in folder.glob("*/run.json"):
        run = RecordedRun.open(file.parent)
        if not run.valid:
            validity = run.about["validity"] or {"reasons": ["not finished"]}
            found.update({reason.split(":")[0] for reason in validity["reasons"]})
    return dict(sorted(found.items()))


def figures_of(kind: Kind, judged: Judged, part: Part) -> dict[str, Any]:
    """Return how good a part is, as judged on links that were not learnt from."""
    is_known = np.isin(judged.windows.mix, MIXES)
    scores = scores_of(judged)
    clean = judged.windows.is_clean[is_known]
    probabilities = tempered(judged.shares[is_known, : len(MIXES)], part.temperature)
    confusion = scores.confusion()
    found: dict[str, Any] = {
        "kind": kind.name,
        "window_s": kind.window_s,
        "split": f"{DEFAULT.folds} folds of whole links; base: the least round-trip time of the window",
        "windows": len(scores.true),
        "clean": _both(scores.where(clean)),
        "with other traffic": _both(scores.where(~clean)),
        "confusion": {
            mix: dict(zip(MIXES, map(int, row), strict=True))
            for mix, row in zip(MIXES, confusion, strict=True)
        },
        "most confused": [f"{true} for {said}: {share:.1%}" for true, said, share in worst_pairs(confusion)],
        "calibration error": round(calibration_error(probabilities, scores.true), 4),
        "false alarms of unknown": round(alarms(judged, part.ranks), 4),
        "their limit": FALSE_ALARMS,
    }
    outside = said_to_be_unknown(judged, part.ranks)
    if outside:
        found["said to be unknown"] = {name: round(share, 3) for name, share in outside.items()}
    return found


def scores_of(judged: Judged) -> Scores:
    """Return what was said of windows with a mix, the unknown left aside."""
    is_known = np.isin(judged.windows.mix, MIXES)
    said = np.array(MIXES)[judged.shares[is_known, : len(MIXES)].argmax(axis=1)]
    return Scores(judged.windows.mix[is_known], said, judged.fold[is_known])


def _both(scores: Scores) -> Mapping[str, Any]:
    return {"six": _told(scores.six), "three": _told(scores.three)}


def _told(accuracy: Accuracy) -> dict[str, Any] | None:
    if not accuracy.windows:
        return None
    return {name: round(getattr(accuracy, name), 4) for name in ("mean", "least", "most")}
