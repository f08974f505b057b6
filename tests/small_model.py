"""Small models that can be had without a dataset: grown from simulated series, or made by hand."""

from functools import cache
from pathlib import Path

import mpx_train.learn
import numpy as np
from mpx_train.cut import gridded
from mpx_train.estimators import write_estimators
from mpx_train.learn import Kind, out_of_fold, part_from
from mpx_train.model_writer import check_model_writable, write_model
from ops_examples import simulated

from mpx.choices import NAIVE_BAYES
from mpx.recognition.estimator import EstimatorPart, Scale
from mpx.recognition.mix import MIXES
from mpx.recognition.naive_bayes import NaiveBayes
from mpx.recognition.novelty import Places
from mpx.recognition.observation import PASSIVE, TRAINS
from mpx.recognition.window_classifier import WindowClassifier

WINDOW_S = 5.0


@cache
def small_part() -> WindowClassifier:
    """Return a part that knows a little: five links, few trees."""
    kind = Kind(PASSIVE, WINDOW_S)
    grids = gridded(simulated(5, 10.0))
    settings = mpx_train.learn.Settings(trees=12, copies=2, folds=3)
    judged = out_of_fold(grids, [], kind, 1, settings)
    return part_from(grids, [], kind, judged, 1, settings)


def write_small_model(folder: Path) -> Path:
    """Write a model of that part, and return where."""
    check_model_writable(folder)
    write_model(folder, {PASSIVE: [small_part()]}, {"what": "a test"})
    return folder


def by_level(*, seconds: int = 5, farthest: float = 40.0) -> EstimatorPart:
    """Return naive Bayes of the paper's probes: 10 ms is none, 20 ms C, and so on to 60 ms, all +-2 ms."""
    levels = np.repeat(10.0 * np.arange(1, len(MIXES) + 1)[:, None], seconds, axis=1)
    bayes = NaiveBayes(levels, np.full(levels.shape, 4.0), np.full(len(MIXES), 1 / len(MIXES)))
    plain = np.zeros(seconds), np.ones(seconds)
    places = Places(*plain, np.eye(seconds), np.minimum(levels, 8.0))
    return EstimatorPart(TRAINS, float(seconds), Scale(*plain), bayes, 2.0, places, farthest)


def write_small_estimator(folder: Path) -> Path:
    """Write a model of that part, and return where."""
    check_model_writable(folder)
    write_estimators(folder, NAIVE_BAYES, [by_level()], {"what": "a test"})
    return folder
