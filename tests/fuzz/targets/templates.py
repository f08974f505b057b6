"""Nearest neighbours from somebody else: `model.json` with a right sum, and one of its arrays."""

import json

from fuzz.model_folder import FOLDER, SPLIT, npy, write

from mpx.errors import UsageError
from mpx.ops_classifier import load
from mpx.recognition.observation import TRAINS
from mpx.recognition.template_file import FORMAT

ARRAYS = {"0.known.npy": npy([[1.0] * 5, [2.0] * 5], "<f4"), "0.mixes.npy": npy([0, 1], "|u1")}
PART = {"way": TRAINS, "window_s": 5.0, "k": 1, "doubt": 0.1, "farthest": 1.0}
PARTS = json.dumps([PART]).encode()
SEEDS = [
    PARTS + SPLIT,
    json.dumps([{**PART, "k": 3}]).encode() + SPLIT,
    *(PARTS + SPLIT + bytes([number]) + data for number, data in enumerate(ARRAYS.values())),
]
ALLOWED = (UsageError,)
WEIGHT = 10


def parse(data: bytes) -> None:
    """Read the bytes as the parts and one of the arrays of a model with right sums."""
    parts, _, changed = data.partition(SPLIT)
    if write(FORMAT, parts, ARRAYS, changed):
        load(FOLDER)


parse(SEEDS[0])  # a model as it should be is read: what follows are changes of that
