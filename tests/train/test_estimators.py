"""Network, support vectors and naive Bayes: as scikit-learn has them, trained, on disk, and what they say."""

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
from mpx_lab.dataset.load import load_dataset
from mpx_train.cut import gridded
from mpx_train.estimators import IN_THE_PAPER
from mpx_train.from_sklearn import converted, scores_of
from mpx_train.paper import fit_other
from mpx_train.passive import numbers_of, passive_data
from mpx_train.train_command import train_command
from ops_examples import simulated
from small_model import by_level, write_small_estimator, write_small_model
from test_train import SECONDS, written

from mpx import ops_classifier
from mpx.choices import MLP, NAIVE_BAYES, SVM, TREES
from mpx.errors import UsageError
from mpx.recognition.data_folder import ARRAYS_NAME, JSON_NAME, sum_of
from mpx.recognition.estimator import softmax
from mpx.recognition.mix import GROUP_OF, MIXES, UNKNOWN
from mpx.recognition.naive_bayes import NaiveBayes
from mpx.recognition.network import Network
from mpx.recognition.observation import PASSIVE, TRAINS, Own
from mpx.recognition.passive_model import PassiveModel
from mpx.recognition.support_vectors import SupportVectors
from mpx.recognition.windows import on_grid
from mpx.rtt.series import Probe

NAMES = (MLP, SVM, NAIVE_BAYES)
BY_LEVEL = PassiveModel(NAIVE_BAYES, {TRAINS: by_level()}, {})


def trains(samples_ms: list[float | None]) -> list[Probe]:
    """Ten probes in the first hundredth of each second."""
    return [
        Probe(second + tenth / 1000, None if ms is None else ms / 1e3)
        for second, ms in enumerate(samples_ms)
        for tenth in range(10)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_all_classes_are_what_scikit_learn_says(name: str) -> None:
    """Of rows that it has not seen, of which it does not know all for sure."""
    dice = np.random.default_rng(3)
    numbers = np.repeat(np.arange(len(MIXES)), 50)
    rows = dice.normal(size=(300, 7)) + 0.8 * numbers[:, None] * np.eye(7)[numbers]
    asked = dice.normal(size=(400, 7)) * 2 + 1
    theirs = fit_other(IN_THE_PAPER[name], rows, numbers, 1)
    ours = converted(name, theirs, rows)
    scores = np.array([ours.scores(row) for row in asked])
    if name == SVM:
        assert scores == pytest.approx(theirs.decision_function(asked), abs=1e-9)
        theirs.set_params(break_ties=True)
    else:
        assert softmax(scores, 1.0) == pytest.approx(theirs.predict_proba(asked), abs=1e-9)
    assert scores.argmax(axis=1).tolist() == theirs.predict(asked).tolist()
    assert set(scores.argmax(axis=1)) == set(range(len(MIXES)))


def test_a_network_by_hand() -> None:
    """max(0, 2 - 1) = 1 and max(0, -2 + 1) = 0, then 1 and max(0, 3 - 4) = 0."""
    weights = np.array([[1.0, -1.0]]), np.array([[1.0, 3.0], [5.0, 5.0]]), np.array([[1.0, 0.0], [1.0, 10.0]])
    network = Network(
        weights[0], np.array([-1.0, 1.0]), weights[1], np.array([0.0, -4.0]), weights[2], np.zeros(2)
    )
    assert network.scores(np.array([2.0])).tolist() == [1.0, 0.0]


def test_a_vote_of_lines_by_hand() -> None:
    """Of three classes the first wins both of its lines, and the second the third."""
    lines = SupportVectors(np.zeros((1, 2)), np.zeros((3, 1)), np.array([1.0, 2.0, 0.5]), np.array([1.0]))
    votes = [2 + 3 / (3 * 4), 1 - 0.5 / (3 * 1.5), 0 - 2.5 / (3 * 3.5)]
    assert lines.scores(np.array([3.0, 4.0])).tolist() == pytest.approx(votes)


sizes = st.floats(-1e12, 1e12)
above_zero = st.floats(1e-12, 1e12)


@given(st.data(), st.sampled_from(NAMES))
def test_numbers_within_bounds_are_scored_whatever_they_are(data: st.DataObject, name: str) -> None:
    def some(*shape: int, of: st.SearchStrategy[float] = sizes) -> Any:
        count = int(np.prod(shape))
        return np.array(data.draw(st.lists(of, min_size=count, max_size=count))).reshape(shape)

    made: Network | SupportVectors | NaiveBayes
    if name == MLP:
        made = Network(some(2, 2), some(2), some(2, 2), some(2), some(2, 6), some(6))
    elif name == SVM:
        made = SupportVectors(some(2, 2), some(15, 2), some(15), some(1, of=above_zero))
    else:
        made = NaiveBayes(some(6, 2), some(6, 2, of=above_zero), some(6, of=above_zero))
    assert (made.inputs, made.classes) == (2, 6)
    with np.errstate(all="raise", under="ignore"):
        said = softmax(made.scores(some(2))[None], data.draw(st.floats(1e-3, 1e6)))
    assert np.isfinite(said).all() and said.sum() == pytest.approx(1)


def test_scores_over_the_temperature_are_probabilities() -> None:
    said = BY_LEVEL.classify(trains([21.0] * 9), 0.02, kind=TRAINS)
    off = np.array([5 * (21.0 - 10 * level) ** 2 / 8 for level in range(1, 7)])
    shares = np.exp(-off / 2) / np.exp(-off / 2).sum()
    assert (said.name, said.probability) == ("C", pytest.approx(shares[1]))
    assert said.groups["none"] == pytest.approx(shares[0])
    assert BY_LEVEL.window_s(TRAINS) == 5.0


def test_what_is_far_from_all_mixes_or_mostly_lost_is_unknown() -> None:
    near = PassiveModel(NAIVE_BAYES, {TRAINS: by_level(farthest=1.0)}, {})
    assert near.classify(trains([10.0] * 5), 0.01, kind=TRAINS).name == "none"
    far = near.classify(trains([1.0] * 5), 0.001, kind=TRAINS)
    assert far.name == UNKNOWN and far.group == "none" and far.probability == 0.95
    assert near.classify(trains([10.0, None, None, None, 10.0]), 0.01, kind=TRAINS).probability == 1.0
    assert near.classify(trains([10.0] * 4), 0.01, kind=TRAINS).name == UNKNOWN


def test_what_a_model_of_passive_probes_cannot_say() -> None:
    with pytest.raises(UsageError, match=r"naive-bayes.*trains probes only, not 'passive'"):
        BY_LEVEL.window_s(PASSIVE)
    for own in ({"own": Own("cubic", 1)}, {"goodput": [(0.0, 1e6)]}):
        with pytest.raises(UsageError, match="data of our own"):
            BY_LEVEL.classify(trains([10.0] * 5), 0.01, kind=TRAINS, **own)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("data"), simulated(3, SECONDS))


