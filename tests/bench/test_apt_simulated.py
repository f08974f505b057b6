"""Cells on simulated machines, here by a stand-in: which are measured, fail, are killed and resumed."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest
from apt import simulated
from apt.cell import Cell, Link
from apt.store import Store
from mpx_lab.simulator import programs
from mpx_lab.simulator.machine import SimulatorError

from mpx.errors import Interrupted, UsageError

CELLS = [Cell(Link(rate_bps=10**9), "auto", 10, turn) for turn in (1, 2, 3)]
VALID = {
    "format": "mpx-lab-run-1",
    "status": "done",
    "validity": {"valid": True, "measures": {}},
    "versions": {},
    "parameters": {},
}
Check = Callable[[], None]


class Machines:
    """Stands in for simulated machines: a program measures its cell at once, or does as `ends` says."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.measured: list[str] = []
        self.cores: set[int] = set()
        self.ends: dict[int, Callable[[BinaryIO, Check], int]] = {}  # by repetition

    def run(
        self,
        kernel: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        folder: Path,
        core: int,
        errors: BinaryIO,
        check: Check,
    ) -> int:
        _, program, store, job = command
        assert (program, store) == (simulated.__file__, str(self.store.folder))
        cell = job_of(job)
        self.measured.append(cell.name)
        self.cores.add(core)
        begun = self.store.begin(cell)
        if ends := self.ends.get(cell.repetition):
            return ends(errors, check)
        (begun / "run.json").write_text(json.dumps(VALID))
        self.store.keep(cell)
        return 0


def job_of(job: str) -> Cell:
    told = json.loads(job)
    return Cell(**{**told, "link": Link(**told["link"])})


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines(Store(tmp_path / "cells"))
    monkeypatch.setattr(programs, "run_simulated", made.run)
    return made


def measured(machines: Machines, cells: Sequence[Cell] = CELLS) -> list[str]:
    return [str(error) for error in simulated.measure_all(Path("/kernel"), cells, machines.store, 2)]


def test_each_cell_is_measured_once_and_those_that_cannot_be_are_left_out(machines: Machines) -> None:
    assert measured(machines, [*CELLS, Cell(Link(), "udt", 10)]) == []
    assert sorted(machines.measured) == [cell.name for cell in CELLS]
    assert machines.cores <= {0, 1}
    assert all(map(machines.store.has, CELLS))
    assert measured(machines) == [] and len(machines.measured) == 3


def test_what_fails_or_is_killed_is_told_and_measured_again(machines: Machines) -> None:
    def fails(errors: BinaryIO, _: Check) -> int:
        errors.write(b"Traceback\nRuntimeError: no valid run in 4\n")
        return 1

    def is_killed(errors: BinaryIO, _: Check) -> int:
        raise SimulatorError("the simulated machine ended before its command")

    machines.ends = {1: fails, 2: is_killed}
    failed, killed = sorted(measured(machines))
    assert failed.startswith(CELLS[0].name) and failed.endswith(
        "exit code 1: RuntimeError: no valid run in 4"
    )
    assert killed.startswith(CELLS[1].name) and killed.endswith("ended before its command")
    assert list(map(machines.store.has, CELLS)) == [False, False, True]
    machines.ends = {}
    machines.measured.clear()
    assert measured(machines) == []
    assert sorted(machines.measured) == [cell.name for cell in CELLS[:2]]
    assert sorted(file.name for file in machines.store.folder.iterdir()) == [cell.name for cell in CELLS]


def test_ctrl_c_ends_the_machines_and_the_rest_is_measured_later(machines: Machines) -> None:
    begun = threading.Event()

    def lasts(_: BinaryIO, check: Check) -> int:
        begun.set()
        for _ in range(3000):
            check()
            threading.Event().wait(0.01)
        pytest.fail("it was not ended")

    def ctrl_c(_: BinaryIO, __: Check) -> int:
        begun.wait(30)
        raise KeyboardInterrupt

    machines.ends = {1: ctrl_c, 2: lasts}
    with pytest.raises(KeyboardInterrupt):
        measured(machines)
    assert not any(map(machines.store.has, CELLS[:2]))
    machines.ends = {}
    assert measured(machines) == [] and all(map(machines.store.has, CELLS))


def test_programs_end_when_they_are_to(machines: Machines) -> None:
    def asks(_: BinaryIO, check: Check) -> int:
        check()
        return 0

    machines.ends = {1: asks}
    run = programs.SimulatedPrograms(Path("/kernel"))
    words = [simulated.__file__, str(machines.store.folder), json.dumps(CELLS[0].described())]
    run.run(words, 1)
    run.stop.set()
    with pytest.raises(Interrupted, match="measured again"):
        run.run(words, 1)


def test_a_folder_that_machines_cannot_see_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    with pytest.raises(UsageError, match="not visible inside"):
        simulated.measure_all(Path("/kernel"), CELLS, Store(Path("/dev/shm/cells")), 2)


LOSSY = Link(window_bytes=None, beside="tcp(congestion=bbr)", loss=0.001)


@pytest.mark.parametrize("cell", [CELLS[0], Cell(LOSSY, "fixed-4", 32, 2, 4, 45, waits=False)])
def test_inside_the_same_cell_is_measured(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Cell, Store, int]] = []
    monkeypatch.setattr(simulated, "code", lambda: "m.l.b")
    monkeypatch.setattr(simulated, "measure", lambda *job: seen.append(job))
    simulated.main(str(tmp_path), json.dumps(cell.described()))
    ((told, store, slot),) = seen
    assert (told, store.folder, slot) == (cell, tmp_path, 1)
