"""OPS-F23: the confusion matrix of passive recognition, 1-NN with windows of 10 s.

The paper's cells are in a figure only, so there is nothing to compare with but its accuracy of 0.80; ours are
published, as percentages of each mix, with precision and recall.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import Verdict
from harness import run_row
from mpx_lab.dataset.load import Example
from mpx_train.paper import DEFAULT_SECONDS
from mpx_train.scores import Scores, confusion_lines, report_lines
from recognition.paper_cell import PaperRuns, draw_confusion
from recognition.row import SeriesRow


class F23(SeriesRow[Scores]):
    """See the head of this file."""

    name = "f23"
    size = (5.0, 4.5)

    def compute(self, examples: Sequence[Example], effort: str) -> Scores:  # noqa: ARG002 there is one length
        """One matrix."""
        return PaperRuns.of(examples, active=False).neighbours(DEFAULT_SECONDS, [1])[1]

    def table(self, results: Scores) -> Sequence[str]:
        """The matrix, and what follows from it."""
        confusion = results.confusion()
        return [*confusion_lines(confusion), "", *report_lines(confusion)]

    def measured(self, results: Scores) -> Any:
        """The accuracy."""
        return {"accuracy": results.six.mean, "told": str(results.six)}

    def draw(self, results: Scores, axes: Any) -> None:
        """The matrix."""
        draw_confusion(results, "passive, 1-NN, 10 s", axes)


def judge(measured: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge the paper's accuracy."""
    yield Verdict("1-NN at 10 s: at least 0.80", measured["told"], measured["accuracy"] >= 0.80)


if __name__ == "__main__":
    run_row(F23(), judge)
