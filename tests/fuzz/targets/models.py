"""A model of background traffic from somebody else: `model.json`, with right sums, and its arrays."""

import json

from fuzz.model_folder import FOLDER, SPLIT, npy, said, write

from mpx.errors import UsageError
from mpx.recognition.data_folder import ARRAYS_NAME, JSON_NAME
from mpx.recognition.features import feature_names
from mpx.recognition.mix import MIXES
from mpx.recognition.model_file import FORMAT, PLACES, RANKS, read_model
from mpx.recognition.observation import PASSIVE
from mpx.recognition.trees import LEAF
from mpx.recognition.trees_file import FILED
from mpx.recognition.windows import steps_of

WINDOW_S = 5.0
FEATURES = feature_names(steps_of(WINDOW_S), PASSIVE)


_VALUES: dict[str, object] = {
    **{"roots": [0], "feature": [0, LEAF, LEAF], "threshold": [0.5], "right": [2], "leaf": [0, 0]},
    "counts": [[1] * (len(MIXES) + 1)],
    **{"centre": [0.0] * len(FEATURES), "spread": [1.0] * len(FEATURES), "axes": [[1.0]] * len(FEATURES)},
    **{
        "means": [[0.0]] * len(MIXES),
        "distances": [[0, 1]] * 2,
        "outsides": [[0, 1]] * 2,
        "together": [[0, 1]] * 2,
    },
}
ARRAYS = {f"0.{name}.npy": npy(_VALUES[name], kind) for name, kind in (FILED | PLACES | RANKS).items()}
PART = {"kind": PASSIVE, "window_s": WINDOW_S, "temperature": 1.0, "features": list(FEATURES)}
PARTS = json.dumps([PART]).encode()
SEEDS = [
    json.dumps({**said(FORMAT), "parts": [PART], "arrays": "", "sum": ""}).encode(),
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
        (FOLDER / JSON_NAME).write_bytes(data)
        (FOLDER / ARRAYS_NAME).write_bytes(data)
        read_model(FOLDER)
    elif write(FORMAT, parts, ARRAYS, changed):
        read_model(FOLDER)


parse(SEEDS[1])  # a model as it should be is read: what follows are changes of that
