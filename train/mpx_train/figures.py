"""How good a part of a model is on unseen links: what the card holds, and what the bench shows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.recognition.observation import TRANSFERS
from mpx.recognition.window_classifier import FALSE_ALARMS
from mpx.recognition.windows import Booleans
from mpx_train.calibrate import calibration_error
from mpx_train.crossfit import Heard, heard
from mpx_train.learn import Judged, Kind
from mpx_train.scores import Accuracy, Scores, worst_pairs
from mpx_train.unknown import alarms, said_to_be_unknown

BASES = {"base: least of the window": False, "base: least ever seen": True}
NOISY = "with the noise of hosts, base: least of the window"


def figures_of(kind: Kind, judged: Judged) -> dict[str, Any]:
    """Return how good a part is, as judged on links that it was neither learnt from nor calibrated on."""
    said = heard(judged)
    known = said.where(judged.is_known)
    folds, links = (len(np.unique(of)) for of in (judged.fold, judged.windows.link))
    noisy = known.judged.windows.is_noisy
    confusion = likeliest_scores(known).confusion()
    wrong = alarms(said)
    found: dict[str, Any] = {
        "kind": kind.name,
        "window_s": kind.window_s,
        "split": f"{folds} folds of {links} links; calibrated on the other folds",
        "windows": int(known.judged.is_usual.sum()),
        **{
            name: _by_condition(known.where((known.judged.base_known == so) & ~noisy))
            for name, so in BASES.items()
        },
        NOISY: _by_condition(known.where(noisy)),
        "none, with the noise of hosts": _said_none(known.where(noisy)),
        "confusion": {
            mix: dict(zip(MIXES, map(int, row), strict=True))
            for mix, row in zip(MIXES, confusion, strict=True)
        },
        "most confused": [f"{true} for {said}: {share:.1%}" for true, said, share in worst_pairs(confusion)],
        "calibration error": round(calibration_error(known.probabilities, known.judged.mix), 4),
        "false alarms of unknown": {
            "mean": round(wrong.mean, 4),
            "most of a link": round(wrong.most, 4),
            "links with over a tenth": round(wrong.links_with_many, 4),
            "aimed at": FALSE_ALARMS,
        },
    }
    streams = known.judged.windows.windows.streams
    if kind.name in TRANSFERS and streams is not None:
        found["by our streams"] = {
            f"{count:.0f}": _both(said_scores(known.where(streams == count))) for count in np.unique(streams)
        }
    outside = said_to_be_unknown(said)
    if outside:
        found["said to be unknown"] = {name: round(share, 3) for name, share in outside.items()}
    return found


def _said_none(known: Heard) -> float | None:
    """Return the share of the windows of paths that nobody else uses that is said to be so."""
    clean = known.where((known.judged.mix == "none") & known.judged.windows.is_clean)
    return round(float((clean.said == "none").mean()), 4) if len(clean.said) else None


def said_scores(known: Heard) -> Scores:
    """Return what mpx would have said of windows with a mix: `unknown` is wrong."""
    return Scores(known.judged.mix, known.said, known.judged.fold)


def likeliest_scores(known: Heard) -> Scores:
    """Return which mix is likeliest, were none said to be unknown."""
    return Scores(known.judged.mix, known.likeliest, known.judged.fold)


def accepted_scores(known: Heard) -> Scores:
    """Return what was said where it was not `unknown`."""
    return said_scores(known.where(~known.is_novel))


def _by_condition(known: Heard) -> Mapping[str, Any]:
    clean = known.judged.windows.is_clean
    return {"clean": _all(known, clean), "with other traffic": _all(known, ~clean)}


def _all(known: Heard, rows: Booleans) -> Mapping[str, Any]:
    some = known.where(rows)
    return {
        "said": _both(said_scores(some)),
        "likeliest": _both(likeliest_scores(some)),
        "where it was not unknown": _both(accepted_scores(some)),
        UNKNOWN: round(float(some.is_novel.mean()), 4) if len(some.is_novel) else None,
    }


def _both(scores: Scores) -> Mapping[str, Any]:
    return {"six": _as_json(scores.six), "three": _as_json(scores.three)}


def _as_json(accuracy: Accuracy) -> dict[str, Any] | None:
    if not accuracy.windows:
        return None
    return {name: round(getattr(accuracy, name), 4) for name in ("mean", "least", "most")}
