"""The noise of hosts: as it was recorded, or drawn within its limits."""

import json
from pathlib import Path

import numpy as np
import pytest
from mpx_lab.dataset.store import NOISE
from mpx_train.noise import QUIET_S, RADIO, RECORDED, SCALED, Noise, recorded_noise, waiting_s

from mpx.errors import UsageError
from mpx.recognition.observation import DIPS_BBR, PASSIVE


def write(folder: Path, name: str, rtts: list[float | None]) -> None:
    (folder / NOISE).mkdir(exist_ok=True)
    series = [{"t_s": i / 10, "rtt_s": rtt} for i, rtt in enumerate(rtts)]
    (folder / NOISE / name).write_text(json.dumps({"mpx": "0.1.0", "series": series}))


def test_a_recording_is_what_is_above_its_least(tmp_path: Path) -> None:
    write(tmp_path, "b.json", [0.012, 0.010, None, 0.014])
    write(tmp_path, "a.json", [0.05] * 7)
    a, b = recorded_noise(tmp_path).recorded
    assert a.tolist() == [0.0] * 7
    assert b == pytest.approx([0.002, 0.0, 0.002, 0.004])
    assert recorded_noise(tmp_path / "nothing") == Noise([], has_radio=True)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"series": []}', '{"series": [{"t_s": 0}]}', '{"series": [3]}', "[" * 100_000]
)
def test_a_file_of_something_else_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / NOISE).mkdir()
    (tmp_path / NOISE / "odd.json").write_text(text)
    with pytest.raises(UsageError, match=r"odd\.json is not what 'mpx probe --json' prints"):
        recorded_noise(tmp_path)


def test_each_window_has_one_kind_of_noise() -> None:
    dice = np.random.default_rng(2)
    recorded = np.where(np.arange(400) % 50 == 0, 0.5, 0.3)  # more than any other kind
    found = Noise([recorded, np.zeros(5)], has_radio=True).drawn(dice, 4000, 20)
    is_recorded = found.min(axis=1) >= 0.3 * SCALED[0]
    assert is_recorded.mean() == pytest.approx(RECORDED, abs=0.03)
    assert np.all(found[is_recorded].max(axis=1) <= 0.5 * SCALED[1]) and np.all(found >= 0)
    quiet = Noise().drawn(dice, 4000, 20)
    means = quiet.mean(axis=1)
    assert means.min() > 0.3 * QUIET_S[0] and means.max() < 3 * QUIET_S[1]
    assert np.median(found[~is_recorded].max(axis=1)) > np.median(quiet.max(axis=1)) and RADIO > 0


def test_probes_of_a_radio_link_wait_alike_for_a_while() -> None:
    dice = np.random.default_rng(3)
    waits = np.array([waiting_s(dice, 100) for _ in range(300)])
    alike = [np.corrcoef(row[:-1], row[1:])[0, 1] for row in waits]
    assert np.quantile(alike, 0.2) < 0.2 and np.quantile(alike, 0.8) > 0.5
    assert 1e-4 < np.median(waits) < 3e-3 and waits.max() > 0.02


def test_the_same_dice_draw_the_same() -> None:
    noise = Noise([np.arange(300) / 1e3], has_radio=True)
    first, again = (noise.drawn(np.random.default_rng(5), 20, 30) for _ in range(2))
    assert np.array_equal(first, again)


def test_folds_share_no_recording() -> None:
    noise = Noise([np.full(3, number) for number in range(5)])
    only, without = noise.only(1, 3), noise.without(1, 3)
    assert sorted(float(each[0]) for each in [*only.recorded, *without.recorded]) == [0, 1, 2, 3, 4]
    assert [float(each[0]) for each in only.recorded] == [1, 4]


def test_only_paths_without_data_of_our_own_may_be_radio_links() -> None:
    noise = Noise([np.arange(9.0)], has_radio=True)
    assert noise.of(PASSIVE).has_radio and not noise.of(DIPS_BBR).has_radio
    assert noise.of(DIPS_BBR).recorded == noise.recorded
