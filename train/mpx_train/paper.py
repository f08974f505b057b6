"""The paper's classifiers with its settings (OPS, section 5.4), on raw round-trip times, one a second.

What the paper leaves open is scikit-learn's default. A vote of k neighbours that ends in a tie goes to the
mix that comes first by name, as in tslearn.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpx_lab.dataset.load import Example
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from mpx_train.cut import Texts, by_the_second

RADIUS = 10
NEIGHBOURS = (1, 3, 5, 10)
SECONDS = tuple(range(5, 61, 5))  # windows
DEFAULT_SECONDS = 10
FOLDS = 5
Floats = NDArray[np.float64]

OTHERS: dict[str, Callable[[int], Any]] = {
    "MLP": lambda seed: MLPClassifier(hidden_layer_sizes=(64, 64), random_state=seed),
    "SVM": lambda seed: SVC(random_state=seed),
    "GNB": lambda _: GaussianNB(),
}


def raw_windows(examples: Sequence[Example], seconds: int) -> tuple[Floats, NDArray[np.intp]]:
    """Return windows of so many samples, milliseconds, without overlap, and the number of each one's run."""
    rows, runs = [], []
    for number, example in enumerate(examples):
        series = by_the_second(example)
        count = len(series) // seconds
        rows.append(series[: count * seconds].reshape(count, seconds))
        runs.append(np.full(count, number))
    return np.concatenate(rows), np.concatenate(runs)


def vote(distances: Floats, mixes: Texts, k: int) -> Texts:
    """Return the mix of most of the k nearest; `distances` has a row for each window that is judged."""
    names, numbers = np.unique(mixes, return_inverse=True)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    votes = np.stack([(numbers[nearest] == number).sum(axis=1) for number in range(len(names))], axis=1)
    return np.asarray(names[votes.argmax(axis=1)])


def fit_other(name: str, windows: Floats, mixes: Texts, seed: int) -> Any:
    """Return one of `OTHERS`, trained; the paper says nothing of how long its network was trained."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OTHERS[name](seed).fit(windows, mixes)
