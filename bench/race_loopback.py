"""Races mpx against globus-url-copy over loopback on tmpfs, where fsync costs nothing, in interleaved pairs.

    python bench/race_loopback.py            (root: runs in a network namespace of its own)

Data time is from the first 150 to the last 226 on the control channels, wall time is that of the whole
process. Each ratio is the median over pairs of mpx / globus-url-copy; below 1 mpx is faster.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

from control_clock import ControlClock
from stock_server import StockServer

MPX = str(Path(sys.executable).with_name("mpx"))
GIB = 1 << 30


@dataclass(frozen=True)
class Run:
    """One transfer: seconds of data, of the whole process, and processor seconds of the client."""

    data_s: float
    wall_s: float
    cpu_s: float


def timed(command: list[str], clock: ControlClock, environment: dict[str, str]) -> Run:
    """Run a command to its end; raises CalledProcessError when it fails."""
    clock.reset()
    before = os.times()
    began = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(clock.data_s, wall, cpu)


def race(
    title: str,
    ours: list[str],
    theirs: list[str],
    *,
    target: Path,
    clock: ControlClock,
    pairs: int,
    environment: dict[str, str],
    measure: str,
) -> None:
    """Run interleaved pairs and print one row."""
    ratios, rows = [], []
    for pair in range(pairs + 1):
        runs = {}
        order = [("mpx", ours), ("guc", theirs)]
        for name, command in order if pair % 2 else reversed(order):
            target.unlink(missing_ok=True)
            runs[name] = timed(command, clock, environment)
        if pair == 0:
            continue  # warms the caches
        ours_s, theirs_s = getattr(runs["mpx"], measure), getattr(runs["guc"], measure)
        ratios.append(ours_s / theirs_s)
        rows.append((ours_s, theirs_s, runs["mpx"].cpu_s, runs["guc"].cpu_s))
    mpx_s, guc_s, mpx_cpu, guc_cpu = (statistics.median(column) for column in zip(*rows, strict=True))
    print(
        f"{title:<34} {measure[:-2]:>5} {mpx_s:7.3f} {guc_s:7.3f}   {statistics.median(ratios):5.2f} "
        f"({min(ratios):4.2f} to {max(ratios):4.2f})   {mpx_cpu:6.2f} {guc_cpu:6.2f}",
        flush=True,
    )


def commands(
    port: int, streams: int, source: Path, target: Path, *, up: bool, checksum: str
) -> tuple[list[str], list[str]]:
    """Return the command lines of mpx and globus-url-copy for the same transfer."""
    remote = f"ftp://127.0.0.1:{port}"
    pair = (str(source), f"{remote}{target}") if up else (f"{remote}{source}", str(target))
    ours = [MPX, "copy", "-q", "--streams", str(streams), "--checksum", checksum, *pair]
    urls = (f"file://{source}", pair[1]) if up else (pair[0], f"file://{target}")
    return ours, ["globus-url-copy", "-fast", "-p", str(streams), *urls]


def run_all(folder: Path, options: argparse.Namespace) -> None:
    """Run what was asked for."""
    environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
    target = folder / "target"
    with StockServer(folder) as server, ControlClock(server.port) as clock:

        def row(title: str, measure: str, source: Path, streams: int, *, up: bool, checksum: str) -> None:
            ours, theirs = commands(clock.port, streams, source, target, up=up, checksum=checksum)
            title = f"{title} {'up' if up else 'down'}, {streams} streams, {checksum}"
            race(
                title,
                ours,
                theirs,
                target=target,
                clock=clock,
                pairs=options.pairs,
                environment=environment,
                measure=measure,
            )

        print(f"{'':<34} {'':>5} {'mpx':>7} {'guc':>7}   ratio  (min to max)     CPU s of the clients")
        source = folder / "source"
        if options.only in (None, "data"):
            make(source, GIB)
            for up in (True, False):
                for streams in options.streams:
                    row("1 GiB", "data_s", source, streams, up=up, checksum="none")
        if options.only != "data":
            make(source, 4 * GIB)
        for checksum, kind in (("none", "wall"), ("adler32", "checksum")):
            for up in (True, False):
                if options.only in (None, kind):
                    row("4 GiB", "wall_s", source, 4, up=up, checksum=checksum)


def main() -> None:
    """Read the command line; as root go into a namespace where the congestion control can be set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--streams", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16])
    parser.add_argument("--only", choices=("data", "wall", "checksum"))
    parser.add_argument("--congestion", default="cubic")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if os.geteuid() == 0 and not options.inside:
        route = f"ip route replace local 127.0.0.0/8 dev lo table local congctl {options.congestion}"
        again = " ".join([sys.executable, __file__, "--inside", *sys.argv[1:]])
        inside = ["unshare", "-n", "sh", "-c", f"ip link set lo up && {route} && exec {again}"]
        raise SystemExit(subprocess.run(inside, check=False).returncode)
    used = options.congestion if options.inside else "the kernel's default"
    print(f"congestion control: {used}; {options.pairs} pairs; seconds are medians")
    folder = Path(tempfile.mkdtemp(prefix="mpx-race-", dir="/dev/shm"))
    folder.chmod(0o777)
    try:
        run_all(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make(name: Path, size_bytes: int) -> None:
    """Write a file that does not compress, readable by everybody."""
    block = os.urandom(1 << 20)
    with name.open("wb") as out:
        for _ in range(size_bytes >> 20):
            out.write(block)
    name.chmod(0o644)


if __name__ == "__main__":
    main()
