"""Turns fitted estimators of scikit-learn into the arrays that mpx reads (mpx/recognition/estimator.py).

Their classes are the numbers of MIXES. What they say is compared before anything is returned, so that another
version of scikit-learn cannot change the meaning of its arrays unnoticed.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from mpx.choices import MLP, NAIVE_BAYES, SVM
from mpx.recognition.naive_bayes import NaiveBayes
from mpx.recognition.network import Network
from mpx.recognition.support_vectors import SupportVectors
from mpx.recognition.windows import Floats

COMPARED = 30  # rows
NEARLY = 1e-6
FARTHEST_BELOW = -30.0  # the best score: logarithms of probabilities that are 0 to 13 digits

OurEstimator = Network | SupportVectors | NaiveBayes


def converted(name: str, fitted: Any, rows: Floats) -> OurEstimator:
    """Return an estimator of ours that says what this one does; `rows` are those that it was fitted to.

    Raises RuntimeError where it says something else.
    """
    ours = CONVERTERS[name](fitted, rows)
    some = rows[:: max(1, len(rows) // COMPARED)]
    found = np.array([ours.scores(row) for row in some])
    if not np.allclose(_below_best(found), _below_best(scores_of(name, fitted, some)), atol=NEARLY):
        raise RuntimeError(f"scikit-learn's {name} differs: this is a fault of mpx; please report it")
    return ours


def scores_of(name: str, fitted: Any, rows: Floats) -> Floats:
    """Return what scikit-learn's estimator says of each class, up to a number that is the same for all."""
    with np.errstate(divide="ignore"):
        return np.asarray(getattr(fitted, SCORES[name])(rows))


def _below_best(scores: Floats) -> Floats:
    return np.asarray(np.maximum(scores - scores.max(axis=1, keepdims=True), FARTHEST_BELOW))


def _network(fitted: Any, _: Floats) -> Network:
    first, second, last = fitted.coefs_
    first_bias, second_bias, last_bias = fitted.intercepts_
    return Network(first, first_bias, second, second_bias, last, last_bias)


def _support_vectors(fitted: Any, rows: Floats) -> SupportVectors:
    """Spread its coefficients over all lines: of two classes, those of one are in the row of the other.

    Of vectors of a class the rows are the other classes, in their order.
    """
    vectors, ends = fitted.support_vectors_, np.cumsum(fitted.n_support_)
    begins = ends - fitted.n_support_
    pairs = list(combinations(range(len(ends)), 2))
    weights = np.zeros((len(pairs), len(vectors)))
    for line, (one, other) in enumerate(pairs):
        of_one, of_other = slice(begins[one], ends[one]), slice(begins[other], ends[other])
        weights[line, of_one] = fitted.dual_coef_[other - 1, of_one]
        weights[line, of_other] = fitted.dual_coef_[one, of_other]
    gamma = 1 / (rows.shape[1] * rows.var())  # scikit-learn's default, "scale"
    return SupportVectors(vectors, weights, fitted.intercept_, np.array([gamma]))


def _naive_bayes(fitted: Any, _: Floats) -> NaiveBayes:
    return NaiveBayes(fitted.theta_, fitted.var_, fitted.class_prior_)


CONVERTERS: Mapping[str, Callable[[Any, Floats], OurEstimator]] = {
    MLP: _network,
    SVM: _support_vectors,
    NAIVE_BAYES: _naive_bayes,
}
SCORES: Mapping[str, str] = {
    MLP: "predict_log_proba",
    SVM: "decision_function",
    NAIVE_BAYES: "predict_joint_log_proba",
}
