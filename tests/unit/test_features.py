"""The numbers of a window, against what anybody can compute by hand or in plain loops."""

import math
from statistics import mean, pstdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mpx.recognition.features import ECHOES, FEWEST_STEPS, feature_names, features
from mpx.recognition.observation import (
    ACTIVE,
    ACTIVE_SHORT,
    DIPS_BBR,
    KINDS,
    PASSIVE,
    PROFILES,
    TRANSFER_BBR,
    period_s,
)
from mpx.recognition.own_data import parts_of
from mpx.recognition.windows import Floats, ProbeWindows

STEPS = 100
NAMES = feature_names(STEPS, PASSIVE)


def windows(*rows: Floats, base_s: float | None = None, own: Floats | None = None) -> ProbeWindows:
    rtt = np.array(rows)
    base = np.full(len(rtt), rtt.min() if base_s is None else base_s)
    return ProbeWindows(rtt, np.zeros(rtt.shape, bool), base, None if own is None else np.atleast_2d(own))


def numbers(row: Floats, base_s: float | None = None) -> dict[str, float]:
    return dict(zip(NAMES, features(windows(row, base_s=base_s), PASSIVE)[0].tolist(), strict=True))


def saw(period: int, low: float, high: float) -> Floats:
    return low + (high - low) * (np.arange(STEPS) % period) / (period - 1)


@pytest.mark.parametrize("steps", [FEWEST_STEPS, 37, 50, 100, 200, 600])
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_has_a_name_of_its_own(steps: int, kind: str) -> None:
    if steps < period_s(kind) * 10:
        with pytest.raises(ValueError, match="shorter than its bursts"):
            feature_names(steps, kind)
        return
    names = feature_names(steps, kind)
    some = np.random.default_rng(1).uniform(0.05, 0.1, (3, steps))
    own = np.random.default_rng(2).uniform(0, 1e8, (3, steps))
    shares = np.where(some > 0.09, 0.5, np.nan)
    found = features(
        ProbeWindows(some, some < 0, np.full(3, 0.05), own, np.full(3, 4.0), shares, shares), kind
    )
    assert found.shape == (3, len(names)) and len(set(names)) == len(names)


def test_a_window_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="has 24 steps; at least 25"):
        features(windows(np.full(24, 0.05)), PASSIVE)


def test_an_empty_path() -> None:
    quiet = numbers(0.05 + np.random.default_rng(3).exponential(0.00005, STEPS), base_s=0.05)
    assert quiet["swing of base"] < 0.01 and quiet["queue 0.95"] < 0.005
    assert quiet["falls to 0.95"] == quiet["drops of 0.5"] == 0


def test_saw_teeth_of_one_cubic_stream() -> None:
    found = numbers(saw(25, 0.07, 0.1), base_s=0.05)
    assert found["fall deepest"] == pytest.approx(0.7)
    assert found["falls to 0.75"] == found["drops of 0.75"] == 3
    assert found["falls to 0.65"] == 0
    assert found["queue 0.0"] == pytest.approx(0.4) and found["queue 1.0"] == pytest.approx(1.0)
    assert found["echo 25"] > 0.6 and found["peak Hz"] == pytest.approx(0.4, abs=0.1)
    assert found["rising"] > 0.8


def test_a_drain_of_bbr_is_a_notch_and_no_peak() -> None:
    row = np.full(STEPS, 0.1)
    row[60:63] = 0.05
    found = numbers(row, base_s=0.05)
    notches = {name: value for name, value in found.items() if name.startswith("notch") and "most" in name}
    peaks = {name: value for name, value in found.items() if name.startswith("peak") and "most" in name}
    assert notches and all(value == pytest.approx(1) for value in notches.values())
    assert peaks and all(value <= 0 for value in peaks.values())


def test_pulses_every_eight_round_trips() -> None:
    rtt_s = 0.05
    at = np.arange(STEPS) * 0.1
    pulsing = rtt_s + 0.01 * (1 + np.sin(2 * np.pi * at / (8 * rtt_s)))
    slow = rtt_s + 0.01 * (1 + np.sin(2 * np.pi * at / 3))
    assert numbers(pulsing, rtt_s)["pulse base"] > 20 * numbers(slow, rtt_s)["pulse base"]


