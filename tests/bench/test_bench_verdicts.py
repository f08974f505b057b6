"""Every bench has verdicts, and each of them can fail: of each there is a stored result that shows it.

bench_results/BENCH.json has a result that keeps every limit (`passes`), and for every limit changes of which
each makes it one that breaks the limit (`breaks`): the value `at` a place becomes what `is` says. Most lie
just beyond the limit, so that a limit that is changed where nobody looks is noticed here.
"""

import ast
import copy
import importlib
import json
import runpy
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import apt.row
import huang.row
import pytest
from figures import Verdict

BENCH = Path(__file__).resolve().parents[2] / "bench"
STORED = Path(__file__).with_name("bench_results")
BENCHES = sorted(file.stem for file in BENCH.glob("*.py") if '__name__ == "__main__"' in file.read_text())


def judged(bench: str, measured: Any) -> dict[str, Verdict]:
    """Return the verdicts of a bench on what was measured, by their limits."""
    found = list(importlib.import_module(bench).judge(measured))
    by_limit = {verdict.limit: verdict for verdict in found}
    assert len(by_limit) == len(found), "two verdicts have the same limit"
    return by_limit


def changed(measured: Any, change: Mapping[str, Any]) -> Any:
    """Return what was measured with one value of it changed."""
    found = copy.deepcopy(measured)
    *way, last = change["at"]
    at = found
    for key in way:
        at = at[key]
    at[last] = change["is"]
    return found


@pytest.mark.parametrize("bench", BENCHES)
def test_every_verdict_of_every_bench_can_fail(bench: str) -> None:
    stored = json.loads((STORED / f"{bench}.json").read_text())
    kept = judged(bench, stored["passes"])
    assert kept and all(verdict.kept for verdict in kept.values())
    assert set(kept) <= set(stored["breaks"]), "limits without a stored result that breaks them"
    for limit, changes in stored["breaks"].items():
        assert changes
        for change in changes:
            broken = judged(bench, changed(stored["passes"], change))
            assert limit in broken and not broken[limit].kept, (limit, change)


@pytest.mark.parametrize("bench", BENCHES)
def test_every_bench_ends_with_its_verdicts(bench: str) -> None:
    """What judges stored results is what decides the exit code, see bench/harness.py."""
    calls = [
        node
        for node in ast.walk(ast.parse((BENCH / f"{bench}.py").read_text()))
        if isinstance(node, ast.Call)
    ]
    given = [
        call.func.id if isinstance(call.func, ast.Name) else ast.unparse(call.func).removeprefix("harness.")
        for call in calls
        if any(isinstance(argument, ast.Name) and argument.id == "judge" for argument in call.args)
    ]
    assert len(given) == 1 and given[0] in {"run", "run_row", "run_counted"}


@pytest.mark.parametrize("bench", BENCHES)
def test_every_bench_judges_what_was_stored(
    bench: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = json.loads((STORED / f"{bench}.json").read_text())
    kept = list(judged(bench, stored["passes"]))
    broken = changed(stored["passes"], stored["breaks"][kept[-1]][0])
    file = tmp_path / "results.json"
    monkeypatch.setattr(sys, "argv", [f"{bench}.py", "--judge", str(file)])
    for measured, code in ((stored["passes"], 0), (broken, 1)):
        file.write_text(json.dumps(measured))
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(BENCH / f"{bench}.py"), run_name="__main__")
        assert ended.value.code == code
        assert kept[-1] in capsys.readouterr().out


def test_a_full_run_measures_every_cell_several_times() -> None:
    rows = []
    for bench in BENCHES:
        for each in vars(importlib.import_module(bench)).values():
            own = isinstance(each, type) and each.__module__ == bench
            if own and issubclass(each, apt.row.ToolRow | huang.row.CopyRow):
                rows.append(each())
    assert len(rows) > 15
    for row in rows:
        size = (row.sizes_bytes["full"],) if isinstance(row, huang.row.CopyRow) else ()
        times = Counter(replace(cell, repetition=0) for cell in row.cells("full", *size))
        assert min(times.values()) >= 3, row.name


def test_there_is_no_result_of_a_bench_that_is_gone() -> None:
    assert {file.stem for file in STORED.iterdir()} == set(BENCHES) and len(BENCHES) > 50