@pytest.fixture(scope="module", params=NAMES)
def trained(request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / str(request.param)
    done = CliRunner().invoke(train_command, [str(dataset), "-o", str(folder), "--classifier", request.param])
    assert done.exit_code == 0, done.output
    assert f"passive, 10 s, {request.param}, 18 windows" in done.output and "trains, 10 s" in done.output
    return folder


def test_a_model_says_itself_which_it_is_and_how_good(trained: Path) -> None:
    model = ops_classifier.load(trained)
    assert isinstance(model, PassiveModel)
    assert model.name == trained.name and set(model.parts) == {PASSIVE, TRAINS}
    figures = {each["way"]: each for each in model.card["parts"]}
    assert figures[TRAINS]["numbers"] == 10 and figures[PASSIVE]["learnt from"] == 4 * 18
    assert 0 < figures[PASSIVE]["six"] <= figures[PASSIVE]["three"] <= 1
    assert f"--classifier {model.name}" in model.card["command"] and model.card["data"]["links"] == 3


def test_what_was_written_answers_as_scikit_learn_does(trained: Path, dataset: Path, tmp_path: Path) -> None:
    """The paper's probes, as published: the same rows, fitted again."""
    model = ops_classifier.load(trained)
    assert isinstance(model, PassiveModel)
    part: Any = model.parts[TRAINS]
    windows = passive_data(dataset, tmp_path, 1).windows
    theirs = fit_other(IN_THE_PAPER[model.name], windows.paper_ms, numbers_of(windows.mix), 1)
    ours = np.array([part.estimator.scores(part.scale.scaled(row)) for row in windows.paper_ms])
    they = scores_of(model.name, theirs, windows.paper_ms)
    off = ours - they
    assert off - off[:, :1] == pytest.approx(np.zeros_like(off), abs=1e-6)
    series = trains(windows.paper_ms[5].tolist())
    probabilities = softmax(they[5][None], part.temperature)[0]
    said = model.classify(series, 0.01, kind=TRAINS)
    for group, share in said.groups.items():
        assert share == pytest.approx(
            sum(probabilities[i] for i, mix in enumerate(MIXES) if GROUP_OF[mix] == group)
        )


def test_ten_probes_a_second_are_read_by_their_features(trained: Path, dataset: Path) -> None:
    model = ops_classifier.load(trained)
    assert isinstance(model, PassiveModel)
    part: Any = model.parts[PASSIVE]
    grids = gridded(load_dataset(dataset))
    right = 0
    for grid in grids:
        series = list(grid.example.single)[-101:]
        said = model.classify(series, grid.example.base_s)
        right += GROUP_OF[grid.example.mix] == said.group
    assert right > len(grids) * 0.8  # of windows that it has learnt
    assert len(part.scale.mean) == 214 and len(on_grid(series)) >= 100


def test_the_same_data_and_seed_give_the_same_bytes(trained: Path, dataset: Path, tmp_path: Path) -> None:
    words = [str(dataset), "-o", str(tmp_path), "--classifier", trained.name]
    assert CliRunner().invoke(train_command, words).exit_code == 0
    for name in (JSON_NAME, ARRAYS_NAME):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes()


def test_a_mix_that_was_not_measured_is_named(tmp_path: Path) -> None:
    some = [each for each in simulated(2, SECONDS) if each.mix != "BC"]
    words = [str(written(tmp_path / "data", some)), "-o", str(tmp_path / "model"), "--classifier", SVM]
    done = CliRunner().invoke(train_command, words)
    assert isinstance(done.exception, UsageError) and "no passive run of BC" in str(done.exception)


def test_a_copy_under_way_is_read_by_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_MODEL", str(write_small_estimator(tmp_path / "bayes")))
    assert ops_classifier.load().name == NAIVE_BAYES
    assert ops_classifier.load_beside_data().window_s(Own("cubic", 1).kind) == 5.0
    monkeypatch.setenv("MPX_MODEL", str(write_small_model(tmp_path / "trees")))
    model = ops_classifier.load_beside_data()
    assert model.name == TREES and model.window_s(PASSIVE) == 5.0
    with pytest.raises(UsageError, match="cannot classify"):
        model.window_s(Own("cubic", 1).kind)  # the user's own trees, which know no more


Change = Callable[[dict[str, Any], dict[str, Any]], object]


def of_part(**values: object) -> Change:
    return lambda said, _: said["parts"][0].update(values)


def of_array(name: str, value: object, at: object = 0) -> Change:
    return lambda _, arrays: arrays[name].__setitem__(at, value)


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (of_part(way="sideways"), "sideways"),
        (of_part(window_s=6.0), "other windows than those of 6 s"),
        (of_part(way=PASSIVE), "other features"),
        (of_part(way=PASSIVE, window_s=2.0), "at least"),
        (of_part(features=["rtt"]), "other features"),
        (of_part(temperature=0), "temperature is 0"),
        (of_part(farthest=1e10), "farthest"),
        (of_part(more=1), "other keys"),
        (lambda said, _: said.update(mixes=["none"]), "other mixes"),
        (lambda said, _: said.update(format="mpx-ops-svm-1"), "the array 0.vectors is missing"),
        (lambda _, arrays: arrays.pop("0.priors"), "0.priors is missing"),
        (lambda _, arrays: arrays.update(more=np.zeros(1)), "belongs to no part"),
        (of_array("0.means", np.nan), "0.means has a number that is not finite"),
        (of_array("0.means", 1e13), "above 1e"),
        (of_array("0.variances", 0.0), "0.variances has a number below"),
        (of_array("0.deviation", -1.0), "0.deviation has a number below"),
        (of_array("0.places.spread", 0.0), "spread"),
        (lambda _, arrays: arrays.update({"0.mean": np.zeros(4)}), "a deviation is missing"),
        (lambda _, arrays: arrays.update({"0.priors": np.ones(5)}), "means are"),
        (lambda _, arrays: arrays.update({"0.means": arrays["0.means"].astype("f4")}), "not <f8"),
        (lambda _, arrays: arrays.update({"0.places.means": np.zeros((5, 5))}), "another number of mixes"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, change: Change, because: str) -> None:
    folder = write_small_estimator(tmp_path)
    said = json.loads((folder / JSON_NAME).read_text())
    with np.load(folder / ARRAYS_NAME) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    change(said, arrays)
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    said["arrays"] = hashlib.sha256(packed.getvalue()).hexdigest()
    (tmp_path / ARRAYS_NAME).write_bytes(packed.getvalue())
    (tmp_path / JSON_NAME).write_text(json.dumps({**said, "sum": sum_of(said)}))
    with pytest.raises(UsageError, match=because) as raised:
        ops_classifier.load(tmp_path)
    assert "mpx train --classifier" in str(raised.value)


@pytest.mark.parametrize(
    ("made", "because"),
    [
        (
            lambda: Network(*[np.zeros((2, 2)), np.zeros(2)] * 2, np.zeros((3, 6)), np.zeros(6)),
            r"not \(2, 6\)",
        ),
        (lambda: SupportVectors(np.ones((2, 3)), np.ones((4, 2)), np.ones(4), np.ones(1)), "4 lines"),
        (lambda: SupportVectors(np.ones((2, 3)), np.ones((3, 1)), np.ones(3), np.ones(1)), "3 lines"),
        (lambda: SupportVectors(np.ones((2, 3)), np.ones((3, 2)), np.ones(3), np.ones(2)), "gamma"),
        (lambda: NaiveBayes(np.ones((2, 3)), np.ones((2, 2)), np.ones(2)), "means are"),
        (lambda: NaiveBayes(np.ones((2, 3)), np.ones((2, 3)), np.zeros(2)), "not above zero"),
    ],
)
def test_arrays_that_do_not_fit_are_no_estimator(made: Callable[[], object], because: str) -> None:
    with pytest.raises(ValueError, match=because):
        made()
