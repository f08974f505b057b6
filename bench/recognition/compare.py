"""Every classifier on every split: what was computed is kept, so a comparison can be made in pieces."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from mpx_lab.dataset.load import Example
from mpx_train import learn
from mpx_train.cut import Grid, even
from mpx_train.learn import Kind
from mpx_train.scores import Scores
from mpx_train.splits import Split, by_link, by_range, by_run
from numpy.typing import NDArray

from mpx import ops_features
from mpx.ops_model import ACTIVE
from recognition import candidates
from recognition.candidates import CANDIDATES, Task
from recognition.row import SEED

FOLDS = {"quick": 5, "full": 10}
RUN, LINK, RANGE = "by run", "by link", "by range"
SPLITS = (RUN, LINK, RANGE)


@dataclass(frozen=True)
class Outcome:
    """What a classifier said on a split, and which windows were free of other traffic."""

    scores: Scores
    is_clean: NDArray[np.bool_]

    @property
    def clean(self) -> Scores:
        """Windows with nothing but the mix."""
        return self.scores.where(self.is_clean)

    @property
    def disturbed(self) -> Scores:
        """Windows with other traffic beside it."""
        return self.scores.where(~self.is_clean)


@dataclass(frozen=True)
class Comparison:
    """All classifiers on the runs of one way of watching, as far as there was time."""

    grids: Sequence[Grid]
    kind: Kind
    folds: int
    folder: Path

    def splits(self, name: str) -> list[Split]:
        """Return the folds of a split; raises UsageError where the runs cannot be split so."""
        examples = [grid.example for grid in self.grids]
        if name == RANGE:
            return by_range(examples)
        return (by_run if name == RUN else by_link)(examples, self.folds, SEED)

    def missing(self, names: Sequence[str], splits: Sequence[str]) -> list[tuple[str, str]]:
        """Return which classifiers are not computed yet on which splits."""
        return [(c, s) for s in splits for c in names if not self._file(c, s).exists()]

    def compute(self, candidate: str, split: str) -> None:
        """Judge a classifier on a split, and keep what it said."""
        said: list[dict[str, object]] = []
        began = time.process_time()
        for fold, each in enumerate(self.splits(split)):
            judge = even([self.grids[i] for i in each.judge], self.kind.window_s)
            task = Task(
                [self.grids[i] for i in each.learn],
                judge,
                self.kind.window_s,
                SEED,
                aligned=self.kind.name == ACTIVE,
            )
            mixes = CANDIDATES[candidate](task)
            said += [
                {"true": true, "said": mix, "clean": clean, "fold": fold}
                for true, mix, clean in zip(
                    judge.mix.tolist(), mixes.tolist(), judge.is_clean.tolist(), strict=True
                )
            ]
        file = self._file(candidate, split)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"cpu_s": time.process_time() - began, "windows": said}))

    def outcome(self, candidate: str, split: str) -> Outcome:
        """Return what was kept."""
        windows = json.loads(self._file(candidate, split).read_text())["windows"]
        columns = {
            key: np.array([window[key] for window in windows]) for key in ("true", "said", "clean", "fold")
        }
        return Outcome(Scores(columns["true"], columns["said"], columns["fold"]), columns["clean"])

    def cpu_s(self, candidate: str, split: str) -> float:
        """Return the processor's seconds that it took, learning included."""
        return float(json.loads(self._file(candidate, split).read_text())["cpu_s"])

    def _file(self, candidate: str, split: str) -> Path:
        runs = sorted(grid.example.run for grid in self.grids)
        told = json.dumps([runs, self.kind.window_s, self.folds, SEED, _code()])
        which = hashlib.sha256(told.encode()).hexdigest()[:10]
        return self.folder / f"{self.kind.name}-{which}" / f"{candidate}, {split}.json"


@cache
def _code() -> str:
    """Return what names the code that computes all this: what other code has kept does not count."""
    files = [
        *Path(ops_features.__file__).parent.glob("ops_*.py"),
        *Path(learn.__file__).parent.glob("*.py"),
        Path(candidates.__file__),
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


def comparison_lines(outcomes: Mapping[tuple[str, str], Outcome]) -> Iterator[str]:
    """Yield a table: a line for each classifier and split."""
    yield "| classifier | split | clean: six | clean: three | beside other traffic: six | three |"
    yield "|---|---|---|---|---|---|"
    for (candidate, split), outcome in outcomes.items():
        cells = [
            str(accuracy) if accuracy.windows else "-"
            for part in (outcome.clean, outcome.disturbed)
            for accuracy in (part.six, part.three)
        ]
        yield f"| {candidate} | {split} | {' | '.join(cells)} |"


def with_part(examples: Sequence[Example], part: str) -> list[Example]:
    """Return the runs of a part of the dataset."""
    return [example for example in examples if example.part == part]
