"""Nearest neighbours as a model: how they are found, trained, kept on disk, and what they say."""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from mpx_train.train_command import train_command
from ops_examples import simulated
from test_train import SECONDS, written

from mpx import ops_classifier
from mpx.choices import KNN_DTW
from mpx.errors import UsageError
from mpx.recognition.data_folder import ARRAYS_NAME, JSON_NAME, sum_of
from mpx.recognition.dtw import distances, nearest
from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.recognition.observation import PASSIVE, TRAINS, Own
from mpx.recognition.passive_model import PassiveModel
from mpx.recognition.template_file import read_templates
from mpx.recognition.templates import Templates, shapes
from mpx.rtt.series import Probe

tables = st.integers(2, 12).flatmap(
    lambda n: st.lists(st.lists(st.floats(-9, 9), min_size=n, max_size=n), min_size=2, max_size=70)
)


@given(tables, st.integers(1, 12), st.integers(1, 5))
def test_the_nearest_are_those_of_all_distances(table: list[list[float]], radius: int, k: int) -> None:
    asked, known = np.array(table[0]), np.array(table[1:])
    k = min(k, len(known))
    found, far = nearest(asked, known, radius, k)
    every = distances(asked[None], known, radius)[0]
    assert far == pytest.approx(np.sort(every)[:k], abs=1e-9)
    assert every[found] == pytest.approx(far, abs=1e-9)


def test_of_many_long_series_few_are_compared_to_their_end() -> None:
    """The same among a thousand, whose bounds and abandoned tables leave most of them out."""
    dice = np.random.default_rng(1)
    known = np.cumsum(dice.normal(size=(1000, 50)), axis=1)
    for asked in np.cumsum(dice.normal(size=(5, 50)), axis=1):
        found, far = nearest(asked, known, 10, 10)
        every = distances(asked[None], known, 10)[0]
        assert found.tolist() == np.argsort(every, kind="stable")[:10].tolist()
        assert far == pytest.approx(every[found])


@given(st.floats(0.02, 1.0), st.floats(1.0, 10.0), st.floats(0.01, 3.0))
def test_the_shape_of_a_queue_is_alike_on_other_links(base_s: float, scale: float, queue: float) -> None:
    """The same part of the path in round trips, whatever they are."""
    relative = queue * (1 + np.sin(np.arange(100) / 7)) / 2
    one = shapes((base_s * (1 + relative))[None], np.array([base_s]))
    other = shapes((scale * base_s * (1 + relative))[None], np.array([scale * base_s]))
    assert one == pytest.approx(other, abs=1e-6) and one.shape == (1, 50)
    assert one.min() >= -1e-9 and one.max() <= 1


def of(known: list[list[float]], mixes: list[str], k: int = 1, *, farthest: float = 5.0) -> PassiveModel:
    numbers = np.array([MIXES.index(mix) for mix in mixes])
    return PassiveModel(
        KNN_DTW, {TRAINS: Templates(TRAINS, 5.0, np.array(known, np.float32), numbers, k, 0.25, farthest)}, {}
    )


def trains(samples_ms: list[float | None]) -> list[Probe]:
    """Ten probes in the first hundredth of each second."""
    return [
        Probe(second + tenth / 1000, None if ms is None else ms / 1e3)
        for second, ms in enumerate(samples_ms)
        for tenth in range(10)
    ]


def test_votes_in_advance_make_shares_probabilities() -> None:
    model = of([[10.0] * 5, [11.0] * 5, [12.0] * 5, [50.0] * 5], ["C", "C", "B", "BB"], 3)
    said = model.classify(trains([10.0] * 7), 0.01, kind=TRAINS)
    assert (said.name, said.probability) == ("C", pytest.approx(2.25 / 4.5))
    assert said.groups == pytest.approx({"none": 0.25 / 4.5, "cubic only": 2.5 / 4.5, "any bbr": 1.75 / 4.5})


def test_what_is_far_from_all_that_is_known_is_unknown() -> None:
    model = of([[10.0] * 5], ["C"])
    assert model.classify(trains([12.0] * 5), 0.01, kind=TRAINS).name == "C"
    assert model.classify(trains([90.0] * 5), 0.01, kind=TRAINS).name == UNKNOWN
    assert model.classify(trains([10.0, None, None, None, 10.0]), 0.01, kind=TRAINS).name == UNKNOWN


