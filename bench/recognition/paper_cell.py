"""The paper's own experiment: one link, an hour of each mix, its classifiers, its shuffled windows.

The link has the paper's 128 ms and 0.75 BDP. Neighbouring windows of a run are on both sides of the paper's
folds, so the same is also judged by piece: of the pieces of ten minutes that an hour is made of, some are
left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpx_lab.dataset.load import Example
from mpx_train.paper import FOLDS, SECONDS, fit_other, raw_windows
from mpx_train.scores import Scores
from mpx_train.splits import Split, by_run, shuffled

from mpx.errors import UsageError
from mpx.ops_classifier import NearestNeighbours
from mpx.recognition.mix import MIXES
from mpx.recognition.neighbours import Texts, vote
from mpx.recognition.windows import Floats
from recognition.row import SEED, SeriesRow

QUICK_SECONDS = (5, 10, 20, 35, 40, 50, 60)
Curves = Mapping[str, Mapping[int, Scores]]  # by classifier, then by seconds


@dataclass(frozen=True)
class PaperRuns:
    """The runs of the paper's link with one way of probing."""

    examples: Sequence[Example]

    @classmethod
    def of(cls, examples: Sequence[Example], *, active: bool) -> "PaperRuns":
        """Return it; raises UsageError where the dataset has no such runs."""
        profile = "paper" if active else ""
        found = [
            each for each in examples if each.part == "paper" and each.profile == profile and each.single
        ]
        if len({each.mix for each in found}) < 2:
            how = "active" if active else "passive"
            raise UsageError(
                f"the dataset has no {how} runs of the paper's link; measure: mpx lab dataset --part paper"
            )
        return cls(found)

    def neighbours(self, seconds: int, ks: Sequence[int], *, by_piece: bool = False) -> dict[int, Scores]:
        """Return how right the k nearest neighbours are in windows of so many seconds."""
        windows, mixes, splits = self._windows(seconds, by_piece)
        apart = NearestNeighbours(windows, mixes).distances(windows)
        return {
            k: _judged(
                mixes,
                splits,
                lambda split, k=k: vote(apart[np.ix_(split.judge, split.learn)], mixes[split.learn], k),
            )
            for k in ks
        }

    def other(self, name: str, seconds: int) -> Scores:
        """Return how right another of the paper's classifiers is."""
        windows, mixes, splits = self._windows(seconds, by_piece=False)
        return _judged(
            mixes,
            splits,
            lambda split: np.asarray(
                fit_other(name, windows[split.learn], mixes[split.learn], SEED).predict(windows[split.judge])
            ),
        )

    def _windows(self, seconds: int, by_piece: bool) -> tuple[Floats, Texts, Sequence[Split]]:
        windows, runs = raw_windows(self.examples, seconds)
        mixes = np.array([self.examples[run].mix for run in runs])
        if not by_piece:
            return windows, mixes, shuffled(mixes, FOLDS, SEED)
        pieces = by_run(self.examples, FOLDS, SEED)
        sides = [(np.isin(runs, split.learn), np.isin(runs, split.judge)) for split in pieces]
        return windows, mixes, [Split(np.flatnonzero(learn), np.flatnonzero(judge)) for learn, judge in sides]


def seconds_of(effort: str) -> Sequence[int]:
    """Return the windows' lengths: all twelve of the paper, or those that its text names."""
    return SECONDS if effort == "full" else QUICK_SECONDS


class CurveRow(SeriesRow[Curves]):
    """A row of accuracies over the length of the window, a curve for each classifier."""

    def table(self, results: Curves) -> Sequence[str]:
        """A line for each length, a column for each classifier: mean, least and most of the folds."""
        lines = [
            "| w, s | " + " | ".join(f"{name}: mean (folds)" for name in results) + " |",
            "|---" * (len(results) + 1) + "|",
        ]
        for seconds in next(iter(results.values())):
            cells = [str(curve[seconds].six) if seconds in curve else "-" for curve in results.values()]
            lines.append(f"| {seconds} | " + " | ".join(cells) + " |")
        return lines

    def measured(self, results: Curves) -> Any:
        """The share of windows that are right, by classifier and seconds."""
        return {
            name: {seconds: scores.six.mean for seconds, scores in curve.items()}
            for name, curve in results.items()
        }

    def draw(self, results: Curves, axes: Any) -> None:
        """Accuracy over the length of the window."""
        for name, curve in results.items():
            axes.plot(list(curve), [scores.six.mean for scores in curve.values()], marker="o", label=name)
        axes.set(xlabel="window w, s", ylabel="accuracy, six mixes", ylim=(0, 1.02))
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", ncols=2)


def draw_confusion(scores: Scores, title: str, axes: Any) -> None:
    """Draw a confusion matrix, each row as shares of its windows."""
    confusion = scores.confusion()
    shares = confusion / np.maximum(1, confusion.sum(axis=1, keepdims=True))
    axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    axes.set_xticks(range(len(MIXES)), MIXES)
    axes.set_yticks(range(len(MIXES)), MIXES)
    axes.set(xlabel="said", ylabel="truth", title=title)
    for i, j in np.argwhere(shares >= 0.005):
        colour = "white" if shares[i, j] > 0.5 else "black"
        axes.text(j, i, f"{shares[i, j]:.2f}", ha="center", va="center", fontsize="small", color=colour)


def _judged(mixes: Texts, splits: Sequence[Split], say: Callable[[Split], Texts]) -> Scores:
    said, fold = np.empty_like(mixes), np.full(len(mixes), -1)
    for number, split in enumerate(splits):
        said[split.judge], fold[split.judge] = say(split), number
    seen = fold >= 0
    return Scores(mixes[seen], said[seen], fold[seen])
