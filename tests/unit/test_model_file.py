"""Models on disk: what is damaged or foreign is refused in a clear sentence, and nothing is ever executed."""

import hashlib
import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import small_part, write_small_model

from mpx.errors import UsageError
from mpx.ops_classifier import load
from mpx.recognition.data_folder import ARRAYS_NAME, JSON_NAME, sum_of
from mpx.recognition.model_file import PLACES, RANKS
from mpx.recognition.trees_file import FILED

again = settings(max_examples=150)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_small_model(tmp_path / "model")


def refused(model: Path, because: str = "is not a model") -> None:
    """It is refused by an error that names the folder, the reason and what to do."""
    with pytest.raises(UsageError, match=because) as raised:
        load(model)
    assert str(model) in str(raised.value) and "mpx train DATASET" in str(raised.value)


def signed(model: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what model.json says, and make its sum right again: what only somebody with intent does."""
    said = json.loads((model / JSON_NAME).read_text())
    change(said)
    (model / JSON_NAME).write_text(json.dumps({**said, "sum": sum_of(said)}))


def repacked(model: Path, change: Callable[[dict[str, Any]], object], **how: Any) -> None:
    """Change the arrays, and make all sums right again."""
    with np.load(model / ARRAYS_NAME) as archive:
        arrays = dict(archive)
    change(arrays)
    packed = io.BytesIO()
    np.savez(packed, **how, **arrays)
    (model / ARRAYS_NAME).write_bytes(packed.getvalue())
    signed(model, lambda said: said.update(arrays=hashlib.sha256(packed.getvalue()).hexdigest()))


def test_what_was_written_is_read(model: Path) -> None:
    read, part = load(model), small_part()
    (found,) = read.parts["passive"]
    for field in fields(found.trees):
        assert np.array_equal(getattr(found.trees, field.name), getattr(part.trees, field.name))
    for name in PLACES:
        assert np.array_equal(getattr(found.places, name), getattr(part.places, name))
    for name in RANKS:
        for kind in ("none", "others"):
            of_found, of_part = (getattr(each.ranks, kind) for each in (found, part))
            assert np.array_equal(getattr(of_found, name), getattr(of_part, name))
    assert (found.window_s, found.temperature) == (part.window_s, part.temperature)
    assert read.card == {"what": "a test"}


def test_the_same_model_is_the_same_bytes(model: Path, tmp_path: Path) -> None:
    other = write_small_model(tmp_path / "other")
    for name in (JSON_NAME, ARRAYS_NAME):
        assert (model / name).read_bytes() == (other / name).read_bytes()


def test_there_is_none(tmp_path: Path) -> None:
    refused(tmp_path / "nothing", "cannot be read")


@pytest.mark.parametrize("name", [JSON_NAME, ARRAYS_NAME])
def test_half_of_it_is_missing(model: Path, name: str) -> None:
    (model / name).unlink()
    refused(model, f"{name} cannot be read")


@again
@given(st.data())
def test_any_byte_that_changed_is_found(model: Path, data: st.DataObject) -> None:
    file = model / data.draw(st.sampled_from([JSON_NAME, ARRAYS_NAME]))
    before = file.read_bytes()
    place = data.draw(st.integers(0, len(before) - 1))
    changed = bytearray(before)
    changed[place] ^= data.draw(st.integers(1, 255))
    try:
        for damaged in (bytes(changed), before[:place]):
            file.write_bytes(damaged)
            if json_is_the_same(before, damaged):
                load(model)  # only white space differs
            else:
                refused(model)
    finally:
        file.write_bytes(before)


def json_is_the_same(before: bytes, changed: bytes) -> bool:
    try:
        return bool(json.loads(before) == json.loads(changed))
    except ValueError:
        return False


def places(said: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside of what JSON says, but for the long list of features, of which the first will do."""
    inner = said.items() if isinstance(said, dict) else enumerate(said[:6]) if isinstance(said, list) else ()
    return [at, *(place for key, value in inner for place in places(value, (*at, key)))]


@again
@given(st.data())
def test_any_field_that_is_something_else_is_refused(model: Path, data: st.DataObject) -> None:
    """Also with its sum made right. Only the card may say what it likes, and a number may be another."""
    before = (model / JSON_NAME).read_text()
    said = json.loads(before)
    place = data.draw(st.sampled_from([place for place in places(said) if place and place != ("sum",)]))
    holder = said
    for key in place[:-1]:
        holder = holder[key]
    old, new = holder[place[-1]], data.draw(anything)
    try:
        holder[place[-1]] = new
        try:
            text = json.dumps({**said, "sum": sum_of(said)})
        except ValueError:  # not a number
            text = json.dumps(said)
        (model / JSON_NAME).write_text(text)
        is_number = isinstance(new, int | float) and not isinstance(new, bool)
        if old == new and type(old) is type(new):
            load(model)
        elif (place[0] == "card" and (len(place) > 1 or isinstance(new, dict))) or (
            place[-1] in ("temperature", "window_s") and is_number
        ):
            try:
                load(model)
            except UsageError:
                refused(model)
        else:
            refused(model)
    finally:
        (model / JSON_NAME).write_text(before)


@pytest.mark.parametrize("key", ["format", "card", "mixes", "step_s", "parts", "arrays", "sum"])
def test_every_field_has_to_be_there(model: Path, key: str) -> None:
    said = json.loads((model / JSON_NAME).read_text())
    del said[key]
    (model / JSON_NAME).write_text(json.dumps({**said, "sum": sum_of(said)} if key != "sum" else said))
    refused(model)


@pytest.mark.parametrize("name", [*FILED, *PLACES, *RANKS])
@pytest.mark.parametrize(
    "change",
    [
        lambda array: array[:-1],
        lambda array: array[:0],
        lambda array: array.astype("<f2" if array.dtype != "<f2" else "<f8"),
        lambda array: array.astype(array.dtype.newbyteorder(">")),
        lambda array: array[None],
        lambda array: np.full_like(array, -1 if array.dtype.kind != "u" else 0),
        lambda array: np.full_like(array, np.nan if array.dtype.kind == "f" else 2**15 - 1),
        lambda _: np.array("text"),
    ],
    ids=["cut", "empty", "other kind", "other order", "deeper", "negative", "nonsense", "text"],
)
def test_every_array_has_to_be_what_it_should(
    model: Path, name: str, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Where it happens to be another model's, what that says are still probabilities."""
    repacked(model, lambda arrays: arrays.update({f"0.{name}": change(arrays[f"0.{name}"])}))
    try:
        read = load(model)
    except UsageError:
        refused(model)
        return
    (part,) = read.parts["passive"]
    row = np.zeros(len(part.places.centre))
    assert part.trees.shares(row).sum() == pytest.approx(1)
    assert 0 <= part.ranks.of("none").novelty(part.places.distances(row[None])[0], 0.0) <= 1


@pytest.mark.parametrize("name", [*FILED, *PLACES, *RANKS])
def test_every_array_has_to_be_there(model: Path, name: str) -> None:
    repacked(model, lambda arrays: arrays.pop(f"0.{name}"))
    refused(model, f"the array 0.{name} is missing")


def test_no_array_may_be_there_that_nobody_reads(model: Path) -> None:
    repacked(model, lambda arrays: arrays.update(more=np.zeros(3)))
    refused(model, "belongs to no part")


class Trap:
    """What a pickle does when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.file),)


def test_a_pickle_is_not_executed(model: Path, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    objects = np.empty(3, dtype=object)
    objects[0] = Trap(trap)
    repacked(model, lambda arrays: arrays.update({"0.roots": objects}), allow_pickle=True)
    refused(model, "holds no arrays")
    whole = pickle.dumps(Trap(trap))
    (model / ARRAYS_NAME).write_bytes(whole)
    signed(model, lambda said: said.update(arrays=hashlib.sha256(whole).hexdigest()))
    refused(model, "holds no arrays")
    assert not trap.exists()


def test_a_bomb_is_not_unpacked(model: Path) -> None:
    with (
        zipfile.ZipFile(model / ARRAYS_NAME, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bomb,
        bomb.open("0.roots.npy", "w") as member,
    ):
        for _ in range(300):
            member.write(bytes(2**20))
    packed = (model / ARRAYS_NAME).read_bytes()
    signed(model, lambda said: said.update(arrays=hashlib.sha256(packed).hexdigest()))
    refused(model, "more than any model has")


def test_a_json_that_is_too_deep_or_too_long(model: Path) -> None:
    (model / JSON_NAME).write_text("[" * 200_000)
    refused(model, "is not JSON")
    (model / JSON_NAME).write_text(" " * (2**20 + 1))
    refused(model, r"too large \(limit 1 MiB\)")


def test_arrays_of_another_model(model: Path, tmp_path: Path) -> None:
    other = write_small_model(tmp_path / "other")
    repacked(other, lambda arrays: arrays["0.threshold"].__iadd__(1))
    shutil.copy(other / ARRAYS_NAME, model / ARRAYS_NAME)
    refused(model, "does not belong to")


def test_a_model_for_other_features(model: Path) -> None:
    signed(model, lambda said: said["parts"][0]["features"].reverse())
    refused(model, "other features")
