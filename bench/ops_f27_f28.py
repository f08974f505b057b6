"""OPS-F27 and OPS-F28: 1-NN at 10 s, active and passive: what is confused, and whether it matters.

What the rows should show: passive takes BC for BB; active leaves only the number of streams in doubt, and is
right in 0.95 of the windows on whether BBR is there, which is what decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import Verdict
from harness import run_row
from mpx_lab.dataset.load import Example
from mpx_train.paper import DEFAULT_SECONDS
from mpx_train.scores import Scores, confusion_lines, report_lines, worst_pairs
from recognition.paper_cell import PaperRuns, draw_confusion
from recognition.row import SeriesRow

BOTH = {"active": True, "passive": False}
SELDOM = 0.02


class F27F28(SeriesRow[Mapping[str, Scores]]):
    """See the head of this file."""

    name = "f27-f28"
    panels = (1, 2)
    size = (10.0, 4.8)

    def compute(self, examples: Sequence[Example], effort: str) -> Mapping[str, Scores]:  # noqa: ARG002
        """One matrix each."""
        return {
            how: PaperRuns.of(examples, active=active).neighbours(DEFAULT_SECONDS, [1])[1]
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

    def measured(self, results: Mapping[str, Scores]) -> Any:
        """How often BBR is known to be there, or BC taken for BB, and what is confused most."""
        return {
            how: {
                "bbr_known": scores.two.mean,
                "bc_for_bb": bc_for_bb(scores),
                "confused": list(worst_pairs(scores.confusion(), 30)),
            }
            for how, scores in results.items()
        }

    def draw(self, results: Mapping[str, Scores], axes: Any) -> None:
        """Both matrices."""
        for panel, (how, scores) in zip(axes.flat, results.items(), strict=True):
            draw_confusion(scores, f"{how}, 1-NN, 10 s", panel)


def judge(measured: Mapping[str, Mapping[str, Any]]) -> Iterable[Verdict]:
    """Judge the decision, and what is confused."""
    active, passive = measured["active"], measured["passive"]
    known, other = active["bbr_known"], passive["bbr_known"]
    yield Verdict("active: BBR there or not, at least 0.95", f"{known:.3f}", known >= 0.95)
    mistaken = {how: each["bc_for_bb"] for how, each in measured.items()}
    yield Verdict(
        "passive takes BC for BB, and more often than active does",
        " and ".join(f"{how} {share:.1%}" for how, share in mistaken.items()),
        mistaken["passive"] > max(SELDOM, mistaken["active"]),
    )
    limit = "active knows no worse than passive whether BBR is there"
    yield Verdict(limit, f"{known:.3f} and {other:.3f}", known >= other)
    pairs = "; ".join(f"{a} for {b} {share:.1%}" for a, b, share in active["confused"][:6])
    kinds = [set(a) != set(b) and share >= SELDOM for a, b, share in active["confused"]]
    limit = f"active leaves only the number of streams in doubt (others below {SELDOM:.0%})"
    yield Verdict(limit, pairs, not any(kinds))


def bc_for_bb(scores: Scores) -> float:
    """Return the share of windows of BC that are taken for BB."""
    windows = scores.true == "BC"
    return float((scores.said[windows] == "BB").mean())


if __name__ == "__main__":
    run_row(F27F28(), judge)
