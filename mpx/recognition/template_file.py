"""Nearest neighbours on disk: a folder of data as data_folder.py reads it."""

from pathlib import Path
from typing import Any

import numpy as np

from mpx.errors import UsageError
from mpx.recognition.data_folder import Arrays, Damaged, array, number, read_folder
from mpx.recognition.mix import MIXES
from mpx.recognition.observation import TRAINS
from mpx.recognition.templates import STEPS_EACH, WAYS, TemplateModel, Templates
from mpx.recognition.windows import STEP_S, steps_of

FORMAT = "mpx-ops-templates-1"
PART_KEYS = {"way", "window_s", "k", "doubt", "farthest"}
LONGEST_WINDOW_S = 120.0
MOST_TEMPLATES = 100_000


def read_templates(folder: Path) -> TemplateModel:
    """Read a model; raises UsageError, which says what is wrong, where it cannot be used."""
    try:
        said, arrays = read_folder(folder, FORMAT)
        if said["mixes"] != list(MIXES) or said["step_s"] != STEP_S:
            raise Damaged("it was made for other mixes, or for another rate of probes")
        parts = [_part(part, f"{place}.", arrays) for place, part in enumerate(said["parts"])]
        if arrays:
            raise Damaged(f"the array {min(arrays)} belongs to no part")
    except Damaged as error:
        raise UsageError(
            f"{folder} holds no nearest neighbours that this mpx can use: {error}; make them with: "
            f"mpx train --classifier knn-dtw DATASET -o {folder}"
        ) from None
    return TemplateModel({part.way: part for part in parts}, said["card"])


def samples_of(way: str, window_s: float) -> int:
    """Return how many samples a window has."""
    return round(window_s) if way == TRAINS else steps_of(window_s) // STEPS_EACH


def _part(said: Any, prefix: str, arrays: Arrays) -> Templates:
    """Return a part; its arrays are removed from `arrays`."""
    if not isinstance(said, dict) or set(said) != PART_KEYS:
        raise Damaged(f"a part has other keys than {', '.join(sorted(PART_KEYS))}")
    way = said["way"]
    if way not in WAYS:
        raise Damaged(f"a part is for {way!r}, not one of {', '.join(WAYS)}")
    window_s = number(said, "window_s", 2.0, LONGEST_WINDOW_S)
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
