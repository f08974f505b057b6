"""What a model says of a series."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_examples import simulated
from small_model import WINDOW_S, small_part, write_small_model

from mpx import ops_classifier
from mpx.errors import UsageError
from mpx.ops_classifier import load
from mpx.recognition.features import features
from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.recognition.model import Model
from mpx.recognition.observation import PASSIVE, Own
from mpx.recognition.window_classifier import Judgement, tempered
from mpx.recognition.windows import ProbeWindows, bridged, on_grid
from mpx.rtt.series import Probe

STEPS = round(WINDOW_S * 10)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load(write_small_model(tmp_path_factory.mktemp("model")))


def series(*rtts: float | None) -> list[Probe]:
    return [Probe(3 + i / 10, rtt) for i, rtt in enumerate(rtts)]


def test_it_knows_what_it_has_learnt(model: Model) -> None:
    examples = simulated(5, 10.0)
    said = [model.classify(list(each.single)[:STEPS], each.rtt_s) for each in examples]
    right = [mix.name == each.mix for mix, each in zip(said, examples, strict=True)]
    assert np.mean(right) > 0.8
    assert model.window_s() == WINDOW_S


def test_the_end_of_a_series_counts(model: Model) -> None:
    quiet, busy = (next(e for e in simulated(5, 10.0) if e.mix == mix) for mix in ("none", "CC"))
    late = [Probe(probe.t_s + 10, probe.rtt_s) for probe in busy.single]
    both = model.classify([*quiet.single, *late], busy.rtt_s)
    assert both == model.classify(list(busy.single), busy.rtt_s)
    assert both != model.classify(list(quiet.single), busy.rtt_s)


rtts = st.lists(st.one_of(st.none(), st.floats(1e-4, 5.0)), min_size=0, max_size=80)


@given(rtts, st.floats(1e-4, 5.0))
def test_it_always_says_something_with_probabilities(rtts: list[float | None], base_s: float) -> None:
    model = Model({PASSIVE: [small_part()]}, {})
    mix = model.classify(series(*rtts), base_s)
    assert mix.name in (*MIXES, UNKNOWN) and 0 <= mix.probability <= 1
    assert sum(mix.groups.values()) == pytest.approx(1)
    known = sum(rtt is not None for rtt in rtts[-STEPS:])
    if len(rtts) < STEPS or known < STEPS / 2:
        assert (mix.name, mix.probability) == (UNKNOWN, 1.0)


def test_probabilities_are_those_of_the_trees_tempered(model: Model) -> None:
    each = next(e for e in simulated(5, 10.0) if e.mix == "C")
    part = small_part()
    grid = on_grid(each.single).end(STEPS)
    windows = ProbeWindows(bridged(grid.rtt_s[None]), grid.lost[None], np.array([each.rtt_s]))
    row = features(windows, PASSIVE)[0]
    expected = tempered(part.trees.shares(row)[None, :6], part.temperature)[0]
    said = part.judge(each.single, each.rtt_s)
    assert said is not None and said.probabilities == pytest.approx(expected.tolist(), abs=1e-12)


def test_a_base_above_the_window_is_not_believed(model: Model) -> None:
    each = next(e for e in simulated(5, 10.0) if e.mix == "C")
    least = min(probe.rtt_s for probe in list(each.single)[-STEPS:] if probe.rtt_s is not None)
    assert model.classify(each.single, 2 * least) == model.classify(each.single, least)


def test_noise_of_no_network_is_unknown(model: Model) -> None:
    dice = np.random.default_rng(1)
    wild = series(*np.exp(dice.uniform(np.log(0.001), np.log(3), STEPS)))
    mix = model.classify(wild, 0.001)
    assert mix.name == UNKNOWN and mix.probability > 0.95


def test_what_it_has_no_part_for(model: Model) -> None:
    with pytest.raises(UsageError, match="by 'transfer reno' probing, only by passive"):
        model.classify(series(*[0.05] * STEPS), 0.05, [(3.0, 1e6)], own=Own("reno", 4))


def test_our_own_data_has_to_be_told_whole(model: Model) -> None:
    quiet = series(*[0.05] * STEPS)
    with pytest.raises(UsageError, match="'active' probing needs its goodput"):
        Model({"active": [small_part()]}, {}).classify(quiet, 0.05, kind="active")
    with pytest.raises(UsageError, match="give `kind` or `own`"):
        model.classify(quiet, 0.05, [(3.0, 1e6)])


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(0.01, 100))
def test_tempered_shares_are_probabilities_in_the_same_order(shares: list[float], temperature: float) -> None:
    said = tempered(np.array([shares]), temperature)[0]
    assert said.sum() == pytest.approx(1) and (said >= 0).all()
    assert all(said[i] >= said[j] for i in range(6) for j in range(6) if shares[i] > shares[j])


def test_which_model_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_model(tmp_path / "named")
    monkeypatch.setenv("MPX_MODEL", str(tmp_path / "named"))
    assert load().parts
    with pytest.raises(UsageError, match="other"):
        load(tmp_path / "other")
    monkeypatch.delenv("MPX_MODEL")
    monkeypatch.setattr(ops_classifier, "SHIPPED_MODELS", {"trees": tmp_path / "nowhere"})
    with pytest.raises(UsageError, match="comes without a model"):
        load()


def test_numpy_is_not_imported_before_a_model_is_loaded() -> None:
    code = "import sys, mpx, mpx.cli, mpx.transfer.copy, mpx.probing.api; print('numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_idle_windows_are_unknown_less_easily() -> None:
    idle, other = Judgement([0.9, 0.1, 0, 0, 0, 0], 0.97), Judgement([0.1, 0.9, 0, 0, 0, 0], 0.97)
    assert not idle.is_novel and other.is_novel
    assert Judgement([0.9, 0.1, 0, 0, 0, 0], 0.995).is_novel
