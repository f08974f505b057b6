"""Every classifier on every split; results are stored, so that a comparison can run in parts."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import sklearn
from mpx_lab.dataset import load
from mpx_train import learn
from mpx_train.cut import Gridded, even
from mpx_train.learn import Kind
from mpx_train.scores import Scores
from mpx_train.splits import Split, by_link, by_range, by_run
from numpy.typing import NDArray

from mpx import ops_classifier
from mpx.recognition import features
from mpx.rtt import series
from recognition import candidates
from recognition.candidates import CANDIDATES, Task
from recognition.row import SEED

# Of runs, and of links; as many as links leave one out at a time.
RUN_FOLDS = {"quick": 5, "full": 10}
LINK_FOLDS = {"quick": 5, "full": 10_000}
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

    grids: Sequence[Gridded]
    kind: Kind
    effort: str  # quick or full
    folder: Path

    def splits(self, name: str) -> list[Split]:
        """Return the folds of a split; raises UsageError where the runs cannot be split so."""
        examples = [grid.example for grid in self.grids]
        if name == RANGE:
            return by_range(examples)
        if name == RUN:
            return by_run(examples, RUN_FOLDS[self.effort], SEED)
        return by_link(examples, LINK_FOLDS[self.effort], SEED)

    def missing(self, names: Sequence[str], splits: Sequence[str]) -> list[tuple[str, str]]:
        """Return which classifiers are not computed yet on which splits."""
        return [(c, s) for s in splits for c in names if not self._file(c, s).exists()]

    def compute(self, candidate: str, split: str) -> None:
        """Judge a classifier on a split, and keep what it said."""
        said: list[dict[str, object]] = []
        began = time.process_time()
        for fold, each in enumerate(self.splits(split)):
            judge = even([self.grids[i] for i in each.judge], self.kind.window_s)
            task = Task([self.grids[i] for i in each.learn], judge, self.kind, SEED)
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
        return self.folder / f"{self.kind.name}-{self._which}" / f"{candidate}, {split}.json"

    @cached_property
    def _which(self) -> str:
        """A key of the series and the code: results of others do not count."""
        found = hashlib.sha256(json.dumps([self.kind.window_s, self.effort, SEED, _code()]).encode())
        for grid in self.grids:
            found.update(f"{grid.example.run} {grid.example.link} {grid.example.mix}\n".encode())
            found.update(grid.rtt_s.tobytes())
        return found.hexdigest()[:10]


@cache
def _code() -> str:
    """Return a key of the code of all computations."""
    told = b"".join(file.read_bytes() for file in code_files()) + sklearn.__version__.encode()
    return hashlib.sha256(told).hexdigest()


def code_files() -> list[Path]:
    """Return the files of that code: of what mpx recognises by, of learning, and of the classifiers here."""
    folders = (Path(module.__file__).parent for module in (features, learn))
    files = [file for folder in folders for file in folder.glob("*.py")]
    return sorted([*files, *(Path(module.__file__) for module in (candidates, load, ops_classifier, series))])


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
