"""A folder of data: JSON with a sum over all, and plain arrays. Nothing in it is executed.

Both are bounded, and checked before anything in them is used: arrays are read without pickles.
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

JSON_NAME, ARRAYS_NAME = "model.json", "arrays.npz"
LARGEST_JSON, LARGEST_ARRAYS, LARGEST_UNPACKED = 2**20, 2**26, 2**28  # bytes
KEYS = {"format", "card", "mixes", "step_s", "parts", "arrays", "sum"}
Arrays = dict[str, NDArray[Any]]


class Damaged(Exception):
    """A file of a folder is not valid; the text says why."""


def format_of(folder: Path) -> object:
    """Return what a folder says that it holds; raises Damaged where it says nothing."""
    return _said(_bytes(folder / JSON_NAME, LARGEST_JSON)).get("format")


def read_folder(folder: Path, form: str) -> tuple[dict[str, Any], Arrays]:
    """Return what `model.json` says, and the arrays that belong to it; raises Damaged."""
    said = _said(_bytes(folder / JSON_NAME, LARGEST_JSON))
    if said.get("format") != form:
        raise Damaged(f"{JSON_NAME} is not of the format {form}")
    if set(said) != KEYS:
        raise Damaged(f"{JSON_NAME} has the keys {', '.join(sorted(said))}, not {', '.join(sorted(KEYS))}")
    try:
        right = said["sum"] == sum_of(said)
    except (ValueError, RecursionError):
        right = False
    if not right:
        raise Damaged(f"{JSON_NAME} was changed since it was written")
    if not isinstance(said["card"], dict) or not isinstance(said["arrays"], str):
        raise Damaged("its card or the sum of its arrays is missing")
    if not isinstance(said["parts"], list) or not said["parts"]:
        raise Damaged("it has no parts")
    packed = _bytes(folder / ARRAYS_NAME, LARGEST_ARRAYS)
    if said["arrays"] != hashlib.sha256(packed).hexdigest():
        raise Damaged(f"{ARRAYS_NAME} does not belong to {JSON_NAME}")
    return said, _arrays(packed)


def packed_folder(said: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> tuple[bytes, bytes]:
    """Return the bytes of both files, the JSON first; the same content is the same bytes."""
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    whole = {**said, "arrays": hashlib.sha256(packed.getvalue()).hexdigest()}
    return (json.dumps({**whole, "sum": sum_of(whole)}, indent=1) + "\n").encode(), packed.getvalue()


def sum_of(said: Mapping[str, Any]) -> str:
    """Return the SHA-256 sum of the content of `model.json`, but for the sum itself."""
    content = {key: value for key, value in said.items() if key != "sum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def number(said: Mapping[str, Any], key: str, least: float, most: float) -> float:
    """Return a number of a part; raises Damaged where it is none, or out of these bounds."""
    value = said[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise Damaged(f"{key} is {value!r}, not a number from {least:g} to {most:g}")
    return float(value)


def array(arrays: Arrays, name: str, kind: str, dimensions: int) -> NDArray[Any]:
    """Take an array of this type out of `arrays`; raises Damaged where there is none."""
    if name not in arrays:
        raise Damaged(f"the array {name} is missing")
    found = arrays.pop(name)
    if found.dtype.str != kind or found.ndim != dimensions or not found.size:
        raise Damaged(f"the array {name} is {found.dtype.str} with {found.shape}, not {kind} rows")
    return found


def _bytes(file: Path, largest: int) -> bytes:
    try:
        with file.open("rb") as opened:
            size_bytes = os.fstat(opened.fileno()).st_size
            found = opened.read(min(size_bytes, largest) + 1)
    except OSError as error:
        raise Damaged(f"{file.name} cannot be read ({error.strerror})") from None
    if len(found) > largest:
        raise Damaged(f"{file.name} is too large (limit {largest // 2**20} MiB)")
    return found


def _said(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged(f"{JSON_NAME} is not JSON") from None
    if not isinstance(said, dict):
        raise Damaged(f"{JSON_NAME} holds no object")
    return said


def _arrays(packed: bytes) -> Arrays:
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
        raise Damaged(f"{ARRAYS_NAME} holds no arrays ({error})") from None
