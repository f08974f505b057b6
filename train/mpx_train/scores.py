"""The accuracy of a classifier: six mixes and three groups, spread over folds, confusions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpx.recognition.mix import GROUP_OF, MIXES
from mpx.recognition.neighbours import Texts

Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Accuracy:
    """A share of windows; the least and the most of it among folds."""

    mean: float
    least: float
    most: float
    windows: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.least:.2f} to {self.most:.2f})"


@dataclass(frozen=True)
class Scores:
    """What was true and what was said, window for window, and which fold each was judged in."""

    true: Texts
    said: Texts
    fold: NDArray[np.intp]

    def where(self, rows: Rows) -> "Scores":
        """Return those of some windows."""
        return Scores(self.true[rows], self.said[rows], self.fold[rows])

    @property
    def six(self) -> Accuracy:
        """Of the six mixes."""
        return self._accuracy(self.true == self.said)

    @property
    def three(self) -> Accuracy:
        """Of the three groups."""
        return self._accuracy(groups(self.true) == groups(self.said))

    @property
    def two(self) -> Accuracy:
        """Of whether BBR is there, which is what decides."""
        return self._accuracy(_has_bbr(self.true) == _has_bbr(self.said))

    def confusion(self) -> NDArray[np.intp]:
        """Return how many windows of each mix (row) were taken for each (column), in the order of MIXES."""
        return np.array(
            [[int(((self.true == true) & (self.said == said)).sum()) for said in MIXES] for true in MIXES]
        )

    def _accuracy(self, right: Rows) -> Accuracy:
        if not len(right):
            return Accuracy(float("nan"), float("nan"), float("nan"), 0)
        folds = [float(right[self.fold == fold].mean()) for fold in np.unique(self.fold)]
        return Accuracy(float(right.mean()), min(folds), max(folds), len(right))


def groups(mixes: Texts) -> Texts:
    """Return the group of each mix; what is none of the mixes is its own."""
    return np.array([GROUP_OF.get(mix, mix) for mix in mixes.tolist()])


def _has_bbr(mixes: Texts) -> Rows:
    return np.array(["B" in mix for mix in mixes.tolist()])


def confusion_lines(confusion: NDArray[np.intp]) -> list[str]:
    """Return a table of shares of each row, in percent."""
    lines = ["| truth \\ said | " + " | ".join(MIXES) + " |", "|---" * (len(MIXES) + 1) + "|"]
    for mix, row in zip(MIXES, confusion, strict=True):
        shares = [f"{value / max(1, row.sum()):.1%}" if value else "." for value in row]
        lines.append(f"| {mix} | " + " | ".join(shares) + " |")
    return lines


def report_lines(confusion: NDArray[np.intp]) -> list[str]:
    """Return precision, recall and F1 of each mix."""
    lines = ["| mix | precision | recall | F1 | windows |", "|---|---|---|---|---|"]
    for number, mix in enumerate(MIXES):
        hit = confusion[number, number]
        precision = hit / max(1, confusion[:, number].sum())
        recall = hit / max(1, confusion[number].sum())
        f1 = 2 * precision * recall / max(1e-9, precision + recall)
        lines.append(f"| {mix} | {precision:.2f} | {recall:.2f} | {f1:.2f} | {confusion[number].sum()} |")
    return lines


def worst_pairs(confusion: NDArray[np.intp], most: int = 4) -> Sequence[tuple[str, str, float]]:
    """Return which mix is taken for which, and in what share of its windows, the most frequent first."""
    shares = confusion / np.maximum(1, confusion.sum(axis=1, keepdims=True))
    np.fill_diagonal(shares, 0)
    order = np.argsort(shares, axis=None)[::-1][:most]
    pairs = [np.unravel_index(place, shares.shape) for place in order]
    return [
        (MIXES[true], MIXES[said], float(shares[true, said])) for true, said in pairs if shares[true, said]
    ]