def test_against_plain_loops() -> None:
    dice = np.random.default_rng(4)
    row = 0.06 + 0.03 * dice.random(STEPS)
    found, x = numbers(row, base_s=0.05), row.tolist()
    ordered = sorted(x)
    highest = ordered[97] + 0.02 * (ordered[98] - ordered[97])
    swing = highest - ordered[0]
    assert found["swing"] == pytest.approx(math.log(1e-5 + swing))
    assert found["spread"] == pytest.approx(math.log(1e-5 + pstdev(x)))
    level = [(each - ordered[0]) / swing for each in x]
    off = [each - mean(level) for each in level]
    echo = mean(a * b for a, b in zip(off[5:], off, strict=False)) / (mean(a * a for a in off) + 1e-6)
    assert found["echo 5"] == pytest.approx(echo)
    fall = min(min(x[i + 5 : i + 10]) / max(x[i : i + 5]) for i in range(STEPS - 9))
    assert found["fall deepest"] == pytest.approx(fall)
    assert found["high"] == mean(each > 0.9 for each in level)
    longest = max(len(run) for run in "".join("x" if each < 0.15 else " " for each in level).split(" "))
    assert found["longest low"] == longest / STEPS
    crossings = sum(b > 0.5 >= a for a, b in zip([0, *level], level, strict=False))
    assert found["crosses 0.5"] == crossings
    fifth = sorted(mean(level[i : i + 20]) for i in range(0, 100, 20))
    assert [found[f"fifths mean {i}"] for i in range(5)] == pytest.approx(fifth)


@settings(max_examples=50)
@given(
    arrays(float, (2, STEPS), elements=st.floats(1e-6, 100.0)),
    arrays(bool, (2, STEPS)),
    arrays(float, (2, STEPS), elements=st.floats(0, 1e12)),
    arrays(float, (2, STEPS), elements=st.one_of(st.just(math.nan), st.floats(-1e3, 1e3))),
)
def test_whatever_is_measured_the_numbers_are_finite_and_rows_do_not_mix(
    rtt: Floats, lost, own: Floats, shares: Floats
) -> None:
    streams = np.array([1.0, 16.0])
    both = features(ProbeWindows(rtt, lost, rtt.min(axis=1), own, streams, shares, shares[::-1]), DIPS_BBR)
    assert np.isfinite(both).all() and np.isfinite(both.astype(np.float32)).all()
    for i in (0, 1):
        at = slice(i, i + 1)
        one = ProbeWindows(
            rtt[at], lost[at], rtt[at].min(axis=1), own[at], streams[at], shares[at], shares[::-1][at]
        )
        alone = features(one, DIPS_BBR)
        assert alone[0] == pytest.approx(both[i], rel=1e-6, abs=1e-6)


def test_a_link_of_another_rate_looks_the_same() -> None:
    """With the same base and the same queue in time the rate is nowhere; goodput counts relatively."""
    row = saw(25, 0.07, 0.1)
    own = np.random.default_rng(5).uniform(1e6, 1e7, STEPS)
    slow, fast = (features(windows(row, base_s=0.05, own=own * factor), ACTIVE_SHORT) for factor in (1, 10))
    assert slow == pytest.approx(fast)


def test_our_own_data_by_the_bursts_of_the_paper() -> None:
    own = np.concatenate([np.full(50, share) for share in (4e7, 8e7, 2e7, 0.0)])
    row = np.tile(saw(25, 0.07, 0.1), 2)
    found = dict(zip(feature_names(200, ACTIVE), features(windows(row, own=own), ACTIVE)[0], strict=True))
    assert [found[f"burst {i} own"] for i in range(4)] == pytest.approx([0.5, 1, 0.25, 0])
    assert found["own pauses"] == 0.25


def test_bursts_that_come_twice_in_a_window_are_one() -> None:
    own = np.tile(np.concatenate([np.full(20, 4e7), np.full(20, 8e7), np.zeros(10)]), 2)
    names = feature_names(100, ACTIVE_SHORT)
    found = dict(zip(names, features(windows(saw(25, 0.07, 0.1), own=own), ACTIVE_SHORT)[0], strict=True))
    assert [found[f"burst {i} own"] for i in range(3)] == pytest.approx([0.5, 1, 0])
    assert "burst 3 own" not in found


