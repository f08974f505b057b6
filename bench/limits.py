"""Limits that need a quiet machine, so that no test asserts them. Run by hand.

    .venv/3.11/bin/python bench/limits.py [--only start,streams,listings,cancel,interrupt,rate,demo,gaps]

Prints a line for each: kept or NOT / limit / measured. Seconds are medians (least to most). Exits 1 if one
was not kept. All together takes about ten minutes; let nothing run beside it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

import limits_memory
import limits_rate
import limits_start
import limits_stop
from figures import Verdict, concluded, machine

GROUPS = ("start", "streams", "listings", "cancel", "interrupt", "rate", "demo", "gaps")
DEMO_S = 60.0
GAP_MS = 60


def demo(folder: Path) -> Iterator[Verdict]:
    """Run `make demo` as it is once set up."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "mpx_lab.demo"], cwd=folder, capture_output=True, text=True, check=False
    )
    took = time.monotonic() - began
    decisions = len(re.findall(r"^ +[0-9.]+ s +\d+ streams", done.stdout, re.MULTILINE))
    yield Verdict(
        f"the demo takes less than {DEMO_S:g} s",
        f"{took:.1f} s, exit {done.returncode}, {decisions} decisions",
        took < DEMO_S and done.returncode == 0,
    )


def gaps(_: Path) -> Iterator[Verdict]:
    """Run the test of streams that come and go, and read what it prints of each attempt."""
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-m", "alone", "tests/interop/test_elastic.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    for direction in ("up", "down"):
        figures = [int(ms) for ms in re.findall(rf"{direction}: .*longest gap (\d+) ms", done.stdout)]
        yield Verdict(
            f"streams that come and go, {direction}: no gap over {GAP_MS} ms",
            f"{', then '.join(map(str, figures)) or 'nothing'} ms; the test tries again after more than that",
            done.returncode == 0 and bool(figures) and figures[-1] <= GAP_MS,
        )


def run(group: str, folder: Path, names: int) -> Iterator[Verdict]:
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


def main() -> int:
    """Return 0 when every limit was kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(GROUPS))
    parser.add_argument("--names", type=int, default=1_000_000, help="how many are listed")
    given = parser.parse_args()
    if unknown := set(given.only) - set(GROUPS):
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(GROUPS)}")
    print(machine(), flush=True)
    kept = True
    for group in given.only:
        folder = Path(tempfile.mkdtemp(prefix="mpx-limits-", dir="/dev/shm"))
        folder.chmod(0o755)
        os.environ["MPX_STATE_DIR"] = str(folder / "state")
        try:
            kept = concluded(run(group, folder, given.names)) == 0 and kept
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
