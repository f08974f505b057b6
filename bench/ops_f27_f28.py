"""OPS-F27 and OPS-F28: 1-NN at 10 s, active and passive: what is confused, and whether it matters.

What the rows should show: passive takes BC for BB; active leaves only the number of streams in doubt, and is
right in 0.95 of the windows on whether BBR is there, which is what decides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from figures import Verdict
from mpx_lab.dataset.load import Example
from mpx_train.paper import DEFAULT_SECONDS
from mpx_train.scores import Scores, confusion_lines, report_lines, worst_pairs
from recognition.paper_cell import Cell, draw_confusion
from recognition.row import Row, main

BOTH = {"active": True, "passive": False}
SELDOM = 0.02


class F27F28(Row[Mapping[str, Scores]]):
    """See the head of this file."""

    name = "f27-f28"
    doc = __doc__ or ""
    panels = (1, 2)
    size = (10.0, 4.8)

    def compute(self, examples: Sequence[Example], effort: str) -> Mapping[str, Scores]:  # noqa: ARG002
        """One matrix each."""
        return {
            how: Cell.of(examples, active=active).neighbours(DEFAULT_SECONDS, [1])[1]
            for how, active in BOTH.items()
        }

    def table(self, results: Mapping[str, Scores]) -> Sequence[str]:
        """Both matrices, what follows from them, and the decision of two."""
        lines = ["| probing | six mixes | three groups | BBR there or not |", "|---|---|---|---|"]
        lines += [f"| {how} | {of.six} | {of.three} | {of.two} |" for how, of in results.items()]
        for how, scores in results.items():
            confusion = scores.confusion()
            lines += ["", f"{how}:", "", *confusion_lines(confusion), "", *report_lines(confusion)]
        return lines

    def verdicts(self, results: Mapping[str, Scores]) -> Sequence[Verdict]:
        """The decision, and what is confused."""
        active, passive = results["active"], results["passive"]
        pairs = "; ".join(f"{a} for {b} {share:.1%}" for a, b, share in worst_pairs(active.confusion()))
        kinds = [set(a) != set(b) and share > SELDOM for a, b, share in worst_pairs(active.confusion(), 30)]
        return [
            Verdict("active: BBR there or not, at least 0.95", str(active.two), active.two.mean >= 0.95),
            Verdict(
                "passive takes BC for BB, and more often than active does",
                " and ".join(f"{how} {bc_for_bb(scores):.1%}" for how, scores in results.items()),
                bc_for_bb(passive) > max(SELDOM, bc_for_bb(active)),
            ),
            Verdict(
                "active knows better than passive whether BBR is there",
                f"{active.two.mean:.3f} and {passive.two.mean:.3f}",
                active.two.mean >= passive.two.mean,
            ),
            Verdict(
                "active leaves only the number of streams in doubt (others below 2 %)", pairs, not any(kinds)
            ),
        ]

    def draw(self, results: Mapping[str, Scores], axes: Any) -> None:
        """Both matrices."""
        for panel, (how, scores) in zip(axes.flat, results.items(), strict=True):
            draw_confusion(scores, f"{how}, 1-NN, 10 s", panel)


def bc_for_bb(scores: Scores) -> float:
    """Return the share of windows of BC that are taken for BB."""
    windows = scores.true == "BC"
    return float((scores.said[windows] == "BB").mean())


if __name__ == "__main__":
    main(F27F28())
