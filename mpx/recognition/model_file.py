"""A model on disk: a folder with `model.json` and `arrays.npz`.

Nothing in it is executed: arrays are read without pickles, and the type, size and values of each are checked.
`model.json` holds the card (what the model was made of, and its accuracy), the parts, and the SHA-256 sum of
all, which is checked first, so that a damaged model is recognised. A model that was made for other features
than this version computes is refused.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpx.errors import UsageError
from mpx.recognition.features import FEWEST_STEPS, feature_names
from mpx.recognition.mix import MIXES
from mpx.recognition.model import Model
from mpx.recognition.novelty import Places, Ranks
from mpx.recognition.observation import KINDS, period_s
from mpx.recognition.trees import Trees
from mpx.recognition.window_classifier import WindowClassifier
from mpx.recognition.windows import STEP_S, steps_of

FORMAT = "mpx-ops-model-1"
JSON_NAME, ARRAYS_NAME = "model.json", "arrays.npz"
LARGEST_JSON, LARGEST_ARRAYS, LARGEST_UNPACKED = 2**20, 2**26, 2**28  # bytes
LONGEST_WINDOW_S = 120.0
TREES = {"roots": "<i4", "feature": "<i2", "threshold": "<f4", "right": "<i4", "counts": "<u2"}
PLACES = dict.fromkeys(("centre", "spread", "axes", "means"), "<f8")
RANKS = dict.fromkeys(("distances", "outsides", "together"), "<f8")
TABLES = ("counts", "axes", "means")  # the others are plain rows
KEYS = {"format", "card", "mixes", "step_s", "parts", "arrays", "sum"}
PART_KEYS = {"kind", "window_s", "temperature", "features"}


class _Damaged(Exception):
    """A file of a model is not valid; the text says why."""


def read_model(folder: Path) -> Model:
    """Read a model; raises UsageError, which says what is wrong, where it cannot be used."""
    try:
        said = _json(_bytes(folder / JSON_NAME, LARGEST_JSON))
        packed = _bytes(folder / ARRAYS_NAME, LARGEST_ARRAYS)
        if said["arrays"] != hashlib.sha256(packed).hexdigest():
            raise _Damaged(f"{ARRAYS_NAME} does not belong to {JSON_NAME}")
        arrays = _arrays(packed)
        parts: dict[str, list[WindowClassifier]] = {}
        for number, part in enumerate(said["parts"]):
            made = _part(part, f"{number}.", arrays)
            parts.setdefault(made.kind, []).append(made)
        if arrays:
            raise _Damaged(f"the array {min(arrays)} belongs to no part")
    except _Damaged as error:
        raise UsageError(
            f"{folder} is not a model that this version of mpx can use: {error}; make one with: "
            f"mpx train DATASET -o {folder}"
        ) from None
    return Model(
        {kind: sorted(found, key=lambda part: part.window_s) for kind, found in parts.items()}, said["card"]
    )


def sum_of(said: Mapping[str, Any]) -> str:
    """Return the SHA-256 sum of the content of `model.json`, but for the sum itself."""
    content = {key: value for key, value in said.items() if key != "sum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _bytes(file: Path, largest: int) -> bytes:
    try:
        with file.open("rb") as opened:
            size_bytes = os.fstat(opened.fileno()).st_size
            found = opened.read(min(size_bytes, largest) + 1)
    except OSError as error:
        raise _Damaged(f"{file.name} cannot be read ({error.strerror})") from None
    if len(found) > largest:
        raise _Damaged(f"{file.name} is too large (limit {largest // 2**20} MiB)")
    return found


def _json(text: bytes) -> dict[str, Any]:
    """Read model.json, and check its values."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise _Damaged(f"{JSON_NAME} is not JSON") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise _Damaged(f"{JSON_NAME} is not of the format {FORMAT}")
    if set(said) != KEYS:
        raise _Damaged(f"{JSON_NAME} has the keys {', '.join(sorted(said))}, not {', '.join(sorted(KEYS))}")
    try:
        right = said["sum"] == sum_of(said)
    except (ValueError, RecursionError):
        right = False
    if not right:
        raise _Damaged(f"{JSON_NAME} was changed since it was written")
    if said["mixes"] != list(MIXES) or said["step_s"] != STEP_S:
        raise _Damaged("it was made for other mixes, or for another rate of probes")
    if not isinstance(said["card"], dict) or not isinstance(said["arrays"], str):
        raise _Damaged("its card or the sum of its arrays is missing")
    if not isinstance(said["parts"], list) or not said["parts"]:
        raise _Damaged("it has no parts")
    return said


def _arrays(packed: bytes) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as listing:
            unpacked = sum(member.file_size for member in listing.infolist())
        if unpacked > LARGEST_UNPACKED:
            raise ValueError(f"{unpacked} bytes unpacked, more than any model has")
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
        if not all(isinstance(each, np.ndarray) for each in found.values()):  # numpy may return other objects
            raise ValueError("a file in it is not an array")
        return found
    except Exception as error:  # numpy and zipfile raise many kinds for a damaged archive
        raise _Damaged(f"{ARRAYS_NAME} holds no arrays ({error})") from None


def _part(said: object, prefix: str, arrays: dict[str, NDArray[Any]]) -> WindowClassifier:
    """Return a part; its arrays are removed from `arrays`."""
    if not isinstance(said, dict) or set(said) != PART_KEYS:
        raise _Damaged(f"a part has other keys than {', '.join(sorted(PART_KEYS))}")
    kind = said["kind"]
    if kind not in KINDS:
        raise _Damaged(f"a part is for {kind!r}, not one of {', '.join(KINDS)}")
    window_s = _number(said, "window_s", max(FEWEST_STEPS * STEP_S, period_s(kind)), LONGEST_WINDOW_S)
    temperature = _number(said, "temperature", 0.01, 100.0)
    names = list(feature_names(steps_of(window_s), kind))
    if said["features"] != names:
        raise _Damaged("it was made for other features than this version computes")
    try:
        trees = Trees(**_some(arrays, prefix, TREES))
        places, ranks = Places(**_some(arrays, prefix, PLACES)), Ranks(**_some(arrays, prefix, RANKS))
    except ValueError as error:
        raise _Damaged(str(error)) from None
    if trees.features > len(names) or len(places.centre) != len(names):
        raise _Damaged("its arrays refer to more features than there are")
    if trees.counts.shape[1] != len(MIXES) + 1 or len(places.means) != len(MIXES):
        raise _Damaged("its arrays are for another number of mixes")
    return WindowClassifier(kind, window_s, trees, temperature, places, ranks)


def _number(said: Mapping[str, Any], key: str, least: float, most: float) -> float:
    value = said[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise _Damaged(f"{key} is {value!r}, not a number from {least:g} to {most:g}")
    return float(value)


def _some(arrays: dict[str, NDArray[Any]], prefix: str, kinds: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    return {name: _array(arrays, prefix + name, kind) for name, kind in kinds.items()}


def _array(arrays: dict[str, NDArray[Any]], name: str, kind: str) -> NDArray[Any]:
    if name not in arrays:
        raise _Damaged(f"the array {name} is missing")
    found = arrays.pop(name)
    dimensions = 2 if name.split(".")[1] in TABLES else 1
    if found.dtype.str != kind or found.ndim != dimensions or not found.size:
        raise _Damaged(f"the array {name} is {found.dtype.str} with {found.shape}, not {kind} rows")
    return found
