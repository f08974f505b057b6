"""What a transfer costs: processor seconds of both ends, checksums, and a real disk.

    python bench/costs.py --only up|down|disk        (root: runs in a network namespace of its own)

Rounds are interleaved: every tool and checksum once, in turning order, over 4 streams. Processor seconds are
those of the client's process and of the server's session processes. Prints tables as docs/benchmarks.md has
them: medians (least to most). Exits 1 if mpx takes more than 1.25 times the processor seconds of both ends
(on a disk: the wall time) that globus-url-copy takes with the same checksum, or if Adler-32 costs its own
process more than 0.2 s/GiB.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

from control_clock import ControlClock
from figures import Spread, Verdict
from harness import run, work_folder
from race_loopback import (
    GIB,
    Course,
    TransferCost,
    commands,
    in_own_network,
    make,
    own_network_command,
    timed,
)
from stock_server import StockServer

STREAMS = 4
AT_MOST = 1.25  # times what globus-url-copy takes with the same checksum
ADLER32_S = 0.2  # processor time of the client for a GiB, which is summed in passing


@dataclass(frozen=True)
class Entrant:
    """A tool with a checksum; globus-url-copy knows fewer of them."""

    tool: str
    checksum: str

    def command(self, port: int, source: Path, target: Path, *, up: bool) -> list[str]:
        """Return its command line."""
        ours, theirs = commands(port, STREAMS, source, target, up=up, checksum=self.checksum)
        if self.tool == "mpx":
            return ours
        if self.checksum != "none":
            theirs[1:1] = ["-verify-checksum", "-checksum-alg", self.checksum]
        return theirs


CHECKSUMS = [
    *(Entrant("mpx", name) for name in ("none", "adler32", "md5", "sha256")),
    *(Entrant("globus-url-copy", name) for name in ("none", "md5", "sha256")),
]
ON_DISK = [Entrant("mpx", "none"), Entrant("mpx", "adler32"), Entrant("globus-url-copy", "none")]


Measured = dict[str, dict[str, Any]]  # by direction and place: whether wall time counts, and the runs of each


def measure(
    course: Course, entrants: list[Entrant], source: Path, target: Path, rounds: int, *, up: bool
) -> dict[Entrant, list[TransferCost]]:
    """Let every entrant copy the file once in each round; a round before them warms the caches."""
    runs: dict[Entrant, list[TransferCost]] = {entrant: [] for entrant in entrants}
    for turn in range(rounds + 1):
        for i in range(len(entrants)):
            entrant = entrants[(i + turn) % len(entrants)]
            target.unlink(missing_ok=True)
            if course.sync:
                subprocess.run(["sync", "--file-system", course.sync], check=True)
            run = timed(entrant.command(course.clock.port, source, target, up=up), course)
            if subprocess.run(["cmp", "--quiet", source, target], check=False).returncode:
                raise RuntimeError(f"{entrant} made another file")
            if turn:
                runs[entrant].append(run)
    return runs


def judge(measured: Measured) -> Iterator[Verdict]:
    """Hold the medians of mpx against those of globus-url-copy, and Adler-32 against none."""
    for where, found in measured.items():
        runs = {name: [TransferCost(**run) for run in ran] for name, ran in found["runs"].items()}
        yield from _judge_one(where, runs, wall=found["wall"])


def _judge_one(where: str, runs: Mapping[str, Sequence[TransferCost]], *, wall: bool) -> Iterator[Verdict]:
    def took(name: str) -> float:
        return Spread([run.wall_s if wall else run.cpu_s + run.server_cpu_s for run in runs[name]]).median

    what = "wall time" if wall else "processor seconds"
    for theirs in runs:
        tool, checksum = theirs.split()
        if tool != "mpx":
            times = took(f"mpx {checksum}") / took(theirs)
            limit = f"{where}, {checksum}: {what} at most {AT_MOST:g} times globus-url-copy's"
            yield Verdict(limit, f"{times:.2f} times", times <= AT_MOST)
    summed_s, plain_s = (Spread([run.cpu_s for run in runs[f"mpx {sum_}"]]) for sum_ in ("adler32", "none"))
    more_s = summed_s.median - plain_s.median
    limit = f"{where}: Adler-32 costs the client at most {ADLER32_S:g} s/GiB of processor"
    yield Verdict(limit, f"{more_s:.2f} s/GiB", more_s <= ADLER32_S)


def table(runs: dict[Entrant, list[TransferCost]], wall: str) -> str:
    """Return the rows of a table."""
    lines = [
        f"| | checksum | {wall} | client, CPU s/GiB | server, CPU s/GiB | both |",
        "|---|---|---|---|---|---|",
    ]
    for entrant, ran in runs.items():
        client, server = [run.cpu_s for run in ran], [run.server_cpu_s for run in ran]
        both = [one + other for one, other in zip(client, server, strict=True)]
        columns = [Spread([run.wall_s for run in ran]), *map(Spread, (client, server, both))]
        lines.append(f"| {entrant.tool} | {entrant.checksum} | {' | '.join(map(str, columns))} |")
    return "\n".join(lines)


def measure_all(options: argparse.Namespace) -> Measured:
    """Measure up, down and on a disk, interleaved."""
    in_own_network(options)
    print(f"{GIB >> 30} GiB over loopback, {STREAMS} streams, {options.rounds} interleaved rounds")
    measured: Measured = {}
    for what in options.only or ("up", "down", "disk"):
        with work_folder("costs", options.disk if what == "disk" else "/dev/shm") as folder:
            measured |= measure_one(what, folder, options.rounds)
    return measured


def measure_one(what: str, folder: Path, rounds: int) -> Measured:
    """Measure in one folder and print its tables."""
    measured: Measured = {}
    environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
    source = folder / "source"
    make(source, GIB)
    (folder / "served").mkdir()
    with StockServer(folder / "served") as server, ControlClock(server.port) as clock:
        course = Course(server, clock, environment, folder if what == "disk" else None)
        for up in (True, False) if what == "disk" else (what == "up",):
            entrants = ON_DISK if what == "disk" else CHECKSUMS
            runs = measure(course, entrants, source, folder / "target", rounds, up=up)
            where = f"on a disk, file system of {folder}" if what == "disk" else "on tmpfs"
            print(f"\n{'up' if up else 'down'}, {where}\n")
            print(table(runs, "wall s with sync" if what == "disk" else "wall s"), flush=True)
            by_name = {f"{each.tool} {each.checksum}": ran for each, ran in runs.items()}
            place = "on a disk" if what == "disk" else "on tmpfs"
            measured[f"{'up' if up else 'down'}, {place}"] = {"wall": what == "disk", "runs": by_name}
    return measured


if __name__ == "__main__":
    parser = own_network_command(__doc__)
    parser.add_argument("--only", choices=("up", "down", "disk"), action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--disk", type=Path, default=Path("/var/tmp"), help="a folder on a disk")
    run(parser, measure_all, judge)
