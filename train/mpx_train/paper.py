"""The paper's settings, windows and other classifiers (OPS, section 5.4), on round-trip times, one a second.

Its nearest neighbours are mpx.ops_classifier.NearestNeighbours. What the paper leaves open is the default of
scikit-learn.
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

from mpx.recognition.neighbours import Texts, samples_ms

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
        series = samples_ms(example.paper)
        count = len(series) // seconds
        rows.append(series[: count * seconds].reshape(count, seconds))
        runs.append(np.full(count, number))
    return np.concatenate(rows), np.concatenate(runs)


def fit_other(name: str, windows: Floats, mixes: Texts | NDArray[np.int64], seed: int) -> Any:
    """Return one of `OTHERS`, trained; the paper does not state how long its network was trained."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OTHERS[name](seed).fit(windows, mixes)
