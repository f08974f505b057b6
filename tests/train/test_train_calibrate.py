"""Shares become probabilities, and distances ranks, by what was seen of unseen links."""

import numpy as np
import pytest
from mpx_train.calibrate import FEWEST, calibrated, calibration_error, lie, ranks_of, temperature_of

from mpx.recognition.mix import MIXES
from mpx.recognition.novelty import share_below
from mpx.recognition.window_classifier import FALSE_ALARMS, tempered

DICE = np.random.default_rng(1)


def drawn_from(probabilities: np.ndarray) -> np.ndarray:
    return np.array([DICE.choice(MIXES, p=row) for row in probabilities])


def test_the_temperature_that_was_put_in_is_found() -> None:
    shares = DICE.dirichlet([0.5] * 6, 6000)
    for temperature in (0.5, 1.0, 2.0):
        truth = drawn_from(tempered(shares, temperature))
        assert temperature_of(shares, truth) == pytest.approx(temperature, rel=0.1)


def test_a_temperature_above_one_makes_less_sure() -> None:
    shares = np.array([[0.6, 0.4, 0, 0, 0, 0]])
    cold, plain, hot = (tempered(shares, t)[0, 0] for t in (0.5, 1.0, 2.0))
    assert cold > plain > hot > 0.5 and plain == pytest.approx(0.6, abs=0.005)


def test_tempering_mends_what_is_too_sure() -> None:
    shares = DICE.dirichlet([0.3] * 6, 5000)
    truth = drawn_from(tempered(shares, 2.5))
    before, after = (
        calibration_error(tempered(shares, t), truth) for t in (1.0, temperature_of(shares, truth))
    )
    assert before > 0.1 > 0.03 > after


def test_calibration_error_by_hand() -> None:
    sure = np.array([[0.8, 0.2, 0, 0, 0, 0]] * 10)
    assert calibration_error(sure, np.array(["none"] * 8 + ["C"] * 2)) == pytest.approx(0.0)
    assert calibration_error(sure, np.array(["none"] * 3 + ["C"] * 7)) == pytest.approx(0.5)


def test_one_in_twenty_of_the_known_is_a_false_alarm() -> None:
    """Of new ones as of those that were calibrated on, and of what is far away nearly all."""
    known, new = (DICE.normal(size=(4000, 2)) ** 2 for _ in range(2))
    ranks = ranks_of(known[:, 0], known[:, 1])
    alarms = [ranks.novelty(float(a), float(b)) > 1 - FALSE_ALARMS for a, b in new]
    assert np.mean(alarms) == pytest.approx(FALSE_ALARMS, abs=0.015)
    assert ranks.novelty(100.0, 0.0) > 0.99 and ranks.novelty(0.0, 100.0) > 0.99
    assert ranks.novelty(0.0, 0.0) == 0.0


def test_idle_paths_are_ranked_among_their_like() -> None:
    """Farther from their mix than all others are, but all except one in twenty are named."""
    mixes = np.repeat(MIXES, 200)
    shares = np.eye(7)[np.repeat(np.arange(6), 200)] * 0.9
    distances = DICE.uniform(1, 2, 1200) + 10 * (mixes == "none")
    noisy = np.tile([True, False, False], 400)
    distances += 5 * ((mixes == "none") & noisy)  # the noisiest of them count
    _, ranks = calibrated(shares, distances, mixes, noisy)
    named = [ranks.of("none").novelty(float(d), 0.0) <= 1 - FALSE_ALARMS for d in distances[:200:3]]
    assert np.mean(named) == pytest.approx(1 - FALSE_ALARMS, abs=0.02)
    assert ranks.of("C").novelty(11.0, 0.0) > 1 - FALSE_ALARMS
    few = np.concatenate([np.arange(FEWEST - 1), np.arange(200, 1200)])
    _, ranks = calibrated(shares[few], distances[few], mixes[few], noisy[few])
    assert not np.array_equal(ranks.none.together, ranks.others.together)  # the others are enough
    assert ranks.none.novelty(11.0, 0.0) > 1 - FALSE_ALARMS


def test_distances_are_from_the_nearest_mix() -> None:
    mixes = np.repeat(MIXES, 300)
    rows = DICE.normal(size=(1800, 50))
    rows[:, 0] += 6 * np.repeat(np.arange(6), 300)
    places = lie(rows, mixes)
    near, far = places.distances(rows), places.distances(rows + 60 * np.eye(50)[0])
    assert far.min() > near.mean()


def test_share_below() -> None:
    ordered = np.array([0.0, 1.0, 1.0, 3.0, 4.0])
    assert [share_below(ordered, value) for value in (-1, 0, 0.5, 1, 2, 4, 5)] == [
        0,
        0,
        0.125,
        0.25,
        0.625,
        1,
        1,
    ]
