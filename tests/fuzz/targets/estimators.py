"""Network, support vectors and naive Bayes from somebody else: right sums over parts, and one of the arrays.

What is read answers with probabilities, whatever its numbers are. The first byte says which of the three.
"""

import json
import math

from fuzz.model_folder import FOLDER, SPLIT, npy, write

from mpx.errors import UsageError
from mpx.ops_classifier import load
from mpx.recognition.estimator import ESTIMATORS
from mpx.recognition.estimator_file import FLOATS, FORMATS, OF_PLACES
from mpx.recognition.mix import GROUPS, MIXES
from mpx.recognition.observation import TRAINS
from mpx.rtt.series import Probe

SECONDS, CLASSES = 3, len(MIXES)
FORMS = {number: form for number, (form, name) in enumerate(FORMATS.items()) if name in ESTIMATORS}
PAIRS = CLASSES * (CLASSES - 1) // 2
COMMON: dict[str, object] = {
    "mean": [0.0] * SECONDS,
    "deviation": [1.0] * SECONDS,
    OF_PLACES + "centre": [0.0] * SECONDS,
    OF_PLACES + "spread": [1.0] * SECONDS,
    OF_PLACES + "axes": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
    OF_PLACES + "means": [[0.0, float(number)] for number in range(CLASSES)],
}
OWN: list[dict[str, object]] = [
    {
        "first": [[1.0, 0.5]] * SECONDS,
        "first_bias": [0.0, 1.0],
        "second": [[1.0], [0.5]],
        "second_bias": [0.0],
        "last": [[float(number) for number in range(CLASSES)]],
        "last_bias": [0.0] * CLASSES,
    },
    {
        "vectors": [[1.0] * SECONDS, [2.0] * SECONDS],
        "weights": [[1.0, -1.0]] * PAIRS,
        "intercepts": [0.0] * PAIRS,
        "gamma": [0.1],
    },
    {
        "means": [[float(number)] * SECONDS for number in range(CLASSES)],
        "variances": [[1.0] * SECONDS] * CLASSES,
        "priors": [1 / CLASSES] * CLASSES,
    },
]
ARRAYS = [{f"0.{name}.npy": npy(values, FLOATS) for name, values in (COMMON | own).items()} for own in OWN]
PART = {"way": TRAINS, "window_s": float(SECONDS), "temperature": 1.0, "farthest": 9.0, "features": []}
PARTS = json.dumps([PART]).encode()
SEEDS = [
    *(bytes([number]) + PARTS + SPLIT for number in FORMS),
    b"\0" + json.dumps([{**PART, "temperature": 1e6}]).encode() + SPLIT,
    *(
        bytes([number]) + PARTS + SPLIT + bytes([place]) + data
        for number, arrays in enumerate(ARRAYS)
        for place, data in enumerate(arrays.values())
    ),
]
ALLOWED = (UsageError,)
WEIGHT = 10
SERIES = [Probe(second + tenth / 1000, 0.05) for second in range(2 * SECONDS) for tenth in range(10)]


def parse(data: bytes) -> None:
    """Read the bytes as the parts and one of the arrays of a model with right sums, and ask it."""
    number = data[0] % len(FORMS) if data else 0
    parts, _, changed = data[1:].partition(SPLIT)
    if write(FORMS[number], parts, ARRAYS[number], changed):
        mix = load(FOLDER).classify(SERIES, 0.05, kind=TRAINS)
        assert math.isclose(sum(mix.groups[group] for group in GROUPS), 1, abs_tol=1e-6), mix


for seed in SEEDS[: len(FORMS)]:
    parse(seed)  # models as they should be are read: what follows are changes of them