def test_our_share_counts_where_the_path_is_full() -> None:
    row = np.concatenate([np.full(100, 0.05), np.full(100, 0.08)])  # empty, then full
    own = np.concatenate([np.tile([2e7, 8e7], 50), np.full(50, 6e7), np.full(50, 4.5e7)])
    found = dict(zip(feature_names(200, ACTIVE), features(windows(row, own=own), ACTIVE)[0], strict=True))
    assert found["full"] == pytest.approx(0.5, abs=0.02)
    assert found["own while full 0.9"] == pytest.approx(1, abs=0.01)
    assert found["own while full 0.1"] == pytest.approx(0.75, abs=0.01)
    assert found["own while full"] == pytest.approx(0.875, abs=0.01)
    assert found["own while full spread"] == pytest.approx(0.125, abs=0.01)
    empty = features(windows(np.full(200, 0.05), own=own), ACTIVE)[0]
    told = dict(zip(feature_names(200, ACTIVE), empty, strict=True))
    assert [told[name] for name in ("full", "own while full", "own while full 0.5")] == [0, 0, 0]


def test_what_dips_told_is_our_share_and_gives_the_rate_of_the_link() -> None:
    row = np.concatenate([np.full(50, 0.05), np.full(150, 0.08)])  # empty, then full
    own = np.concatenate([np.full(50, 1e7), np.full(100, 4e7), np.full(50, 2e7)])
    shares = np.full(200, np.nan)
    shares[[60, 80, 100, 120, 140]] = 0.39, 0.4, 0.4, 0.4, 0.41
    kept = shares.copy()
    told = own[None], np.array([2.0]), shares[None], kept[None]
    windows = ProbeWindows(row[None], row[None] < 0, np.array([0.05]), *told)
    found = dict(zip(feature_names(200, DIPS_BBR), features(windows, DIPS_BBR)[0], strict=True))
    assert found["dips"] == 5 and found["dip 0.5"] == pytest.approx(0.4)
    assert found["dip beside 1"] == pytest.approx(0.6) and found["dip beside 2"] == pytest.approx(0.8)
    assert found["ours while full 0.9"] == pytest.approx(0.4, abs=0.01)
    assert found["ours while full 0.1"] == pytest.approx(0.2, abs=0.01)
    assert found["ours while not full"] == pytest.approx(0.1, abs=0.02)
    shares[80:] = np.nan  # one tells too little
    found = dict(zip(feature_names(200, DIPS_BBR), features(windows, DIPS_BBR)[0], strict=True))
    assert found["dips"] == 1 and found["dip 0.5"] == found["ours while full 0.9"] == 0
    with pytest.raises(ValueError, match="their responses"):
        features(
            ProbeWindows(row[None], row[None] < 0, np.array([0.05]), own[None], np.array([2.0])), DIPS_BBR
        )


@pytest.mark.parametrize("kind", PROFILES)
def test_every_step_is_of_one_burst_and_ends_are_at_its_end(kind: str) -> None:
    parts = parts_of(PROFILES[kind], 400)
    assert sorted(np.concatenate([steps for steps, _ in parts]).tolist()) == list(range(400))
    for steps, ends in parts:
        last = [step for step in steps.tolist() if step + 1 not in set(steps.tolist())]
        assert set(last) <= set(ends.tolist()) <= set(steps.tolist())
        assert len(ends) == pytest.approx(len(steps) / 3, abs=len(last))


def test_how_many_streams_are_ours_is_seen_in_a_transfer_only() -> None:
    row, own = saw(25, 0.07, 0.1)[None], np.full((1, STEPS), 1e7)
    with_16 = ProbeWindows(row, row < 0, np.array([0.05]), own, np.array([16.0]))
    told = dict(zip(feature_names(STEPS, TRANSFER_BBR), features(with_16, TRANSFER_BBR)[0], strict=True))
    assert told["own streams"] == 4
    assert not any(name.startswith("burst") for name in told)
    assert "own streams" not in feature_names(STEPS, ACTIVE_SHORT)
    with pytest.raises(ValueError, match="the number of our streams"):
        features(windows(row[0], own=own), TRANSFER_BBR)
    with pytest.raises(ValueError, match="needs the goodput"):
        features(windows(row[0]), TRANSFER_BBR)


def test_an_echo_that_never_fades_is_slower_than_any_that_does() -> None:
    rows = np.stack([np.linspace(0.05, 0.1, 200), np.tile([0.05, 0.1], 100)])
    place = feature_names(200, PASSIVE).index("echo fades")
    assert features(windows(*rows), PASSIVE)[:, place].tolist() == [2 * ECHOES[-1], ECHOES[0]]
