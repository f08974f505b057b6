"""A small model that can be had without a dataset: grown from simulated series."""

from functools import cache
from pathlib import Path

import mpx_train.learn
from mpx_train.cut import gridded
from mpx_train.learn import Kind, out_of_fold, part_from
from mpx_train.model_writer import check_model_writable, write_model
from ops_examples import simulated

from mpx.recognition.observation import PASSIVE
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
