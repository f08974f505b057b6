"""Which cells of the benches of GridFTP-APT are kept, and what becomes of other runs; no lab is needed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from apt import run_cell
from apt.cell import Cell, Link
from apt.code import PARTS, agree, code, described
from apt.row import account
from apt.store import FAILED, INVALID, Result, Store
from apt.transfer import Tool, ToolFailed
from harness import run_row
from mpx_lab.record_reader import RecordedRun
from ops_scavenger import Scavenging, judge

CELL, STOCK = Cell(Link(), "auto", 10), Cell(Link(), "guc", 10)
MEASURES = {"links": [{"late_p99_s": 0.0001}], "cpu_busy": 0.5}


def ended(folder: Path, valid: bool = True, name: str = "m.l.b") -> None:
    """Write what a run says of itself at its end."""
    about = {
        "format": "mpx-lab-run-1",
        "status": "done",
        "validity": {"valid": valid, "measures": MEASURES},
        "versions": {"code": name},
        "parameters": {},
    }
    (folder / "run.json").write_text(json.dumps(about))


def test_a_run_that_does_not_count_is_laid_aside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for valid in (False, True):
        (store.begin(CELL) / "left over").write_text("")
        ended(store.begin(CELL), valid)
        store.keep(CELL)
        assert store.has(CELL) is valid
    assert (store.thrown_out(CELL, INVALID), store.thrown_out(CELL, FAILED)) == (1, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [CELL.name, f"{CELL.name}.1.invalid"]


@pytest.mark.parametrize(
    ("link", "tool", "can"),
    [
        (Link(), "auto", True),
        (Link(), "udt", False),
        (Link(beside="tcp + udp(rate=1Mbit/s)"), "plain", True),
        (Link(beside="tcp + udt"), "plain", False),
    ],
)
def test_cells_with_udt_cannot_be_simulated(link: Link, tool: str, can: bool) -> None:
    assert Cell(link, tool, 10).can_be_simulated is can


def runs(monkeypatch: pytest.MonkeyPatch, *outcomes: BaseException | bool) -> None:
    """Have one run of a cell after the other end so: with an error, valid or not."""
    left = list(outcomes)

    def run(_: Cell, folder: Path, __: int) -> None:
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        ended(folder, outcome)

    monkeypatch.setattr(run_cell, "_run", run)


def test_a_run_whose_tool_failed_is_laid_aside_with_the_reason_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(monkeypatch, ToolFailed("guc ended with 1: no"), False, ToolFailed("hangs"), True)
    store = Store(tmp_path)
    run_cell.measure(CELL, store, 1)
    assert store.has(CELL)
    assert (store.thrown_out(CELL, INVALID), store.thrown_out(CELL, FAILED)) == (1, 2)
    assert (tmp_path / f"{CELL.name}.1.failed/failed.txt").read_text() == "guc ended with 1: no\n"
    results = {(CELL.link, CELL.tool): [store_result(store)]}
    assert account(store, [CELL], results).startswith("1 runs, 1 more were not valid and 2 failed; ")


def store_result(store: Store) -> Result:
    """What is stored of the cell, without its transfers."""
    return Result(RecordedRun.open(store.folder / CELL.name), [])


def test_a_tool_that_always_fails_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch, *[ToolFailed("no")] * run_cell.TRIES)
    with pytest.raises(RuntimeError, match="no valid run in 4"):
        run_cell.measure(CELL, Store(tmp_path), 1)
    assert Store(tmp_path).thrown_out(CELL, FAILED) == run_cell.TRIES


def test_code_that_is_changed_while_a_row_runs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(monkeypatch, True)
    with pytest.raises(RuntimeError, match="the code was changed"):
        run_cell.measure(CELL, Store(tmp_path, "m.l2.b"), 1)


def test_a_mistake_of_the_bench_leaves_its_run_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(monkeypatch, KeyError("bench"))
    with pytest.raises(KeyError, match="bench"):
        run_cell.measure(CELL, Store(tmp_path), 1)
    assert Store(tmp_path).thrown_out(CELL, FAILED) == 1


def test_a_tool_that_ends_too_soon_has_failed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("no such file")
    with (
        subprocess.Popen(["false"]) as process,
        pytest.raises(ToolFailed, match="ended with 1: no such file"),
    ):
        Tool(process, log).wait_until(time.monotonic() + 30)


def test_a_tool_that_has_to_be_killed_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apt.transfer.ENDS_WITHIN_S", 0.1)
    log = tmp_path / "log"
    log.touch()
    deaf = "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\nprint(1, flush=True)\n"
    deaf += "while True:\n    signal.pause()"
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(ToolFailed, match="did not end within"):
            Tool(process, log).interrupt()
        assert process.returncode is not None


def measured(folder: Path, cell: Cell, name: str) -> Store:
    """A store of this code, in which it has measured the cell."""
    store = Store(folder, name)
    ended(store.begin(cell), name=name)
    store.keep(cell)
    return store


def test_what_other_code_has_measured_is_measured_again_and_laid_aside(tmp_path: Path) -> None:
    old = measured(tmp_path, CELL, "m1.l.b")
    assert old.has(CELL) and Store(tmp_path).has(CELL) and not Store(tmp_path, "m2.l.b").has(CELL)
    assert measured(tmp_path, CELL, "m2.l.b").has(CELL) and not old.has(CELL)
    assert (tmp_path / f"{CELL.name}.m1.l.b.other").is_dir()


@pytest.mark.parametrize(
    ("other", "ours", "stock"),
    [("m.l.b", True, True), ("m2.l.b", False, True), ("m.l2.b", False, False), ("m.l.b+1", False, False)],
)
def test_the_code_of_mpx_is_nothing_to_other_tools(other: str, ours: bool, stock: bool) -> None:
    assert (agree("m.l.b", other, "auto"), agree("m.l.b", other, "guc-p4")) == (ours, stock)
    assert not agree("m", "m.l.b", "auto") and not agree("m", "m.l.b", "guc")  # as cells were named before


def test_it_is_said_whether_runs_are_of_several_codes() -> None:
    one = [("auto", "m.l.b"), ("guc", "m2.l.b")]
    assert described(one) == "code: mpx m, lab l, bench b"
    assert (
        described([*one, ("fixed-4", "m")])
        == "of SEVERAL codes: mpx m, lab l and unknown, bench b and unknown"
    )


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., None]:
    """A repository with a file in each part of the code; call it with the words of a git command."""

    def git(*words: str) -> None:
        who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    for folder in PARTS.values():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file.py").write_text("if 1:\n    pass\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    return git


def test_code_is_named_by_its_contents(tmp_path: Path, repository: Callable[..., None]) -> None:
    lab = tmp_path / PARTS["lab"]
    names = [code(tmp_path)]
    assert "+" not in names[0]
    for text in ("if 1:\n  pass\n", "if 1:\n pass\n"):  # blanks are code, too
        (lab / "file.py").write_text(text)
        names.append(code(tmp_path))
    (lab / "file.py").write_text("if 1:\n    pass\n")
    assert code(tmp_path) == names[0]
    (lab / "new.c").write_text("")
    names.append(code(tmp_path))
    repository("add", ".")
    repository("commit", "-m", "second")
    names.append(code(tmp_path))
    (tmp_path / "docs").write_text("of no part of it")
    assert code(tmp_path) == names[-1] and "+" not in names[-1]
    assert len(set(names)) == len(names)
    assert all(agree(name, names[0], "guc") is (name == names[0]) for name in names)
    assert len({name.split(".")[0] for name in names}) == 1  # mpx/ is the same in all


def test_what_is_kept_and_cannot_be_read_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Scavenging()
    store = Store(tmp_path / row.name)
    for cell in row.cells("quick"):
        ended(store.begin(cell))
        store.keep(cell)
    words = ["ops_scavenger.py", "--data", str(tmp_path), "--any-code", "--measure-nothing"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit, match="remove it to measure it again"):
        run_row(row, judge)
