"""A model of background traffic from somebody else: `model.json`, with right sums, and its arrays."""

import atexit
import hashlib
import io
import json
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from mpx.errors import UsageError
from mpx.recognition.data_folder import ARRAYS_NAME, JSON_NAME, sum_of
from mpx.recognition.features import feature_names
from mpx.recognition.mix import MIXES
from mpx.recognition.model_file import FORMAT, PLACES, RANKS, TREES, read_model
from mpx.recognition.observation import PASSIVE
from mpx.recognition.trees import LEAF
from mpx.recognition.windows import STEP_S, steps_of

WINDOW_S = 5.0
FEATURES = feature_names(steps_of(WINDOW_S), PASSIVE)
SPLIT = b"\n=====\n"  # between the parts in model.json, and the number of an array with its bytes
_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_model = Path(_folder.name)


def _npy(values: object, kind: str) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(values).astype(kind))
    return file.getvalue()


_VALUES: dict[str, object] = {
    **{"roots": [0], "feature": [LEAF], "threshold": [0.0], "right": [0], "counts": [[1] * (len(MIXES) + 1)]},
    **{"centre": [0.0] * len(FEATURES), "spread": [1.0] * len(FEATURES), "axes": [[1.0]] * len(FEATURES)},
    **{"means": [[0.0]] * len(MIXES), "distances": [0, 1], "outsides": [0, 1], "together": [0, 1]},
}
ARRAYS = {f"0.{name}.npy": _npy(_VALUES[name], kind) for name, kind in (TREES | PLACES | RANKS).items()}
SAID = {"format": FORMAT, "card": {}, "mixes": list(MIXES), "step_s": STEP_S}
PART = {"kind": PASSIVE, "window_s": WINDOW_S, "temperature": 1.0, "features": list(FEATURES)}
PARTS = json.dumps([PART]).encode()
SEEDS = [
    json.dumps({**SAID, "parts": [PART], "arrays": "", "sum": ""}).encode(),
    PARTS + SPLIT,
    json.dumps([{**PART, "features": []}]).encode() + SPLIT,
    *(PARTS + SPLIT + bytes([number]) + data for number, data in enumerate(ARRAYS.values())),
]
ALLOWED = (UsageError,)
WEIGHT = 10


def parse(data: bytes) -> None:
    """Read the bytes as model.json, and as the parts and one of the arrays of a model with right sums."""
    parts, split, changed = data.partition(SPLIT)
    if not split:
        (_model / JSON_NAME).write_bytes(data)
        (_model / ARRAYS_NAME).write_bytes(data)
        read_model(_model)
        return
    packed = _packed(changed[:1], changed[1:])
    said: dict[str, object] = {**SAID, "arrays": hashlib.sha256(packed).hexdigest(), "parts": None}
    with suppress(ValueError, RecursionError):
        said["parts"] = json.loads(parts)
    try:
        said["sum"] = sum_of(said)
        (_model / JSON_NAME).write_text(json.dumps(said))
    except (ValueError, RecursionError):
        return
    (_model / ARRAYS_NAME).write_bytes(packed)
    read_model(_model)


def _packed(number: bytes, data: bytes) -> bytes:
    """Return all arrays, one of them with other bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for at, (name, known) in enumerate(ARRAYS.items()):
            archive.writestr(name, data if number == bytes([at]) else known)
    return file.getvalue()


parse(SEEDS[1])  # a model as it should be is read: what follows are changes of that
