"""Network, support vectors and naive Bayes on disk: a folder of data as data_folder.py reads it.

The format names the classifier. Arrays are 64-bit floats, bounded so that no score overflows.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from mpx.choices import MLP, NAIVE_BAYES, SVM
from mpx.recognition.data_folder import Arrays, Damaged, array, number
from mpx.recognition.estimator import ESTIMATORS, EstimatorPart, Scale
from mpx.recognition.features import FEWEST_STEPS, feature_names
from mpx.recognition.mix import MIXES
from mpx.recognition.novelty import Places
from mpx.recognition.observation import PASSIVE, TRAINS
from mpx.recognition.passive_file import read_passive, way_of
from mpx.recognition.passive_model import PassiveModel
from mpx.recognition.windows import STEP_S, Floats, steps_of

FORMATS: Mapping[str, str] = MappingProxyType({f"mpx-ops-{name}-1": name for name in (MLP, SVM, NAIVE_BAYES)})
PART_KEYS = {"way", "window_s", "temperature", "farthest", "features"}
FLOATS = "<f8"
MOST, LEAST = 1e12, 1e-12  # of any number, and of those that are divided by or have a logarithm
ABOVE_ZERO = ("deviation", "variances", "priors", "gamma")
SCALE = MappingProxyType({"mean": 1, "deviation": 1})
PLACES = MappingProxyType({"centre": 1, "spread": 1, "axes": 2, "means": 2})  # dimensions of their arrays
OF_PLACES = "places."  # as naive Bayes has means, too


def read_estimators(folder: Path, form: str) -> PassiveModel:
    """Read a model of one of FORMATS; raises UsageError, which says what is wrong, where it is no use."""
    name = FORMATS[form]

    def part(said: Any, prefix: str, arrays: Arrays) -> EstimatorPart:
        return _part(name, said, prefix, arrays)

    return read_passive(folder, form, name, part)


def inputs_of(way: str, window_s: float) -> tuple[list[str], int]:
    """Return the names of the features of a window, none for samples, and how many numbers a row has."""
    if way == TRAINS:
        return [], round(window_s)
    names = list(feature_names(steps_of(window_s), PASSIVE))
    return names, len(names)


def _part(name: str, said: Any, prefix: str, arrays: Arrays) -> EstimatorPart:
    """Return a part; its arrays are removed from `arrays`."""
    if not isinstance(said, dict) or set(said) != PART_KEYS:
        raise Damaged(f"a part has other keys than {', '.join(sorted(PART_KEYS))}")
    way, window_s = way_of(said)
    if way == PASSIVE and steps_of(window_s) < FEWEST_STEPS:
        raise Damaged(f"window_s is {window_s:g}; features need {FEWEST_STEPS * STEP_S:g} s at least")
    names, inputs = inputs_of(way, window_s)
    if said["features"] != names:
        raise Damaged("it was made for other features than this version computes")
    temperature, farthest = number(said, "temperature", 1e-3, 1e6), number(said, "farthest", 0.0, 1e9)
    kind = ESTIMATORS[name]
    try:
        scale = Scale(**_some(arrays, prefix, SCALE))
        estimator = kind(**_some(arrays, prefix, kind.DIMENSIONS))
        places = Places(**_some(arrays, prefix + OF_PLACES, PLACES))
    except ValueError as error:
        raise Damaged(str(error)) from None
    if not len(scale.mean) == estimator.inputs == len(places.centre) == inputs:
        raise Damaged(f"its arrays are for other windows than those of {window_s:g} s")
    if not estimator.classes == len(places.means) == len(MIXES):
        raise Damaged("its arrays are for another number of mixes")
    return EstimatorPart(way, window_s, scale, estimator, temperature, places, farthest)


def _some(arrays: Arrays, prefix: str, dimensions: Mapping[str, int]) -> dict[str, Floats]:
    found = {name: array(arrays, prefix + name, FLOATS, count) for name, count in dimensions.items()}
    for name, each in found.items():
        if not np.all(np.abs(each) <= MOST):  # NaN is not, either
            raise Damaged(f"the array {prefix}{name} has a number that is not finite, or above {MOST:g}")
        if name in ABOVE_ZERO and not np.all(each >= LEAST):
            raise Damaged(f"the array {prefix}{name} has a number below {LEAST:g}")
    return found
