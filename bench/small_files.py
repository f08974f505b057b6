"""Many small files, up and down: mpx against globus-url-copy, with a long path between, in turns.

    python bench/small_files.py --rtt 0 --files 10000          the race over loopback
    python bench/small_files.py --rtt 100ms --files 3000       behind the delaying proxy
    python bench/small_files.py --tool mpx --rtt 0 --files 100000 --size 100

A stock server and tmpfs on both sides. mpx verifies every file and commits it; globus-url-copy
(`-r -cc 4 -pp -fast`) does neither. Both run through the same proxy. Prints for each direction and tool
how many files came per second of wall time, what the client took of the processor, and its peak memory.
Exits 1 if mpx brings fewer files per second than globus-url-copy in the median, or takes more than 150 MB in
any run.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

from figures import Spread, Verdict
from harness import argument, command, run, work_folder
from mpx_lab.proxy import DelayProxy
from stock_server import StockServer

from mpx.units import parse_duration, parse_size

FILES_PER_FOLDER = 1000
TOOLS = ("mpx", "globus-url-copy")
MEMORY_BYTES = 150e6

# A small process between us and the client: what the kernel counts as its peak memory begins with ours.
MEASURE = (
    "import json, os, resource, subprocess, sys, time\n"
    "began = time.perf_counter()\n"
    "code = subprocess.run(sys.argv[2:]).returncode\n"
    "wall_s = time.perf_counter() - began\n"
    "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    "told = {'wall_s': wall_s, 'cpu_s': used.ru_utime + used.ru_stime, 'peak_bytes': used.ru_maxrss * 1024}\n"
    "open(sys.argv[1], 'w').write(json.dumps(told))\n"
    "sys.exit(code)\n"
)


@dataclass(frozen=True)
class CopyCost:
    """One copy of the tree: seconds of wall time and of the client's processor, its peak memory in bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def make_tree(folder: Path, files: int, size_bytes: int) -> None:
    """Write so many files that do not compress, a thousand to a folder."""
    for i in range(files):
        home = folder / f"d{i // FILES_PER_FOLDER:04}"
        home.mkdir(parents=True, exist_ok=True)
        (home / f"f{i:07}").write_bytes(os.urandom(size_bytes))
    for made in (folder, *folder.iterdir()):
        made.chmod(0o777)


def timed(command: list[str], folder: Path) -> CopyCost:
    """Run a command to its end; raises RuntimeError with what it said when it fails."""
    log, measured = folder / "client.log", folder / "measured.json"
    environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
    with log.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-S", "-c", MEASURE, str(measured), *command],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=out,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {log.read_text()[-2000:]}")
    return CopyCost(**json.loads(measured.read_text()))


def command_of(tool: str, source: Path, target: Path, server: str, *, up: bool) -> list[str]:
    """Return the command line that copies the tree."""
    if tool == "mpx":
        names = [str(source), f"{server}{target}"] if up else [f"{server}{source}", str(target)]
        return [sys.executable, "-m", "mpx", "copy", "-q", "-r", *names]
    here, there = "file://", server
    first, second = (here, there) if up else (there, here)
    plain = ["globus-url-copy", "-r", "-cc", "4", "-pp", "-fast", "-cd"]
    return [*plain, f"{first}{source}/", f"{second}{target}/"]


@contextlib.contextmanager
def path_to(server: StockServer, rtt_s: float) -> Iterator[str]:
    """Yield the URL of the server, behind the proxy if there is a round-trip time to add."""
    if not rtt_s:
        yield f"ftp://{server.host}:{server.port}"
        return
    with DelayProxy((server.host, server.port), rtt_s=rtt_s) as proxy:
        yield f"ftp://{proxy.host}:{proxy.port}"


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold mpx against globus-url-copy, where both ran, and against its bound of memory.

    `measured`: how many files the tree has, and the runs by direction and tool.
    """
    files = measured["files"]
    for direction, stored in measured["runs"].items():
        by_tool = {tool: [CopyCost(**run) for run in ran] for tool, ran in stored.items()}
        rates = {tool: Spread([files / run.wall_s for run in ran]) for tool, ran in by_tool.items()}
        ours = by_tool.get("mpx", [])
        if len(rates) == len(TOOLS):
            mpx, other = (rates[tool] for tool in TOOLS)
            limit = f"{direction}: at least as many files per second as globus-url-copy in the median"
            yield Verdict(limit, f"{mpx:.0f} against {other:.0f}", mpx.median >= other.median)
        if ours:
            peak = max(run.peak_bytes for run in ours)
            limit = f"{direction}: at most {MEMORY_BYTES / 1e6:.0f} MB of memory"
            yield Verdict(limit, f"{peak / 1e6:.0f} MB", peak <= MEMORY_BYTES)


def measure_in(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, list[CopyCost]]]:
    """Run what was asked for, tools in turns, and print a row for each direction and tool."""
    found: dict[str, dict[str, list[CopyCost]]] = {}
    source = folder / "source"
    make_tree(source, options.files, options.size)
    tools = TOOLS if options.tool is None else (options.tool,)
    root = folder / "served"
    root.mkdir()
    with StockServer(root) as server, path_to(server, options.rtt) as url:
        for direction in options.directions:
            runs = found[direction] = {tool: [] for tool in tools}
            for turn in range(options.runs):
                for tool in tools if turn % 2 else reversed(tools):
                    target = folder / "target"
                    target.mkdir(mode=0o777)
                    target.chmod(0o777)
                    command = command_of(tool, source, target, url, up=direction == "up")
                    runs[tool].append(timed(command, folder))
                    sys.stderr.write(f"{direction} {tool}: {runs[tool][-1].wall_s:.2f} s\n")
                    subprocess.run(["diff", "-rq", source, target], check=True)
                    shutil.rmtree(target)
            for tool in tools:
                print(row(direction, tool, runs[tool], options.files), flush=True)
    return found


def row(direction: str, tool: str, runs: list[CopyCost], files: int) -> str:
    """Return one line of the table."""
    rates = [files / run.wall_s for run in runs]
    cpu_s = statistics.median(run.cpu_s for run in runs)
    peak = max(run.peak_bytes for run in runs)
    return (
        f"| {direction:<4} | {tool:<15} | {statistics.median(rates):8.0f} | {min(rates):6.0f} | "
        f"{max(rates):6.0f} | {cpu_s:6.2f} | {peak / 1e6:7.0f} |"
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure in a folder that is removed afterwards."""
    print(
        f"{options.files} files of {options.size} bytes, {options.rtt * 1000:g} ms, {options.runs} runs\n\n"
        "|      | tool            | files/s, median |    min |    max |  CPU s | peak MB |\n"
        "|---|---|---|---|---|---|---|"
    )
    with work_folder("small", options.folder) as folder:
        return {"files": options.files, "runs": measure_in(folder, options)}


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument(
        "--rtt", type=argument(parse_duration), default=0.1, help="added by the proxy; 0: no proxy"
    )
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--size", type=argument(parse_size), default=10_000, help="of each file")
    parser.add_argument("--runs", type=int, default=3, help="of each tool and direction")
    parser.add_argument("--tool", choices=TOOLS, help="measure only this one")
    parser.add_argument("--directions", nargs="+", choices=("up", "down"), default=["up", "down"])
    parser.add_argument("--folder", default="/dev/shm", help="where to work")
    run(parser, measure, judge)
