"""What a transfer costs, without any goal: processor seconds of both ends, checksums, and a real disk.

    python bench/costs.py --only up|down|disk        (root: runs in a network namespace of its own)

Rounds are interleaved: every tool and checksum once, in turning order, over 4 streams. Processor seconds are
those of the client's process and of the server's session processes. Prints tables as docs/benchmarks.md has
them: medians (least to most).
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

from control_clock import ControlClock
from figures import Spread
from race_loopback import GIB, Course, Run, commands, in_own_network, make, timed
from stock_server import StockServer

STREAMS = 4


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


def measure(
    course: Course, entrants: list[Entrant], source: Path, target: Path, rounds: int, *, up: bool
) -> dict[Entrant, list[Run]]:
    """Let every entrant copy the file once in each round; a round before them warms the caches."""
    runs: dict[Entrant, list[Run]] = {entrant: [] for entrant in entrants}
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


def table(runs: dict[Entrant, list[Run]], wall: str) -> str:
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


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("up", "down", "disk"), action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--disk", type=Path, default=Path("/var/tmp"), help="a folder on a disk")
    given = in_own_network(parser)
    print(f"{GIB >> 30} GiB over loopback, {STREAMS} streams, {given.rounds} interleaved rounds")
    for what in given.only or ("up", "down", "disk"):
        folder = Path(tempfile.mkdtemp(prefix="mpx-costs-", dir=given.disk if what == "disk" else "/dev/shm"))
        folder.chmod(0o777)
        try:
            run(what, folder, given.rounds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run(what: str, folder: Path, rounds: int) -> None:
    """Measure in one folder and print its tables."""
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


if __name__ == "__main__":
    main()
