"""Races mpx against globus-url-copy over loopback on tmpfs, where fsync costs nothing, in interleaved pairs.

    python bench/race_loopback.py            (root: runs in a network namespace of its own)

Data time is from the first 150 to the last 226 on the control channels, wall time is that of the whole
process. Each ratio is the median over pairs of mpx / globus-url-copy; below 1 mpx is faster. Exits 1 if a
ratio is over its goal: data 1.05, wall 1.0, wall with adler32 (of globus-url-copy without) 1.4.
"""

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

from control_clock import ControlClock
from figures import Spread, Verdict, machine
from harness import command, run, work_folder
from peers import wait_for
from stock_server import StockServer

MPX = str(Path(sys.executable).with_name("mpx"))
GIB = 1 << 30
GOALS = {"data_s": 1.05, "wall_s": 1.0}  # mpx / globus-url-copy at most
WITH_ADLER32 = 1.4  # the same, where only mpx makes checksums


@dataclass(frozen=True)
class TransferCost:
    """One transfer: seconds of data, of the whole process, and processor seconds of both ends."""

    data_s: float
    wall_s: float
    cpu_s: float
    server_cpu_s: float


@dataclass(frozen=True)
class Course:
    """What all runs of a race share."""

    server: StockServer
    clock: ControlClock
    environment: dict[str, str]
    sync: Path | None = None  # the file system of this folder is synced within the wall time


@dataclass(frozen=True)
class Race:
    """The ratios of one race, mpx / globus-url-copy, and what tells its goal."""

    title: str
    measure: str
    checksum: str
    ratios: list[float]


def judge(races: Iterable[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Hold the median of each race against its goal."""
    for race in races:
        found = Spread(race["ratios"])
        goal = GOALS[race["measure"]] if race["checksum"] == "none" else WITH_ADLER32
        limit = f"{race['title']}: at most {goal:g} times globus-url-copy in the median"
        yield Verdict(limit, str(found), found.median <= goal)


def timed(command: list[str], course: Course) -> TransferCost:
    """Run a command to its end; raises CalledProcessError when it fails."""
    course.clock.reset()
    server_before_s, before_s = course.server.ended_sessions_cpu_s, children_cpu_s()
    began = time.perf_counter()
    subprocess.run(command, check=True, env=course.environment, stdout=subprocess.DEVNULL)
    cpu_s = children_cpu_s() - before_s
    if course.sync:
        subprocess.run(["sync", "--file-system", course.sync], check=True)
    wall = time.perf_counter() - began
    # they end after their client, and their CPU time is counted then
    wait_for(lambda: not course.server.session_pids, "the server's sessions end")
    return TransferCost(
        course.clock.data_s, wall, cpu_s, course.server.ended_sessions_cpu_s - server_before_s
    )


def children_cpu_s() -> float:
    """Return the processor seconds of all children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def race(
    title: str,
    ours: list[str],
    theirs: list[str],
    *,
    target: Path,
    course: Course,
    pairs: int,
    measure: str,
) -> list[float]:
    """Run interleaved pairs and print one row; return the ratio of each pair."""
    ratios, rows = [], []
    for pair in range(pairs + 1):
        runs = {}
        order = [("mpx", ours), ("guc", theirs)]
        for name, words in order if pair % 2 else reversed(order):
            target.unlink(missing_ok=True)
            runs[name] = timed(words, course)
        if pair == 0:
            continue  # warms the caches
        ours_s, theirs_s = getattr(runs["mpx"], measure), getattr(runs["guc"], measure)
        ratios.append(ours_s / theirs_s)
        cpu = [(run.cpu_s, run.server_cpu_s) for run in (runs["mpx"], runs["guc"])]
        rows.append((ours_s, theirs_s, *cpu[0], *cpu[1]))
    mpx_s, guc_s, *cpu_s = (statistics.median(column) for column in zip(*rows, strict=True))
    print(
        f"{title:<34} {measure[:-2]:>5} {mpx_s:7.3f} {guc_s:7.3f}   {statistics.median(ratios):5.2f} "
        f"({min(ratios):4.2f} to {max(ratios):4.2f})   "
        "{:5.2f} + {:4.2f} {:5.2f} + {:4.2f}".format(*cpu_s),
        flush=True,
    )
    return ratios


def commands(
    port: int, streams: int, source: Path, target: Path, *, up: bool, checksum: str
) -> tuple[list[str], list[str]]:
    """Return the command lines of mpx and globus-url-copy for the same transfer."""
    remote = f"ftp://127.0.0.1:{port}"
    pair = (str(source), f"{remote}{target}") if up else (f"{remote}{source}", str(target))
    ours = [MPX, "copy", "-q", "--streams", str(streams), "--checksum", checksum, *pair]
    urls = (f"file://{source}", pair[1]) if up else (pair[0], f"file://{target}")
    return ours, ["globus-url-copy", "-fast", "-p", str(streams), *urls]


def run_all(folder: Path, options: argparse.Namespace) -> list[Race]:
    """Run what was asked for."""
    races = []
    environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
    target = folder / "target"
    (folder / "served").mkdir()  # the server's log lies beside it
    with StockServer(folder / "served") as server, ControlClock(server.port) as clock:
        course = Course(server, clock, environment)

        def row(title: str, measure: str, source: Path, streams: int, *, up: bool, checksum: str) -> None:
            ours, theirs = commands(clock.port, streams, source, target, up=up, checksum=checksum)
            title = f"{title} {'up' if up else 'down'}, {streams} streams, {checksum}"
            ratios = race(
                title,
                ours,
                theirs,
                target=target,
                course=course,
                pairs=options.pairs,
                measure=measure,
            )
            races.append(Race(f"{title}, {measure[:-2]}", measure, checksum, ratios))

        print(
            f"{'':<34} {'':>5} {'mpx':>7} {'guc':>7}   ratio  (min to max)   CPU s, client + server: mpx, guc"
        )
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
    return races


def own_network_command(head: str | None) -> argparse.ArgumentParser:
    """Return the command line of a bench on loopback, see `in_own_network`."""
    parser = command(head)
    add_own_network(parser)
    return parser


def add_own_network(parser: argparse.ArgumentParser) -> None:
    """Add the options of `in_own_network`."""
    parser.add_argument("--congestion", default="cubic", help="set by route, as root only")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def measure(options: argparse.Namespace) -> list[Race]:
    """Race all pairs."""
    in_own_network(options)
    print(f"{options.pairs} pairs; seconds are medians")
    with work_folder("race") as folder:
        return run_all(folder, options)


def in_own_network(options: argparse.Namespace) -> None:
    """As root, start the script again in a network namespace where all of loopback has `--congestion`.

    Prints which machine and which congestion control it runs on.
    """
    if os.geteuid() == 0 and not options.inside:
        route = f"ip route replace local 127.0.0.0/8 dev lo table local congctl {options.congestion}"
        again = shlex.join([sys.executable, *sys.argv, "--inside"])
        inside = ["unshare", "-n", "sh", "-c", f"ip link set lo up && {route} && exec {again}"]
        raise SystemExit(subprocess.run(inside, check=False).returncode)
    print(machine(f"{options.congestion} (by route)" if options.inside else None), flush=True)


def make(name: Path, size_bytes: int) -> None:
    """Write a file that does not compress, readable by everybody."""
    block = os.urandom(1 << 20)
    with name.open("wb") as out:
        for _ in range(size_bytes >> 20):
            out.write(block)
    name.chmod(0o644)


if __name__ == "__main__":
    parser = own_network_command(__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--streams", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16])
    parser.add_argument("--only", choices=("data", "wall", "checksum"))
    run(parser, measure, judge)
