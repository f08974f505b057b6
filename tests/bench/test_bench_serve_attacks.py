"""The verdicts of bench/serve_attacks.py: a result that keeps every limit, and ones that break each."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import serve_attacks
from serve_attacks import AttackRun, judge_attack, percentile, table

BENCH = Path(serve_attacks.__file__)
GOOD = AttackRun(
    idle_p99_ms=0.3,
    p99_ms=2.9,
    noops=900,
    idle_noops=400,
    logins=2,
    peak_mib=200.0,
    left_mib=5.0,
    tries=10,
)


def judged(tmp_path: Path, results: dict[str, list[AttackRun]]) -> int:
    """Have the bench judge what is stored; return its exit code."""
    file = tmp_path / "results.json"
    file.write_text(json.dumps({name: [asdict(run) for run in runs] for name, runs in results.items()}))
    return subprocess.run([sys.executable, BENCH, "--judge", file], check=False).returncode


def test_a_good_result_passes(tmp_path):
    assert judged(tmp_path, {"an attack": [GOOD, GOOD]}) == 0


@pytest.mark.parametrize(
    "bad",
    [
        {"p99_ms": 3.1},
        {"logins": 1},
        {"peak_mib": 513.0},
        {"left_mib": 33.0},
        {"tries": 0},
        {"idle_noops": 19},
        {"noops": 0},
    ],
)
def test_each_limit_can_be_broken(bad):
    run = replace(GOOD, **bad)
    assert not all(verdict.kept for verdict in judge_attack("an attack", [run]))


def test_a_result_that_breaks_one_fails(tmp_path):
    assert judged(tmp_path, {"an attack": [GOOD], "another": [replace(GOOD, logins=0)]}) == 1


@pytest.mark.parametrize("results", [{}, {"an attack": []}])
def test_nothing_measured_fails(tmp_path, results):
    assert judged(tmp_path, results) == 1


def test_one_run_that_does_not_count_feeds_no_verdict():
    (verdict,) = judge_attack("an attack", [GOOD, replace(GOOD, tries=0)])
    assert not verdict.kept
    assert "1 of 2" in verdict.measured


def test_percentiles_and_the_table():
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile([5.0], 0.99) == 5.0
    assert "| an attack | 0.30 (0.30 to 0.30) | 2.90" in table({"an attack": [GOOD], "none": []})
