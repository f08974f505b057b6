"""Trains the other classifiers of OPS with scikit-learn: network, support vectors, Gaussian naive Bayes.

Settings are the paper's (paper.py). What they are given, see mpx/recognition/estimator.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from mpx.choices import MLP, NAIVE_BAYES, SVM
from mpx.errors import UsageError
from mpx.recognition.estimator import NOVELTY, EstimatorPart, Scale, softmax
from mpx.recognition.estimator_file import (
    FLOATS,
    FORMATS,
    OF_PLACES,
    PLACES,
    SCALE,
    inputs_of,
    read_estimators,
)
from mpx.recognition.features import features
from mpx.recognition.mix import MIXES
from mpx.recognition.neighbours import Texts
from mpx.recognition.observation import PASSIVE, TRAINS, WAYS
from mpx.recognition.windows import STEP_S, Floats
from mpx_train.calibrate import lie, place_of_least
from mpx_train.cut import Labelled, drawn
from mpx_train.from_sklearn import converted
from mpx_train.learn import DEFAULT
from mpx_train.model_writer import write_folder
from mpx_train.paper import fit_other
from mpx_train.passive import (
    WINDOW_S,
    Numbers,
    PassiveData,
    card_of,
    figures_of_passive,
    folds_by_link,
    line_of,
    numbers_of,
    passive_data,
)

IN_THE_PAPER: Mapping[str, str] = {MLP: "MLP", SVM: "SVM", NAIVE_BAYES: "GNB"}
TEMPERATURES = (0.01, 1e4)


@dataclass(frozen=True)
class _Rows:
    """Windows as an estimator is given them, and their labels."""

    rows: Floats
    mixes: Texts
    links: Texts

    def without(self, links: Texts) -> "_Rows":
        """Return those of other links."""
        chosen = ~np.isin(self.links, links)
        return _Rows(self.rows[chosen], self.mixes[chosen], self.links[chosen])


def train_estimators(dataset: Path, model: Path, name: str, seed: int) -> Iterator[str]:
    """Learn from a dataset, write the model, and yield lines that say how good it is.

    `name`: mlp, svm or naive-bayes. Raises UsageError where the dataset holds too little, or no model can be
    written.
    """
    data = passive_data(dataset, model, seed)
    parts, figures = [], []
    for way in WAYS:
        part, figure = _learnt(data, way, name, seed)
        parts.append(part)
        figures.append(figure)
        yield line_of(figure, name)
        if (share := figure["other traffic said to be unknown"]) is not None:
            yield f"  other traffic said to be unknown: {share:.2f}"
    what = f"recognises the background by the {IN_THE_PAPER[name]} of OPS, section 5.4"
    command = f"mpx train --classifier {name} DATASET -o MODEL --seed {seed}"
    write_estimators(model, name, parts, card_of(data, what, command, ("numpy", "scikit-learn"), figures))
    yield f"wrote {model}"


def _learnt(data: PassiveData, way: str, name: str, seed: int) -> tuple[EstimatorPart, dict[str, Any]]:
    """Return a part, whose scores are worth what they are on links that were left out, and figures."""
    dice = np.random.default_rng(seed)
    learn, judge = _given(data, way, dice)
    mixes = numbers_of(judge.mixes)
    scores, distances = np.zeros((len(mixes), len(MIXES))), np.zeros(len(mixes))
    for judged in folds_by_link(judge.links, dice):
        made = _made(way, name, learn.without(judge.links[judged]), seed)
        rows = judge.rows[judged]
        scores[judged] = [made.estimator.scores(row) for row in made.scale.scaled(rows)]
        distances[judged] = made.places.distances(rows)
    whole = _made(way, name, learn, seed)
    farthest = float(np.quantile(distances, NOVELTY))
    part = EstimatorPart(
        way, WINDOW_S, whole.scale, whole.estimator, _temperature(scores, mixes), whole.places, farthest
    )
    figure = {
        "way": way,
        "window_s": WINDOW_S,
        "numbers": learn.rows.shape[1],
        "learnt from": len(learn.rows),
        **figures_of_passive(scores.argmax(axis=1), mixes, judge.links),
        "other traffic said to be unknown": None,
    }
    if data.others is not None:
        far = whole.places.distances(_rows_of(data.others, way).rows) > farthest
        figure["other traffic said to be unknown"] = round(float(far.mean()), 4)
    return part, figure


def _given(data: PassiveData, way: str, dice: np.random.Generator) -> tuple[_Rows, _Rows]:
    """Return what is learnt from, and what is judged: the paper's samples, or features.

    Features are learnt from windows that are disturbed, as trees learn them (cut.drawn).
    """
    judge = _rows_of(data.windows, way)
    if way == TRAINS:
        return judge, judge
    return _rows_of(drawn(data.grids, WINDOW_S, DEFAULT.copies, dice, PASSIVE), way), judge


def _rows_of(windows: Labelled, way: str) -> _Rows:
    rows = windows.paper_ms if way == TRAINS else features(windows.windows, PASSIVE)
    return _Rows(rows, windows.mix, windows.link)


def _made(way: str, name: str, learn: _Rows, seed: int) -> EstimatorPart:
    """Return a part without calibration; raises UsageError where a mix has no window."""
    missing = set(MIXES) - set(learn.mixes.tolist())
    if missing:
        names = ", ".join(sorted(missing))
        raise UsageError(f"there is no {way} run of {names} to learn from; measure more links")
    scale = _scale(way, learn.rows)
    rows = scale.scaled(learn.rows)
    fitted = fit_other(IN_THE_PAPER[name], rows, numbers_of(learn.mixes), seed)
    estimator = converted(name, fitted, rows)
    return EstimatorPart(way, WINDOW_S, scale, estimator, 1.0, lie(learn.rows, learn.mixes), 0.0)


def _scale(way: str, rows: Floats) -> Scale:
    """Return what makes features alike in size; the paper's samples stay as they are."""
    if way == TRAINS:
        return Scale(np.zeros(rows.shape[1]), np.ones(rows.shape[1]))
    found = StandardScaler().fit(rows)
    return Scale(found.mean_, found.scale_)


def _temperature(scores: Floats, mixes: Numbers) -> float:
    """Return the temperature that maximises the likelihood of the true mixes."""

    def surprise(log_temperature: float) -> float:
        right = softmax(scores, float(np.exp(log_temperature)))[np.arange(len(mixes)), mixes]
        return float(-np.log(np.maximum(right, 1e-300)).mean())

    return float(np.exp(place_of_least(surprise, *np.log(TEMPERATURES))))


def write_estimators(
    folder: Path, name: str, parts: Sequence[EstimatorPart], card: Mapping[str, Any]
) -> None:
    """Write a model; the same one is the same bytes. `check_model_writable` has made the folder."""
    described: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for place, part in enumerate(parts):
        described.append(
            {
                "way": part.way,
                "window_s": part.window_s,
                "temperature": part.temperature,
                "farthest": part.farthest,
                "features": inputs_of(part.way, part.window_s)[0],
            }
        )
        for of, names, prefix in (
            (part.scale, SCALE, ""),
            (part.estimator, part.estimator.DIMENSIONS, ""),
            (part.places, PLACES, OF_PLACES),
        ):
            arrays |= {f"{place}.{prefix}{each}": getattr(of, each).astype(FLOATS) for each in names}
    form = next(form for form, of in FORMATS.items() if of == name)
    said = {"format": form, "card": dict(card), "mixes": list(MIXES), "step_s": STEP_S, "parts": described}
    write_folder(folder, said, arrays)
    read_estimators(folder, form)  # what was just written can be read
