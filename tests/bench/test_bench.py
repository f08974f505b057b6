"""What the benches compute from what they saw."""

import json
import math
import runpy
from dataclasses import replace
from pathlib import Path

import lab_traffic
import pytest
import tuner_race
from figures import Spread, Verdict, machine, quantile
from harness import conclude
from huang.rates import variation
from hypothesis import given
from hypothesis import strategies as st
from lab_fidelity import MBIT, FidelityRun, delay_verdicts, highest_verdict, rates_verdicts, until_invalid
from limits_rate import extremes, moving
from mpx_lab.series import Sample

RATE_BPS = 800e6


def seen_at(rate_bps: float, looks: list[float]) -> list[tuple[float, int]]:
    return [(at, round(at * rate_bps / 8)) for at in looks]


@given(st.lists(st.floats(0.001, 0.5), min_size=60, max_size=200))
def test_an_even_rate_is_found_whenever_one_looks(steps: list[float]) -> None:
    looks = [sum(steps[:i]) + 1 for i in range(len(steps) + 1)]
    looks += [looks[-1] + i for i in range(1, 7)]
    for rate in extremes(seen_at(RATE_BPS, looks), 5.0):
        assert math.isclose(rate, RATE_BPS, rel_tol=1e-6)


def test_a_pause_and_a_burst_show_in_the_extremes() -> None:
    looks = [i / 10 for i in range(1, 200)]
    paused = [
        (at, arrived - (int(RATE_BPS / 8) if 10 <= at < 12 else 0))
        for at, arrived in seen_at(RATE_BPS, looks)
    ]
    lowest, highest = extremes(paused, 5.0)
    assert math.isclose(lowest, 0.8 * RATE_BPS, rel_tol=1e-6)
    assert math.isclose(highest, 1.2 * RATE_BPS, rel_tol=1e-6)


def test_too_short_to_tell() -> None:
    with pytest.raises(ValueError, match="less than 5 s"):
        extremes(seen_at(RATE_BPS, [1.0, 2.0, 5.9]), 5.0)


def test_only_what_moves_counts() -> None:
    assert moving([(0, 0), (1, 0), (2, 5), (3, 5), (4, 9), (5, 9), (6, 9)]) == [(2, 5), (3, 5), (4, 9)]


@pytest.mark.parametrize(("count", "most"), [(1, 1), (10, 10), (99, 99), (100, 99), (300, 297)])
def test_the_p99_is_the_least_that_so_many_do_not_exceed(count: int, most: int) -> None:
    assert quantile(range(1, count + 1), 0.99) == most


def test_a_stream_that_is_too_short_varies_without_limit() -> None:
    assert variation([Sample(0.0, 0), Sample(1.5, 1000)]) == math.inf


def test_how_figures_are_shown() -> None:
    spread = Spread([3.0, 1.0, 2.0])
    assert (spread.median, spread.worst, str(spread)) == (2.0, 3.0, "2.00 (1.00 to 3.00)")
    assert (f"{spread}", f"{spread:.1f}") == (str(spread), "2.0 (1.0 to 3.0)")
    assert str(Verdict("at most 2", "3", kept=False)) == "NOT kept / at most 2 / 3"
    assert "cores" in machine("reno")
    assert machine("reno").endswith("congestion control reno")


def fidelity(late_ms: float = 0.05, error_ms: float = 0.05, share: float = 0.8) -> FidelityRun:
    """A run at 80 % load, all of whose frames were as late as that."""
    late_s = late_ms / 1000
    return FidelityRun(share, 0.8, (late_s, late_s, late_s), errors_s=[error_ms / 1000] * 100)


def test_the_queue_of_a_run_that_is_not_valid_is_not_judged() -> None:
    full = FidelityRun(1.0, 1.1, (5e-05,) * 3, errors_s=[5e-05] * 100, queue_s=0.128)
    late = replace(full, late=(0.001,) * 3, queue_s=0.011)
    for udp, kept, told in (([full, late], True, "128.000 (128.000"), ([late], False, "none of 1 runs")):
        *_, queue = rates_verdicts(udp, [full])
        assert queue.kept is kept and queue.measured.startswith(told)


def test_a_pattern_is_not_measured_for_less_than_two_periods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["lab_traffic.py", "--seconds", "39", "--only", "udp-square"])
    with pytest.raises(SystemExit, match="less than two periods of a pattern; 40 is enough"):
        runpy.run_path(lab_traffic.__file__, run_name="__main__")


@pytest.mark.parametrize(("seconds", "code"), [([1.0, 2.0], 0), ([1.0, 2.5], 1), ([], 1)])
def test_what_is_stored_is_what_is_judged_and_decides_the_exit_code(
    seconds: list[float], code: int, tmp_path: Path
) -> None:
    def judge(stored: dict[str, list[float]]) -> list[Verdict]:
        assert stored == json.loads((tmp_path / "results").read_text())
        return [Verdict("at most 2 s", f"{found:g} s", found <= 2) for found in stored["1"]]

    assert conclude(judge, {1: tuple(seconds)}, tmp_path / "results") == code


def test_every_valid_run_has_to_keep_the_delay() -> None:
    good, bad, invalid = fidelity(), fidelity(error_ms=0.2), fidelity(late_ms=0.4, error_ms=9)

    def kept(*runs: FidelityRun) -> list[bool]:
        return [verdict.kept for verdict in delay_verdicts(0.8, runs)]

    assert kept(good, good, invalid) == [True, True]
    assert kept(good, bad, good, good, good) == [False, True]
    assert kept(invalid) == [False, False]


def test_the_highest_rate_is_sought_until_one_fails() -> None:
    found = until_invalid("UDP", lambda rate_bps: fidelity(share=0.8 if rate_bps <= 2600 * MBIT else 0.7))
    verdict = highest_verdict("UDP", found)
    assert verdict.kept
    assert verdict.measured == "2600 Mbit/s; at 2800 Mbit/s: 87.5% carried of what there was"
    assert not highest_verdict("TCP", until_invalid("TCP", lambda _: fidelity(late_ms=1))).kept


def test_the_race_says_which_commit_has_changed_the_tuner_last() -> None:
    for path in (tuner_race.TUNER, tuner_race.HELD_OUT_FILE):
        assert (tuner_race.ROOT / path).exists()
