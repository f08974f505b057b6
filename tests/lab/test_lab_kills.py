"""SIGKILL at any moment of a real `Lab.up` and of a real `take_down`: the next use of the lab leaves nothing.

MPX_KILLS says how often for each (`make kills` for a hundred), MPX_KILL_SEED repeats a run whose seed was
printed.
"""

import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mpx_lab import state
from mpx_lab.emulator.build import built_link, cache_folder
from mpx_lab.lab import Lab, take_down
from mpx_lab.own_controller import OWN
from mpx_lab.state import LabError
from mpx_lab.topologies import named
from traces import devices, orphans, traces
from victims import ALL_KINDS, NO_CIRCLE, first_line, python

Eventually = Callable[..., None]
KILLS = int(os.environ.get("MPX_KILLS", "8"))
SEED = int(os.environ.get("MPX_KILL_SEED", random.randrange(1 << 32)))
UP = """
import signal, sys
from mpx_lab.lab import Lab
from victims import ALL_KINDS
print("begins", flush=True)
with Lab.up(ALL_KINDS, sys.argv[1]):
    signal.pause()
"""
UP_CONTROLLED = UP.replace("sys.argv[1])", "sys.argv[1], controller=OWN)").replace(
    "from victims", "from mpx_lab.own_controller import OWN\nfrom victims"
)
DOWN = """
import sys
from mpx_lab.lab import take_down
print("begins", flush=True)
take_down(sys.argv[1])
"""
# Ends before that line of `remove`, counted as they are run, as SIGKILL does.
DOWN_TO_LINE = """
import os, signal, sys
from mpx_lab import cleanup
from mpx_lab.lab import take_down

left = int(sys.argv[2])

def line(frame, event, _):
    global left
    if event == "line":
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
    return line

sys.settrace(lambda frame, *_: line if frame.f_code is cleanup.remove.__code__ else None)
take_down(sys.argv[1])
"""
SLOW_COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo "half of it" > "$2"
exec sleep 1000
"""


@pytest.fixture(autouse=True)
def nothing_runs_on() -> Iterator[None]:
    """Of the programs that are killed here nothing runs at the end, marked or not."""
    with orphans() as running:
        yield
        assert running() == []


@pytest.fixture(scope="module")
def lasts_s(lab_root: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """How long each of these takes here, so that kills come all along them."""
    lab_id = f"t{os.getpid()}-kills"
    times = [time.monotonic()]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        built_link()
    times.append(time.monotonic())
    lab = Lab.up(ALL_KINDS, lab_id)
    times.append(time.monotonic())
    lab.down()
    times.append(time.monotonic())
    lab = Lab.up(ALL_KINDS, lab_id, controller=OWN)
    times.append(time.monotonic())
    lab.down()
    steps = (later - earlier for earlier, later in itertools.pairwise(times))
    return dict(zip(("compiling", "up", "down", "up with a controller"), steps, strict=True))


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which the emulator is still to be built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_folder()


def killed_within(most_s: float, number: int, code: str, lab_id: str) -> None:
    """Start a program, and kill it at a random moment of so long a time."""
    print(f"MPX_KILL_SEED={SEED}")
    with python(code, lab_id) as program:
        assert first_line(program) == "begins"
        with suppress(subprocess.TimeoutExpired):
            program.wait(random.Random(f"{SEED} {code} {number}").uniform(0, most_s))


def by_attaching(lab_id: str) -> None:
    with pytest.raises(LabError, match=r"was interrupted|there is no lab"):
        Lab.attach(lab_id)


def by_building(lab_id: str) -> None:
    with Lab.up(named("path"), lab_id) as lab:
        assert not lab.faults()


NEXT: tuple[Callable[[str], object], ...] = (by_attaching, by_building, take_down)


@pytest.mark.parametrize("number", range(KILLS))
def test_up(lab_id: str, lasts_s: dict[str, float], number: int) -> None:
    before = devices()
    killed_within(lasts_s["up"], number, UP, lab_id)
    NEXT[number % len(NEXT)](lab_id)
    assert not traces(lab_id)
    assert devices() == before


@pytest.mark.parametrize("number", range(-(-KILLS // 2)))
def test_up_with_a_controller(lab_id: str, lasts_s: dict[str, float], number: int) -> None:
    before = devices()
    killed_within(lasts_s["up with a controller"], number, UP_CONTROLLED, lab_id)
    NEXT[number % len(NEXT)](lab_id)
    assert not traces(lab_id)
    assert devices() == before


@pytest.mark.parametrize("number", range(-(-KILLS // 4)))
def test_up_that_compiles(lab_id: str, lasts_s: dict[str, float], fresh_cache: Path, number: int) -> None:
    killed_within(lasts_s["compiling"], number, UP, lab_id)
    NEXT[number % len(NEXT)](lab_id)
    assert not traces(lab_id)
    program = built_link()
    assert set(fresh_cache.iterdir()) == {program, fresh_cache / "link.lock"}


def test_a_compiler_whose_lab_was_killed_ends_with_what_is_left_of_it(
    lab_id: str, fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    compiler.write_text(SLOW_COMPILER)
    compiler.chmod(0o755)
    with monkeypatch.context() as environment:
        environment.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
        with python(UP, lab_id) as program:
            assert first_line(program) == "begins"
            eventually(lambda: list(fresh_cache.glob("link-*")))
            eventually(lambda: any("sleep" in line for line in traces(lab_id)))
    assert any("sleep" in line for line in traces(lab_id))
    by_attaching(lab_id)
    assert not traces(lab_id)
    by_building(lab_id)
    assert {file.name for file in fresh_cache.iterdir()} == {built_link().name, "link.lock"}


@pytest.mark.parametrize("number", range(KILLS))
def test_down(lab_id: str, lasts_s: dict[str, float], number: int) -> None:
    with Lab.up(NO_CIRCLE, lab_id, keep=True):
        killed_within(lasts_s["down"], number, DOWN, lab_id)
        begun = not state.is_complete(lab_id)
        (NEXT[number % len(NEXT)] if begun else take_down)(lab_id)
        assert not traces(lab_id)


def test_down_before_each_line_of_what_it_does(lab_id: str, lab_root: None) -> None:
    """Before each third line, and with `make kills` before each."""
    for line in itertools.count(SEED % 3, 3) if KILLS < 20 else itertools.count():
        with Lab.up(NO_CIRCLE, lab_id, keep=True), python(DOWN_TO_LINE, lab_id, line) as program:
            if program.wait() == 0:
                break
            assert program.returncode == -signal.SIGKILL
            take_down(lab_id)
            assert not traces(lab_id)
    assert line > 10
