"""Limits that need a quiet machine, so that no test asserts them. Run by hand.

    .venv/3.11/bin/python bench/limits.py [--only start,streams,listings,cancel,interrupt,rate,demo,gaps]

Prints a line for each in the end: kept or NOT / limit / measured. Seconds are medians (least to most). Exits
1 if one was not kept. All together takes about ten minutes; let nothing run beside it.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

import limits_memory
import limits_rate
import limits_start
import limits_stop
from figures import Verdict, machine
from harness import command, run, work_folder

from mpx.errors import UsageError

DEMO_S = 60.0
GAP_MS = 60


def demo(folder: Path) -> dict[str, float]:
    """Run `make demo` as it is once set up."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "mpx_lab.demo"], cwd=folder, capture_output=True, text=True, check=False
    )
    took = time.monotonic() - began
    decisions = len(re.findall(r"^ +[0-9.]+ s +\d+ streams", done.stdout, re.MULTILINE))
    return {"seconds": took, "exit": done.returncode, "decisions": decisions}


def judge_demo(found: Mapping[str, float]) -> Iterator[Verdict]:
    """Hold the demo against its limit."""
    seconds, code = found["seconds"], found["exit"]
    told = f"{seconds:.1f} s, exit {code}, {found['decisions']} decisions"
    yield Verdict(f"the demo takes less than {DEMO_S:g} s", told, seconds < DEMO_S and code == 0)


def gaps(_: Path) -> dict[str, Any]:
    """Run the test of streams that come and go, and read what it prints of each attempt."""
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-m", "alone", "tests/interop/test_elastic.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    gaps_ms = {
        direction: [int(ms) for ms in re.findall(rf"{direction}: .*longest gap (\d+) ms", done.stdout)]
        for direction in ("up", "down")
    }
    return {"exit": done.returncode, "gaps_ms": gaps_ms}


def judge_gaps(found: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold the last attempt of each direction against the limit."""
    for direction, gaps_ms in found["gaps_ms"].items():
        told = ", then ".join(map(str, gaps_ms)) or "nothing"
        yield Verdict(
            f"streams that come and go, {direction}: no gap over {GAP_MS} ms",
            f"{told} ms, exit {found['exit']}; the test tries again after more than that",
            found["exit"] == 0 and bool(gaps_ms) and gaps_ms[-1] <= GAP_MS,
        )


JUDGES: dict[str, Callable[[Any], Iterator[Verdict]]] = {
    "start": limits_start.judge_start,
    "streams": limits_memory.judge_streams,
    "listings": limits_memory.judge_listings,
    "cancel": limits_stop.judge_cancelled,
    "interrupt": limits_stop.judge_interrupted,
    "rate": limits_rate.judge_rates,
    "demo": judge_demo,
    "gaps": judge_gaps,
}


def measure_group(group: str, folder: Path, names: int) -> Any:
    """Measure what belongs to one group."""
    if group == "start":
        return limits_start.start()
    if group == "listings":
        return limits_memory.listings(folder, names)
    measures = {
        "streams": limits_memory.streams,
        "cancel": limits_stop.cancelled,
        "interrupt": limits_stop.interrupted,
        "rate": limits_rate.rates,
        "demo": demo,
        "gaps": gaps,
    }
    return measures[group](folder)


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold what each group measured against its limits."""
    for group, found in measured.items():
        yield from JUDGES[group](found)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the groups that were asked for."""
    if unknown := set(options.only) - set(JUDGES):
        raise UsageError(f"there is no group {', '.join(unknown)}; choose from {', '.join(JUDGES)}")
    print(machine(), flush=True)
    measured = {}
    for group in options.only:
        with work_folder("limits", mode=0o755) as folder:
            os.environ["MPX_STATE_DIR"] = str(folder / "state")
            measured[group] = measure_group(group, folder, options.names)
            print(f"{group}: measured", flush=True)
    return measured


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(JUDGES))
    parser.add_argument("--names", type=int, default=1_000_000, help="how many are listed")
    run(parser, measure, judge)
