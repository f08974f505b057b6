"""From a dataset on disk to a model: `mpx train` learns, says how good it is, and does so again and again."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from dataset_runs import table
from mpx_lab.dataset.load import Example
from mpx_train.card import commands
from mpx_train.learn import Settings
from mpx_train.train import TRAINED, kind_of, train
from mpx_train.train_command import train_command
from ops_examples import example, simulated, with_our_copy

from mpx.errors import UsageError
from mpx.ops_classifier import load
from mpx.recognition.data_folder import ARRAYS_NAME
from mpx.recognition.mix import GROUP_OF
from mpx.recognition.observation import (
    ACTIVE,
    ACTIVE_SHORT,
    DIPS,
    KINDS,
    PASSIVE,
    TRANSFER_BBR,
    TRANSFER_CUBIC,
    Own,
)

SECONDS = 12.0
QUICK = Settings(trees=20, copies=2, folds=3)


def written(folder: Path, examples: Sequence[Example]) -> Path:
    """Write runs as the lab does, and one that does not count."""
    for each in examples:
        run = folder / each.run
        (run / "rtt").mkdir(parents=True)
        link = {"id": each.link, "rtt_s": each.rtt_s, "rate_bps": each.rate_bps}
        series = {
            "part": each.part,
            "from_s": 0.0,
            "seconds": SECONDS,
            "nuisance": [each.nuisance] if each.nuisance else [],
            "profile": each.profile,
            "own_congestion": each.own_congestion,
            "own_streams": each.own_streams,
        }
        parameters = {"link": {**link, "queue_bdp": each.queue_bdp}, "mix": each.mix, "series": [series]}
        about = {"format": "mpx-lab-run-1", "parameters": parameters, "status": "done"}
        (run / "run.json").write_text(json.dumps({**about, "validity": {"valid": True, "reasons": []}}))
        for name, probes in (("single", each.single), ("train", each.paper)):
            rows = [(p.t_s, "" if p.rtt_s is None else p.rtt_s, 0) for p in probes]
            table(run / "rtt" / f"{name}.csv", ("t_s", "rtt_s", "noise_s"), rows)
        if each.own_streams:
            acked = [(p.t_s, 0, round(p.t_s * 1e6)) for p in each.single]
            table(run / "flows" / "transfer-1.tcp.csv", ("t_s", "stream", "bytes_acked"), acked)
    reasons = ["late: 1% of the frames came over 0.4 ms late", "late: 0.3% of them over 1 ms"]
    told = json.dumps({**about, "validity": {"valid": False, "reasons": reasons}})
    for name in ("1-7-many-mixed-1.1.invalid", "1-7-B-1-dips.1.invalid"):
        (folder / name).mkdir()
        (folder / name / "run.json").write_text(told)
    return folder


def test_what_is_trained_knows_unseen_links_and_says_how_well(tmp_path: Path) -> None:
    dataset = written(tmp_path / "data", simulated(9, SECONDS, loads=(0.0, 0.08)))
    told = list(train(dataset, tmp_path / "model", 1, QUICK))
    assert told[-1] == f"wrote {tmp_path / 'model'}"
    assert sum("so no part for it" in line for line in told) == len(TRAINED) - 2  # 5 and 10 s of passive
    model = load(tmp_path / "model")
    assert [part.window_s for part in model.parts[PASSIVE]] == [5.0, 10.0]
    card = model.card
    assert card["data"]["links"] == 9 and card["data"]["series"]["passive"]["BC"] == 18
    assert card["data"]["thrown out"] == {"late": {"B": 1, "many-mixed": 1}}
    assert card["command"] == "mpx train DATASET -o MODEL --seed 1"
    for part in card["parts"]:
        clean = part["base: least of the window"]["clean"]
        assert clean["likeliest"]["six"]["mean"] > 0.6 and clean["likeliest"]["three"]["mean"] > 0.8
        assert clean["said"]["six"]["mean"] <= clean["likeliest"]["six"]["mean"]
        assert 3 * part["windows"] == sum(sum(row.values()) for row in part["confusion"].values())
        assert part["false alarms of unknown"]["mean"] <= 0.15
        assert part["none, with the noise of hosts"] > 0.6
    unseen = simulated(3, SECONDS, seed=99)
    said = [model.classify(each.single, each.rtt_s).groups for each in unseen]
    groups = [max(groups, key=lambda group: groups[group]) for groups in said]
    assert np.mean([group == GROUP_OF[each.mix] for group, each in zip(groups, unseen, strict=True)]) > 0.7


def test_a_model_for_our_own_copy_asks_what_is_ours(tmp_path: Path) -> None:
    copies = with_our_copy(4, SECONDS)
    list(train(written(tmp_path / "data", copies), tmp_path / "model", 1, QUICK))
    model = load(tmp_path / "model")
    assert set(model.parts) == {TRANSFER_CUBIC} and "by our streams" in model.card["parts"][0]
    said = [model.classify(each.single, each.rtt_s, each.goodput, own=Own("cubic", 1)) for each in copies]
    assert np.mean([mix.name == each.mix for mix, each in zip(said, copies, strict=True)]) > 0.5
    with pytest.raises(UsageError, match="only by transfer cubic"):
        model.classify(copies[0].single, 0.05)


def test_every_series_of_a_dataset_teaches_one_kind_but_those_of_the_paper() -> None:
    kinds = [
        kind_of(example("C", [], part=part, profile=profile, own=(own, 4 if own else 0)))
        for part, profile, own in (
            ("passive", "", ""),
            ("active", "paper", ""),
            ("active", "short", ""),
            ("transfer", "", "cubic"),
            ("transfer", "", "bbr"),
            ("dips", "", "cubic"),
            ("dips", "", "bbr"),
        )
    ]
    assert kinds == [PASSIVE, ACTIVE, ACTIVE_SHORT, TRANSFER_CUBIC, TRANSFER_BBR, *DIPS] == list(KINDS)
    assert kind_of(example("C", [], part="paper", profile="paper")) == ""


def test_the_commands_that_measure_the_same_again() -> None:
    links = (("passive", "1-7"), ("dips", "1-5"), ("passive", "1-12"), ("active", "2-3"), ("paper", "paper"))
    alone = example("C", [], part="passive", link="2-9", run="2-9-C-1-passive")
    assert commands([alone, *(example("C", [], part=part, link=link) for part, link in links)]) == [
        "mpx lab dataset FOLDER --part links --links 12 --seed 1",
        "mpx lab dataset FOLDER --part links --links 3 --seed 2",
        "mpx lab dataset FOLDER --part dips --links 5 --seed 1",
        "mpx lab dataset FOLDER --part passive --links 9 --seed 2",
        "mpx lab dataset FOLDER --part paper",
    ]
    near = example("C", [], part="passive", link="near-31-4", run="near-31-4-C-1-passive")
    assert commands([near]) == ["mpx lab dataset FOLDER --part passive --links 4 --seed 31 --near"]


def test_the_same_seed_makes_the_same_model(tmp_path: Path) -> None:
    dataset = written(tmp_path / "data", simulated(3, SECONDS))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        list(train(dataset, tmp_path / name, seed, QUICK))
    a, b, c = ((tmp_path / name / "arrays.npz").read_bytes() for name in "abc")
    assert a == b != c
    assert (tmp_path / "a" / "model.json").read_bytes() == (tmp_path / "b" / "model.json").read_bytes()


def test_a_dataset_with_too_little_is_refused(tmp_path: Path) -> None:
    one_link = written(tmp_path / "one", simulated(1, SECONDS))
    with pytest.raises(UsageError, match="fewer than 2 links"):
        list(train(one_link, tmp_path / "model", 1, QUICK))
    no_bbr = written(tmp_path / "some", [each for each in simulated(3, SECONDS) if each.mix != "BB"])
    with pytest.raises(UsageError, match="no passive run of BB to learn from"):
        list(train(no_bbr, tmp_path / "model", 1, QUICK))


def test_where_a_model_cannot_be_written_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UsageError, match="cannot write a model to"):
        next(train(tmp_path / "nothing", tmp_path / "file" / "model", 1))
    (tmp_path / "model" / ARRAYS_NAME).mkdir(parents=True)
    with pytest.raises(UsageError, match="it is a folder"):
        next(train(tmp_path / "nothing", tmp_path / "model", 1))


def test_a_way_of_watching_that_lacks_a_mix_is_left_out(tmp_path: Path) -> None:
    copies = [each for each in with_our_copy(4, SECONDS) if each.mix != "BB"]
    told = list(
        train(written(tmp_path / "data", [*simulated(4, SECONDS), *copies]), tmp_path / "model", 1, QUICK)
    )
    assert any("no transfer cubic run of BB" in line and "so no part for it" in line for line in told)
    assert set(load(tmp_path / "model").parts) == {PASSIVE}


def test_without_what_training_needs_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mpx_train.train", None)
    ended = CliRunner().invoke(train_command, [str(tmp_path), "-o", str(tmp_path / "model")])
    assert isinstance(ended.exception, UsageError) and "pip install '.[train]'" in str(ended.exception)
