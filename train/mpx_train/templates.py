"""Trains nearest neighbours in time warping: which windows to know, what votes are worth, how good it is."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpx.choices import KNN_DTW
from mpx.recognition.dtw import distances
from mpx.recognition.mix import MIXES
from mpx.recognition.observation import TRAINS, WAYS
from mpx.recognition.template_file import FORMAT, read_templates
from mpx.recognition.templates import NOVELTY, RADIUS, Templates, shapes
from mpx.recognition.windows import STEP_S
from mpx_train.cut import Labelled, joined
from mpx_train.model_writer import write_folder
from mpx_train.passive import (
    WINDOW_S,
    card_of,
    figures_of_passive,
    folds_by_link,
    line_of,
    numbers_of,
    passive_data,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # that it cannot read files of a kind that nobody has
    from tslearn.neighbors import KNeighborsTimeSeriesClassifier

MOST_KNOWN = 2000  # templates: answers come in milliseconds
DOUBTS = tuple(np.exp(np.linspace(np.log(0.01), np.log(10.0), 60)))
CHECKED = 10  # windows whose votes are compared with those of tslearn
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


def train_templates(dataset: Path, model: Path, seed: int, k: int) -> Iterator[str]:
    """Learn from a dataset, write the model, and yield lines that say how good it is.

    Raises UsageError where the dataset holds too little, or no model can be written.
    """
    data = passive_data(dataset, model, seed)
    parts, figures = [], []
    for way in WAYS:
        # A late probe changes a shape, so half of them have some. The paper's samples are as published.
        windows = data.windows if way == TRAINS else joined([data.windows, data.noisy])
        part, figure = _learnt(windows, way, k, np.random.default_rng(seed))
        parts.append(part)
        figures.append(figure)
        yield line_of(figure, f"{k} nearest of {len(part.mixes)}")
    command = f"mpx train --classifier {KNN_DTW} --neighbours {k} DATASET -o MODEL --seed {seed}"
    what = "recognises the background by the nearest windows in dynamic time warping (OPS, section 5.4)"
    _write(model, parts, card_of(data, what, command, ("numpy", "tslearn"), figures))
    yield f"wrote {model}"


def samples_of(windows: Labelled, way: str) -> Floats:
    """Return windows as they are compared, see Templates."""
    if way == TRAINS:
        return windows.paper_ms
    return shapes(windows.windows.rtt_s, windows.windows.base_s)


def _learnt(
    windows: Labelled, way: str, k: int, dice: np.random.Generator
) -> tuple[Templates, dict[str, Any]]:
    """Return templates, with votes that are worth what they are on links that were left out, and figures."""
    samples = samples_of(windows, way)
    mixes = numbers_of(windows.mix)
    votes, closest = _out_of_fold(samples, mixes, windows.link, k, dice)
    doubt = _doubt(votes, mixes, k)
    chosen = _some(len(mixes), dice)
    known, kept = samples[chosen].astype(np.float32), mixes[chosen]
    _check(known.astype(float), kept, samples[:CHECKED], k)
    farthest = float(np.quantile(closest, NOVELTY))
    said, noisy = votes.argmax(axis=1), windows.is_noisy
    figure = {
        "way": way,
        "window_s": WINDOW_S,
        "samples": samples.shape[1],
        "k": k,
        "templates": len(chosen),
        **figures_of_passive(said[~noisy], mixes[~noisy], windows.link[~noisy]),
    }
    if noisy.any():
        with_noise = figures_of_passive(said[noisy], mixes[noisy], windows.link[noisy])
        figure["with the noise of hosts"] = {name: with_noise[name] for name in ("six", "three")}
    return Templates(way, WINDOW_S, known, kept, k, doubt, farthest), figure


def _out_of_fold(
    samples: Floats, mixes: Numbers, links: NDArray[np.str_], k: int, dice: np.random.Generator
) -> tuple[Numbers, Floats]:
    """Return the votes of each window, by windows of other links, and the distance to the nearest of them."""
    votes, closest = np.zeros((len(mixes), len(MIXES)), int), np.zeros(len(mixes))
    for judged in folds_by_link(links, dice):
        known = np.flatnonzero(~judged)
        known = known[_some(len(known), dice)]
        apart = distances(samples[judged], samples[known], RADIUS)
        near = np.argsort(apart, axis=1, kind="stable")[:, :k]
        votes[judged] = (mixes[known][near][:, :, None] == np.arange(len(MIXES))).sum(axis=1)
        closest[judged] = apart.min(axis=1)
    return votes, closest


def _doubt(votes: Numbers, mixes: Numbers, k: int) -> float:
    """Return the votes in advance by which the true mixes are likeliest."""

    def log_likelihood(doubt: float) -> float:
        right = votes[np.arange(len(mixes)), mixes]
        return float(np.log((right + doubt) / (k + len(MIXES) * doubt)).sum())

    return float(max(DOUBTS, key=log_likelihood))


def _some(count: int, dice: np.random.Generator) -> NDArray[np.intp]:
    """Return which of so many windows are known, in their order."""
    return np.sort(dice.permutation(count)[:MOST_KNOWN])


def _check(known: Floats, mixes: Numbers, asked: Floats, k: int) -> None:
    """Raise RuntimeError where tslearn's nearest neighbours say something else than ours."""
    settings = {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": RADIUS}
    theirs = KNeighborsTimeSeriesClassifier(n_neighbors=k, metric="dtw", metric_params=settings)
    theirs.fit(known[:, :, None], mixes)
    near = np.argsort(distances(asked, known, RADIUS), axis=1, kind="stable")[:, :k]
    ours = [int(np.bincount(mixes[row], minlength=len(MIXES)).argmax()) for row in near]
    if ours != theirs.predict(asked[:, :, None]).tolist():
        raise RuntimeError("tslearn finds other neighbours: this is a fault of mpx; please report it")


def _write(folder: Path, parts: Sequence[Templates], card: dict[str, Any]) -> None:
    described: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for place, part in enumerate(parts):
        described.append(
            {
                "way": part.way,
                "window_s": part.window_s,
                "k": part.k,
                "doubt": part.doubt,
                "farthest": part.farthest,
            }
        )
        arrays[f"{place}.known"] = part.known.astype("<f4")
        arrays[f"{place}.mixes"] = part.mixes.astype("|u1")
    said = {"format": FORMAT, "card": card, "mixes": list(MIXES), "step_s": STEP_S, "parts": described}
    write_folder(folder, said, arrays)
    read_templates(folder)  # what was just written can be read
