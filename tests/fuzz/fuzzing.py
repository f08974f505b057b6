"""What a fuzz target is, and what is asked of it for each input.

A target is a module in `targets`: one parser of ours with what feeds it. It has

    SEEDS    inputs as real programs send them
    ALLOWED  what the parser may raise
    parse    takes the bytes; asserts what must be true of the result
    WEIGHT   (1 if it is left out) how many times longer an input takes than with the cheapest ones

and a folder `corpus/NAME` with inputs that reach further, or that failed once. In all checks the parser
raises nothing else, and comes to an end. For long inputs the steps of our own Python code grow with the
length and not faster; and neither what it computes (CPU time, with a bound that only what is quadratic
reaches) nor what it keeps in memory is out of proportion.
"""

import faulthandler
import importlib
import random
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import mpx_controller
import mpx_lab
from mutations import mutated

import mpx

HERE = Path(__file__).parent
HANG_S = 60.0  # that one input may take; a busy machine takes seconds
MOST_CPU_S = 5.0  # of an input of 64 KiB: what is linear takes well below 1
MOST_GROWTH = 3  # of steps, where the input is twice as long: what is quadratic takes four times as many
FREE_STEPS_PER_BYTE = 20  # a shorter input may have come to its end sooner
MOST_BYTES_PER_BYTE, FREE_BYTES = 400, 16 * 1024 * 1024
OURS = tuple(str(Path(each.__file__).parent) for each in (mpx, mpx_controller, mpx_lab))
Line = tuple[CodeType, int]


class Target(Protocol):
    """A module of `targets`."""

    __name__: str
    SEEDS: list[bytes]
    ALLOWED: tuple[type[Exception], ...]

    @staticmethod
    def parse(data: bytes) -> None: ...


class Failed(Exception):
    """A target does with an input what it must not."""

    def __init__(self, data: bytes, why: str) -> None:
        super().__init__(f"{why}; the input begins {data[:500]!r}")
        self.data = data


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(file.stem for file in (HERE / "targets").glob("[a-z]*.py"))


def target(name: str) -> Target:
    """Return one."""
    found: Any = importlib.import_module(f"targets.{name}")
    return found


def weight(of: Target) -> int:
    """Return how many times longer it takes for an input than the cheapest ones."""
    return int(getattr(of, "WEIGHT", 1))


def corpus(name: str) -> list[bytes]:
    """Return what is in its folder."""
    return [file.read_bytes() for file in sorted((HERE / "corpus" / name).glob("*"))]


def run_one(of: Target, data: bytes, around: Callable[[Callable[[], None]], Any] | None = None) -> Any:
    """Give a target an input; raises Failed. `around` runs it, and its result is returned."""
    faulthandler.dump_traceback_later(HANG_S, exit=True)

    def once() -> None:
        try:
            of.parse(data)
        except of.ALLOWED:
            pass
        except Exception as error:
            raise Failed(data, f"{type(error).__name__}: {error}") from error

    try:
        return once() if around is None else around(once)
    finally:
        faulthandler.cancel_dump_traceback_later()


class Traced:
    """Which lines of ours a run goes through, and how many steps that were in the thread that runs it."""

    def __init__(self) -> None:
        self.lines: set[Line] = set()
        self.steps = 0

    def __call__(self, run: Callable[[], None]) -> None:
        before, before_of_threads = sys.gettrace(), threading.gettrace()
        threading.settrace(self._called_elsewhere)
        sys.settrace(self._called)
        try:
            run()
        finally:
            sys.settrace(before)
            threading.settrace(before_of_threads)  # type: ignore[arg-type]

    def _called(self, frame: FrameType, _: str, __: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(OURS) else None

    def _called_elsewhere(self, frame: FrameType, _: str, __: object) -> Any:
        return self._line_elsewhere if frame.f_code.co_filename.startswith(OURS) else None

    def _line_elsewhere(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.lines.add((frame.f_code, frame.f_lineno))
        return self._line_elsewhere

    def _line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.steps += 1
            self.lines.add((frame.f_code, frame.f_lineno))
        return self._line


def check_long(of: Target, half: bytes, whole: bytes) -> None:
    """Raise Failed where twice as many bytes take more than about twice as much, or either takes too much."""
    steps = []
    for data in (half, whole):
        traced = Traced()
        run_one(of, data, traced)
        steps.append(traced.steps)
    if steps[1] > max(MOST_GROWTH * steps[0], FREE_STEPS_PER_BYTE * len(whole)):
        raise Failed(whole, f"{steps[0]} steps for {len(half)} bytes, {steps[1]} for {len(whole)}")
    cpu_s = run_one(of, whole, _cpu_s)
    if cpu_s > MOST_CPU_S:
        raise Failed(whole, f"{cpu_s:.1f} s of CPU time for {len(whole)} bytes")
    peak = run_one(of, whole, _peak_bytes)
    if peak > MOST_BYTES_PER_BYTE * len(whole) + FREE_BYTES:
        raise Failed(whole, f"{peak} bytes of memory for {len(whole)} bytes")


def _cpu_s(run: Callable[[], None]) -> float:
    began_s = time.process_time()
    run()
    return time.process_time() - began_s


def _peak_bytes(run: Callable[[], None]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def inputs(pool: list[bytes], chance: random.Random) -> Iterator[bytes]:
    """Yield what is in the pool, then changes of it without end; the pool may grow."""
    yield from list(pool)
    while True:
        yield mutated(pool, chance)