def test_what_it_cannot_say() -> None:
    model = of([[10.0] * 5], ["C"])
    with pytest.raises(UsageError, match="'passive'"):
        model.window_s(PASSIVE)
    for own in ({"own": Own("cubic", 1)}, {"goodput": [(0.0, 1e6)]}):
        with pytest.raises(UsageError, match="data of our own"):
            model.classify(trains([10.0] * 5), 0.01, kind=TRAINS, **own)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("knn")
    words = [str(written(folder / "data", simulated(4, SECONDS))), "-o", str(folder / "model")]
    done = CliRunner().invoke(train_command, [*words, "--classifier", "knn-dtw", "--neighbours", "3"])
    assert done.exit_code == 0, done.output
    assert "passive, 10 s, 3 nearest of" in done.output and "trains, 10 s" in done.output
    return folder / "model"


def test_training_says_how_good_it_is_and_what_of(trained: Path) -> None:
    model = read_templates(trained)
    assert set(model.parts) == {PASSIVE, TRAINS}
    figures = {each["way"]: each for each in model.card["parts"]}
    assert figures[PASSIVE]["samples"] == 50 and figures[TRAINS]["samples"] == 10
    assert 0 < figures[PASSIVE]["six"] <= figures[PASSIVE]["three"] <= 1
    assert model.card["data"]["links"] == 4


def test_the_same_data_and_seed_give_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    words = [
        str(trained.parent / "data"),
        "-o",
        str(tmp_path),
        "--classifier",
        "knn-dtw",
        "--neighbours",
        "3",
    ]
    assert CliRunner().invoke(train_command, words).exit_code == 0
    for name in (JSON_NAME, ARRAYS_NAME):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes()


def test_neighbours_are_for_nearest_neighbours(tmp_path: Path) -> None:
    done = CliRunner().invoke(train_command, [str(tmp_path), "-o", str(tmp_path), "--neighbours", "3"])
    assert isinstance(done.exception, UsageError) and "--classifier knn-dtw" in str(done.exception)


def first(said: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = said["parts"][0]
    return part


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (lambda said, _: first(said).update(way="sideways"), "sideways"),
        (lambda said, _: first(said).update(window_s=11.0), "its windows are"),
        (lambda said, _: first(said).update(k=0), "k is 0"),
        (lambda said, _: first(said).update(k=2.5), "not a whole number"),
        (lambda said, _: first(said).update(doubt=-1.0), "doubt"),
        (lambda said, _: first(said).update(more=1), "other keys"),
        (lambda said, _: said.update(mixes=["none"]), "other mixes"),
        (lambda _, arrays: arrays.pop("0.known"), "0.known is missing"),
        (lambda _, arrays: arrays.update(more=np.zeros(1)), "belongs to no part"),
        (lambda _, arrays: arrays["0.known"].__setitem__(0, np.nan), "no series"),
        (lambda _, arrays: arrays["0.mixes"].__setitem__(0, 6), "of no mix"),
        (lambda _, arrays: arrays.update({"0.mixes": arrays["0.mixes"][:-1]}), "its windows are"),
    ],
)
def test_what_is_damaged_is_refused(
    trained: Path,
    tmp_path: Path,
    change: Callable[[dict[str, Any], dict[str, Any]], object],
    because: str,
) -> None:
    said = json.loads((trained / JSON_NAME).read_text())
    with np.load(trained / ARRAYS_NAME) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    change(said, arrays)
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    said["arrays"] = hashlib.sha256(packed.getvalue()).hexdigest()
    (tmp_path / ARRAYS_NAME).write_bytes(packed.getvalue())
    (tmp_path / JSON_NAME).write_text(json.dumps({**said, "sum": sum_of(said)}))
    with pytest.raises(UsageError, match=because) as raised:
        ops_classifier.load(tmp_path)
    assert "mpx train --classifier knn-dtw" in str(raised.value)


def test_one_of_each_kind_comes_with_mpx() -> None:
    model = ops_classifier.load(classifier=KNN_DTW)
    assert isinstance(model, PassiveModel)
    assert all(len(part.mixes) == 2000 for part in model.parts.values())
    figures = {each["way"]: each for each in model.card["parts"]}
    assert figures[PASSIVE]["six"] > 0.55 and figures[PASSIVE]["three"] > 0.85
    assert figures[PASSIVE]["with the noise of hosts"]["three"] > 0.82
    assert figures[TRAINS]["six"] > 0.3  # as published: links that it has not seen are strange to it
    quiet = [Probe(i / 10, 0.05 + 1e-6 * (i % 3)) for i in range(110)]
    assert model.classify(quiet, 0.05).name == "none"
