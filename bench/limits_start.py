"""Limits of the beginning: how soon `mpx --help` answers, what it imports, when a controller is ready."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from figures import Spread, Verdict

MPX = str(Path(sys.executable).with_name("mpx"))
PAIRS = 15
MOST_TIMES = 6.0
STARTS, READY_S = 9, 2.0  # of `mpx controller`, which switches and callers wait for
HEAVY = (
    "numpy", "scipy", "pandas", "numba", "matplotlib", "cryptography", "jsonschema", "hypothesis", "pytest",
    "ssl", "asyncio", "multiprocessing", "sqlite3", "xml", "http", "urllib.request",
)  # fmt: skip

_LIST_MODULES = (
    "import sys\n"
    "before = set(sys.modules)\n"
    "sys.argv = ['mpx', '--help']\n"
    "from mpx.cli import main\n"
    "try:\n"
    "    main()\n"
    "except SystemExit:\n"
    "    print(*sorted(set(sys.modules) - before), file=sys.stderr)\n"
)


def start() -> dict[str, Any]:
    """Time `mpx --help` beside `python -c pass`, in interleaved pairs; list imports; start controllers."""
    ours, bare = [], []
    for pair in range(PAIRS + 1):
        for command, times in (([MPX, "--help"], ours), ([sys.executable, "-c", "pass"], bare)):
            took = _seconds(command)
            if pair:  # the first one warms the caches
                times.append(took)
    ready = [_controller_s() for _ in range(STARTS + 1)][1:]
    return {"help_s": ours, "bare_s": bare, "modules": imported(), "ready_s": ready}


def judge_start(found: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold the start of `mpx` and of a controller against their limits."""
    ours, bare, modules = found["help_s"], found["bare_s"], found["modules"]
    times = Spread(ours).median / Spread(bare).median
    yield Verdict(
        f"`mpx --help` takes at most {MOST_TIMES:g} times `python -c pass`",
        f"{times:.1f} times; ms: {_ms(ours)} against {_ms(bare)}",
        times <= MOST_TIMES,
    )
    heavy = [name for name in HEAVY if name in modules]
    tops = sorted({name.partition(".")[0] for name in modules} - sys.stdlib_module_names)
    yield Verdict(
        "`mpx --help` imports nothing heavy",
        f"{', '.join(heavy) or 'nothing of the kind'} among {len(modules)} modules; "
        f"not of Python itself: {', '.join(tops)}; of mpx: "
        f"{', '.join(name for name in modules if name.startswith('mpx.'))}",
        not heavy,
    )
    took = Spread(found["ready_s"])
    yield Verdict(
        f"`mpx controller` is ready in less than {READY_S:g} s",
        f"{took:.2f} s",
        took.worst < READY_S,
    )


def _controller_s() -> float:
    """Return the seconds until a controller says that switches and callers can connect; ends it."""
    command = [MPX, "controller", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        took = time.perf_counter() - began
        process.terminate()
    assert ready, "the controller has ended"
    return took


def imported() -> list[str]:
    """Return the modules that `mpx --help` loads beyond those of a bare interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", _LIST_MODULES],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stderr.split()


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _ms(seconds: list[float]) -> Spread:
    return Spread([1000 * value for value in seconds])
