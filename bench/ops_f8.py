"""OPS-F8: 90 s of round-trip times of each mix on the paper's link, passive and active.

What the row should show: each mix has a signature. Stretches of the same mix are nearer to each other in time
warping than those of different mixes (medians), and with active probing by more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from figures import Verdict
from harness import run_row
from mpx_lab.dataset.load import Example
from mpx_train.paper import raw_windows
from recognition.paper_cell import PaperRuns
from recognition.row import SeriesRow

from mpx.ops_classifier import NearestNeighbours
from mpx.recognition.mix import MIXES
from mpx.recognition.neighbours import Texts
from mpx.recognition.windows import Floats

SECONDS = 90
LEAST_MS = 0.001
AROUND_MS = 5.0  # of the figure
PROBING = {"passive": False, "active": True}


@dataclass(frozen=True)
class Signatures:
    """Stretches of 90 s, milliseconds, and how far they are from each other."""

    stretches: Floats
    mixes: Texts
    apart: Floats

    @property
    def within(self) -> float:
        """The median distance of two of the same mix."""
        same = (self.mixes[:, None] == self.mixes) & ~np.eye(len(self.mixes), dtype=bool)
        return float(np.median(self.apart[same]))

    @property
    def between(self) -> float:
        """The median distance of two of different mixes."""
        return float(np.median(self.apart[self.mixes[:, None] != self.mixes]))

    @property
    def ratio(self) -> float:
        """How many times as far different mixes are."""
        return self.between / max(self.within, LEAST_MS)


class F8(SeriesRow[Mapping[str, Signatures]]):
    """See the head of this file."""

    name = "f8"
    panels = (2, 6)
    size = (16.0, 5.0)

    def compute(self, examples: Sequence[Example], effort: str) -> Mapping[str, Signatures]:  # noqa: ARG002
        """Both ways of probing."""
        return {how: signatures(PaperRuns.of(examples, active=active)) for how, active in PROBING.items()}

    def table(self, results: Mapping[str, Signatures]) -> Sequence[str]:
        """The distances."""
        lines = ["| probing | same mix, ms | different mixes, ms | ratio |", "|---|---|---|---|"]
        return lines + [
            f"| {how} | {of.within:.0f} | {of.between:.0f} | {of.ratio:.2f} |" for how, of in results.items()
        ]

    def measured(self, results: Mapping[str, Signatures]) -> Any:
        """The median distances, in ms."""
        return {how: {"within_ms": of.within, "between_ms": of.between} for how, of in results.items()}

    def draw(self, results: Mapping[str, Signatures], axes: Any) -> None:
        """A stretch of each mix, all on one scale."""
        every = np.concatenate([of.stretches for of in results.values()])
        scale = (every.min() - AROUND_MS, every.max() + AROUND_MS)
        for row, (how, of) in zip(axes, results.items(), strict=True):
            for panel, mix in zip(row, MIXES, strict=True):
                for stretch in of.stretches[of.mixes == mix][:1]:
                    panel.plot(stretch, linewidth=0.8)
                panel.set(title=f"{mix}, {how}", xlabel="s", ylabel="RTT, ms", ylim=scale)
                panel.grid(alpha=0.3)


def judge(measured: Mapping[str, Mapping[str, float]]) -> Iterable[Verdict]:
    """Say whether signatures differ, and with bursts by more."""
    ratios = {}
    for how, of in measured.items():
        within, between = of["within_ms"], of["between_ms"]
        ratios[how] = between / max(within, LEAST_MS)
        limit = f"{how}: the same mix is nearer than another"
        yield Verdict(limit, f"{within:.0f} and {between:.0f} ms", within < between)
    told = ", ".join(f"{how} {ratio:.2f}" for how, ratio in ratios.items())
    yield Verdict("by more with bursts", told, ratios["active"] > ratios["passive"])


def signatures(cell: PaperRuns) -> Signatures:
    """Return all stretches that a cell has."""
    stretches, runs = raw_windows(cell.examples, SECONDS)
    mixes = np.array([cell.examples[run].mix for run in runs])
    return Signatures(stretches, mixes, NearestNeighbours(stretches, mixes).distances(stretches))


if __name__ == "__main__":
    run_row(F8(), judge)
