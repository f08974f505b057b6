"""OPS-F22: passive recognition over the length of the window, the paper's four classifiers.

What the row should show: 1-NN with time warping reaches 0.75 at 10 s (the paper: 0.80) and rises with the
window, to a peak of 0.85 in the paper; the support vector machine falls with the window. Also judged by
piece, where no run is on both sides; the paper did not.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from figures import Verdict
from harness import run_row
from mpx_lab.dataset.load import Example
from mpx_train.paper import DEFAULT_SECONDS, OTHERS
from recognition.paper_cell import CurveRow, Curves, PaperRuns, seconds_of

NEAREST, BY_PIECE = "1-NN", "1-NN by piece"
GOAL = 0.80


class F22(CurveRow):
    """See the head of this file."""

    name = "f22"

    def compute(self, examples: Sequence[Example], effort: str) -> Curves:
        """All four, for each length."""
        cell, seconds = PaperRuns.of(examples, active=False), seconds_of(effort)
        curves = {NEAREST: {w: cell.neighbours(w, [1])[1] for w in seconds}}
        curves |= {name: {w: cell.other(name, w) for w in seconds} for name in OTHERS}
        curves[BY_PIECE] = {w: cell.neighbours(w, [1], by_piece=True)[1] for w in seconds}
        return curves


def judge(curves: Mapping[str, Mapping[str, float]]) -> Iterable[Verdict]:
    """Judge the issue's goal and what the paper's figure shows; accuracies by classifier and seconds."""
    nearest, machine, ten = curves[NEAREST], curves["SVM"], str(DEFAULT_SECONDS)
    at_ten = nearest[ten]
    yield Verdict("1-NN at 10 s: at least 0.75", f"{at_ten:.3f}", at_ten >= 0.75)
    yield Verdict(f"1-NN at 10 s: at least {GOAL:.2f}, the paper's", f"{at_ten:.3f}", at_ten >= GOAL)
    others = ", ".join(f"{name} {curve[ten]:.2f}" for name, curve in curves.items())
    best = max(curves[name][ten] for name in OTHERS)
    yield Verdict("1-NN is the best of the paper's at 10 s", others, at_ten >= best)
    told = f"slope {slope(nearest):+.4f} a second, best {max(nearest, key=lambda w: nearest[w])} s"
    yield Verdict("1-NN rises with w", told, slope(nearest) > 0)
    yield Verdict("SVM falls with w", f"slope {slope(machine):+.4f} a second", slope(machine) < 0)


def slope(curve: Mapping[str, float]) -> float:
    """Return by how much accuracy changes with a second more, by least squares."""
    return float(np.polyfit([float(w) for w in curve], list(curve.values()), 1)[0])


if __name__ == "__main__":
    run_row(F22(), judge)
