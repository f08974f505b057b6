"""Writes a model as mpx/recognition/model_file.py reads it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpx.errors import UsageError
from mpx.files.atomic_file import check_writable, whole
from mpx.recognition.data_folder import ARRAYS_NAME, JSON_NAME, packed_folder
from mpx.recognition.features import feature_names
from mpx.recognition.mix import MIXES
from mpx.recognition.model_file import FORMAT, PLACES, RANKS, read_model
from mpx.recognition.trees_file import filed
from mpx.recognition.window_classifier import WindowClassifier
from mpx.recognition.windows import STEP_S, steps_of


def check_model_writable(folder: Path) -> None:
    """Raise UsageError if a model cannot be written there; its folder is made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write a model to {folder}: {error.strerror}") from None
    for name in (ARRAYS_NAME, JSON_NAME):
        check_writable(str(folder / name))


def write_model(
    folder: Path, parts: Mapping[str, Sequence[WindowClassifier]], card: Mapping[str, Any]
) -> None:
    """Write parts by their kind, and the card; the same model is the same bytes. An older one is replaced.

    `check_model_writable` has made the folder.
    """
    described: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for kind, found in parts.items():
        for part in found:
            prefix = f"{len(described)}."
            names = feature_names(steps_of(part.window_s), part.kind)
            described.append(
                {
                    "kind": kind,
                    "window_s": part.window_s,
                    "temperature": part.temperature,
                    "features": list(names),
                }
            )
            arrays |= {prefix + name: array for name, array in filed(part.trees).items()}
            arrays |= {
                prefix + name: getattr(part.places, name).astype(code) for name, code in PLACES.items()
            }
            both = part.ranks.none, part.ranks.others
            for name, code in RANKS.items():
                arrays[prefix + name] = np.stack([getattr(of, name) for of in both]).astype(code)
    said = {
        "format": FORMAT,
        "card": dict(card),
        "mixes": list(MIXES),
        "step_s": STEP_S,
        "parts": described,
    }
    write_folder(folder, said, arrays)
    read_model(folder)  # what was just written can be read


def write_folder(folder: Path, said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write both files of a folder of data, or none."""
    text, packed = packed_folder(said, arrays)
    with whole(str(folder / ARRAYS_NAME)) as arrays_file, whole(str(folder / JSON_NAME)) as json_file:
        arrays_file.write(packed)
        json_file.write(text)
