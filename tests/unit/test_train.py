"""From a dataset on disk to a model: `mpx train` learns, says how good it is, and does so again and again."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import mpx_train.learn
import pytest
from click.testing import CliRunner
from mpx_lab.dataset.load import Example
from mpx_train.train import TRAINED, train
from mpx_train.train_command import train_command
from ops_examples import simulated

from mpx.errors import UsageError
from mpx.ops_model import PASSIVE, load_model

SECONDS = 12.0


def written(folder: Path, examples: Sequence[Example]) -> Path:
    """Write runs as the lab does, and one that does not count."""
    for example in examples:
        run = folder / example.run
        (run / "rtt").mkdir(parents=True)
        wan = {"id": example.link, "rtt_s": example.rtt_s, "rate_bps": example.rate_bps}
        parameters = {
            "wan": {**wan, "queue_bdp": example.queue_bdp},
            "mix": example.mix,
            "part": example.part,
            "nuisance": [example.nuisance] if example.nuisance else [],
            "bursts": [],
            "warm_up_s": 0.0,
            "seconds": SECONDS,
        }
        about = {"format": "mpx-lab-run-1", "parameters": parameters, "status": "done"}
        (run / "run.json").write_text(json.dumps({**about, "validity": {"valid": True, "reasons": []}}))
        for name, series in (("single", example.single), ("train", example.paper)):
            with (run / "rtt" / f"{name}.csv").open("w", newline="") as file:
                rows = csv.writer(file)
                rows.writerow(["t_s", "rtt_s", "noise_s"])
                rows.writerows([p.t_s, "" if p.rtt_s is None else p.rtt_s, 0] for p in series)
    invalid = folder / f"{examples[0].run}.1.invalid"
    invalid.mkdir()
    reasons = ["late: 1 % of the frames came over 0.4 ms late", "late: 0.3 % of them over 1 ms"]
    (invalid / "run.json").write_text(json.dumps({**about, "validity": {"valid": False, "reasons": reasons}}))
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer trees and windows than the shipped model's."""
    for function in ("out_of_fold", "part_from"):
        settings = mpx_train.learn.Settings(trees=20, copies=2, folds=3)
        monkeypatch.setattr(getattr(mpx_train.learn, function), "__defaults__", (settings,))


def test_mpx_train_makes_a_model_that_knows_unseen_links(tmp_path: Path, quick: None) -> None:
    dataset = written(tmp_path / "data", simulated(9, SECONDS, loads=(0.0, 0.08)))
    ended = CliRunner().invoke(train_command, [str(dataset), "-o", str(tmp_path / "model")])
    assert ended.exit_code == 0, ended.output
    model = load_model(tmp_path / "model")
    assert [part.window_s for part in model.parts[PASSIVE]] == [5.0, 10.0]
    card = model.card
    assert card["data"]["links"] == 9 and card["data"]["runs"]["passive"]["BC"] == 18
    assert card["data"]["thrown out"] == {"late": 1}
    assert card["command"] == "mpx train DATASET -o MODEL --seed 1"
    for part in card["parts"]:
        assert part["clean"]["six"]["mean"] > 0.6 and part["clean"]["three"]["mean"] > 0.8
        assert part["windows"] == sum(sum(row.values()) for row in part["confusion"].values())
        assert part["false alarms of unknown"] <= 0.06
    unseen = simulated(3, SECONDS, seed=99)
    right = [model.classify(each.single, each.rtt_s).groups for each in unseen]
    assert len(right) == 18 and f"wrote {tmp_path / 'model'}" in ended.output


def test_the_same_seed_makes_the_same_model(tmp_path: Path, quick: None) -> None:
    dataset = written(tmp_path / "data", simulated(3, SECONDS))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        list(train(dataset, tmp_path / name, seed))
    a, b, c = ((tmp_path / name / "arrays.npz").read_bytes() for name in "abc")
    assert a == b != c
    assert (tmp_path / "a" / "model.json").read_bytes() == (tmp_path / "b" / "model.json").read_bytes()


def test_a_dataset_with_too_little_is_refused(tmp_path: Path) -> None:
    one_link = written(tmp_path / "one", simulated(1, SECONDS))
    with pytest.raises(UsageError, match="fewer than 2 links"):
        list(train(one_link, tmp_path / "model", 1))
    no_bbr = written(tmp_path / "some", [each for each in simulated(3, SECONDS) if each.mix != "BB"])
    with pytest.raises(UsageError, match="no passive run of BB to learn from"):
        list(train(no_bbr, tmp_path / "model", 1))
    assert {kind.name for kind in TRAINED} >= {PASSIVE}


def test_without_what_training_needs_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mpx_train.train", None)
    ended = CliRunner().invoke(train_command, [str(tmp_path), "-o", str(tmp_path / "model")])
    assert isinstance(ended.exception, UsageError) and "mpx-dtn[train]" in str(ended.exception)
