"""A folder of a model for targets: right sums over whatever parts and arrays somebody else has written."""

import atexit
import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from mpx.recognition.data_folder import ARRAYS_NAME, JSON_NAME, sum_of
from mpx.recognition.mix import MIXES
from mpx.recognition.windows import STEP_S

SPLIT = b"\n=====\n"  # between the parts in model.json, and the number of an array with its bytes
_folder = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
FOLDER = Path(_folder.name)


def npy(values: object, kind: str) -> bytes:
    """Return an array as numpy writes it."""
    file = io.BytesIO()
    np.save(file, np.array(values).astype(kind))
    return file.getvalue()


def said(form: str) -> dict[str, object]:
    """Return what model.json says beside its parts and sums."""
    return {"format": form, "card": {}, "mixes": list(MIXES), "step_s": STEP_S}


def write(form: str, parts: bytes, arrays: Mapping[str, bytes], changed: bytes) -> bool:
    """Write a folder with right sums, of these parts and arrays; `changed`: the number of one, and its bytes.

    Returns False where these parts cannot be written.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for at, (name, known) in enumerate(arrays.items()):
            archive.writestr(name, changed[1:] if changed[:1] == bytes([at]) else known)
    packed = file.getvalue()
    whole: dict[str, object] = {**said(form), "arrays": hashlib.sha256(packed).hexdigest(), "parts": None}
    with suppress(ValueError, RecursionError):
        whole["parts"] = json.loads(parts)
    try:
        whole["sum"] = sum_of(whole)
        text = json.dumps(whole)
    except (ValueError, RecursionError):
        return False
    (FOLDER / JSON_NAME).write_text(text)
    (FOLDER / ARRAYS_NAME).write_bytes(packed)
    return True
