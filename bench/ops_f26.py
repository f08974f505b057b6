"""OPS-F26: confusion matrices at 10 s of active 1-, 3- and 5-NN, and of passive 1-NN.

What the row should show: the diagonal of each active matrix holds more than that of the passive one, and
active 1-NN is the best.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from figures import Verdict
from harness import run_row
from mpx_lab.dataset.load import Example
from mpx_train.paper import DEFAULT_SECONDS
from mpx_train.scores import Scores, confusion_lines
from ops_f24 import ACTIVE_KS, PASSIVE
from recognition.paper_cell import PaperRuns, draw_confusion
from recognition.row import SeriesRow

Matrices = Mapping[str, Scores]


class F26(SeriesRow[Matrices]):
    """See the head of this file."""

    name = "f26"
    panels = (2, 2)
    size = (10.0, 9.0)

    def compute(self, examples: Sequence[Example], effort: str) -> Matrices:  # noqa: ARG002 there is one length
        """Four matrices."""
        active = PaperRuns.of(examples, active=True).neighbours(DEFAULT_SECONDS, ACTIVE_KS)
        passive = PaperRuns.of(examples, active=False).neighbours(DEFAULT_SECONDS, [1])[1]
        return {**{f"active {k}-NN": scores for k, scores in active.items()}, PASSIVE: passive}

    def table(self, results: Matrices) -> Sequence[str]:
        """One after the other."""
        return [
            line
            for name, scores in results.items()
            for line in ("", f"{name}: {scores.six}", "", *confusion_lines(scores.confusion()))
        ]

    def measured(self, results: Matrices) -> Any:
        """What each diagonal holds."""
        return {name: diagonal(scores) for name, scores in results.items()}

    def draw(self, results: Matrices, axes: Any) -> None:
        """Four matrices."""
        for panel, (name, scores) in zip(axes.flat, results.items(), strict=True):
            draw_confusion(scores, f"{name}, 10 s", panel)


def judge(held: Mapping[str, float]) -> Iterable[Verdict]:
    """Judge what the diagonals hold."""
    told = ", ".join(f"{name} {share:.3f}" for name, share in held.items())
    active = [share for name, share in held.items() if name != PASSIVE]
    limit = "every active diagonal holds more than the passive one"
    yield Verdict(limit, told, min(active) > held[PASSIVE])
    yield Verdict("active 1-NN is the best", told, held["active 1-NN"] == max(held.values()))


def diagonal(scores: Scores) -> float:
    """Return what share of the windows of a mix is right, on average over the mixes."""
    confusion = scores.confusion()
    return float(np.mean(np.diag(confusion) / np.maximum(1, confusion.sum(axis=1))))


if __name__ == "__main__":
    run_row(F26(), judge)
