"""Nearest neighbours on disk: a folder of data as data_folder.py reads it."""

from pathlib import Path
from typing import Any

import numpy as np

from mpx.choices import KNN_DTW
from mpx.recognition.data_folder import Arrays, Damaged, array, number
from mpx.recognition.mix import MIXES
from mpx.recognition.observation import TRAINS
from mpx.recognition.passive_file import read_passive, way_of
from mpx.recognition.passive_model import PassiveModel
from mpx.recognition.templates import STEPS_EACH, Templates
from mpx.recognition.windows import steps_of

FORMAT = "mpx-ops-templates-1"
PART_KEYS = {"way", "window_s", "k", "doubt", "farthest"}
MOST_TEMPLATES = 100_000


def read_templates(folder: Path) -> PassiveModel:
    """Read a model; raises UsageError, which says what is wrong, where it cannot be used."""
    return read_passive(folder, FORMAT, KNN_DTW, _part)


def samples_of(way: str, window_s: float) -> int:
    """Return how many samples a window has."""
    return round(window_s) if way == TRAINS else steps_of(window_s) // STEPS_EACH


def _part(said: Any, prefix: str, arrays: Arrays) -> Templates:
    """Return a part; its arrays are removed from `arrays`."""
    if not isinstance(said, dict) or set(said) != PART_KEYS:
        raise Damaged(f"a part has other keys than {', '.join(sorted(PART_KEYS))}")
    way, window_s = way_of(said)
    known, mixes = array(arrays, f"{prefix}known", "<f4", 2), array(arrays, f"{prefix}mixes", "|u1", 1)
    if known.shape != (len(mixes), samples_of(way, window_s)) or len(mixes) > MOST_TEMPLATES:
        raise Damaged(f"its windows are {known.shape}, for {len(mixes)} mixes and {window_s:g} s")
    if not np.isfinite(known).all() or mixes.max() >= len(MIXES):
        raise Damaged("a window of it is no series, or of no mix")
    k = number(said, "k", 1, len(mixes))
    if k != int(k):
        raise Damaged(f"k is {k:g}, not a whole number")
    doubt, farthest = number(said, "doubt", 0.0, 1e6), number(said, "farthest", 0.0, 1e9)
    return Templates(way, window_s, known, mixes.astype(np.int64), int(k), doubt, farthest)
