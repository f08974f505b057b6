"""What a GiB costs once a copy is under way: processor seconds of 9 GiB less those of 1 GiB, by eight.

    python bench/cost_slope.py            (root: runs in a network namespace of its own)

Over loopback on tmpfs, without checksums, 4 streams, in turning order: mpx and globus-url-copy with a stock
server, and mpx with `mpx serve`. The source has holes, so that one file of 9 GiB is all that there has to be
room for. Exits 1 if the client takes more than 1.1 times the processor seconds of globus-url-copy, or
`mpx serve` more than 1.2 times those of the stock server, or 16 streams carry less than globus-url-copy's.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "interop")]

from figures import Spread, Verdict
from harness import run, work_folder
from peers import OwnServer, own_server, wait_for
from race_loopback import GIB, children_cpu_s, commands, in_own_network, own_network_command
from stock_server import StockServer

SMALL, LARGE = 1, 9  # GiB
STREAMS, MANY = 4, 16
CLIENT, SERVER = 1.1, 1.2  # times what the others take, at most
OURS, THEIRS, BOTH_OURS = "mpx", "globus-url-copy", "mpx and mpx serve"


@dataclass(frozen=True)
class Cost:
    """What one copy took: seconds, and processor seconds of both ends."""

    wall_s: float
    client_s: float
    server_s: float


def slope(small: Cost, large: Cost) -> dict[str, float]:
    """Return what a GiB costs, from a small copy and a large one."""
    more = LARGE - SMALL
    return {key: (getattr(large, key) - getattr(small, key)) / more for key in ("client_s", "server_s")}


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold the medians of mpx against those of the others."""
    for way, by_entrant in measured["slopes"].items():
        ours, theirs, served = (by_entrant[name] for name in (OURS, THEIRS, BOTH_OURS))
        for what, key, some, others, most in (
            ("client", "client_s", ours, theirs, CLIENT),
            ("mpx serve", "server_s", served, ours, SERVER),
        ):
            times = _median(some, key) / _median(others, key)
            limit = f"{way}, {what}: at most {most:g} times the processor seconds of the other's for a GiB"
            yield Verdict(limit, f"{times:.2f} times", times <= most)
    for way, walls_s in measured["wall_s"].items():
        times = Spread(walls_s[THEIRS]).median / Spread(walls_s[OURS]).median
        limit = f"{way}, {MANY} streams: at least the goodput of globus-url-copy"
        yield Verdict(limit, f"{times:.2f} times", times >= 1)


def _median(runs: Sequence[Mapping[str, float]], key: str) -> float:
    return Spread([each[key] for each in runs]).median


class Courses:
    """The servers, and how each entrant copies between them and here."""

    def __init__(self, folder: Path, stock: StockServer, own: OwnServer) -> None:
        self._served, self._stock, self._own = folder / "served", stock, own
        self._environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}

    def copy(self, entrant: str, gib: int, streams: int, *, up: bool) -> Cost:
        """Copy once; what is there already is removed before."""
        source, target = self._served / f"{gib}", self._served / "target"
        target.unlink(missing_ok=True)
        ours, theirs = commands(self._stock.port, streams, source, target, up=up, checksum="none")
        if entrant == BOTH_OURS:
            url = self._own.url
            ours[-2:] = [str(source), f"{url}target"] if up else [f"{url}{gib}", str(target)]
        began_s, client_s, server_s = time.perf_counter(), children_cpu_s(), self._servers_cpu_s
        subprocess.run(
            theirs if entrant == THEIRS else ours,
            check=True,
            env=self._environment,
            stdout=subprocess.DEVNULL,
        )
        wall_s = time.perf_counter() - began_s
        # They end after their client, and their processor time is counted then.
        wait_for(lambda: not (self._stock.session_pids or self._own.session_pids), "the sessions end")
        if target.stat().st_size != gib * GIB:
            raise RuntimeError(f"{entrant} made another file")
        return Cost(wall_s, children_cpu_s() - client_s, self._servers_cpu_s - server_s)

    @property
    def _servers_cpu_s(self) -> float:
        return self._stock.ended_sessions_cpu_s + self._own.cpu_s


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything, and print the tables."""
    in_own_network(options)
    print(f"{SMALL} and {LARGE} GiB over loopback, {options.rounds} interleaved rounds")
    with work_folder("slope") as folder:
        (folder / "served").mkdir()
        for gib in (SMALL, LARGE):
            with (folder / "served" / f"{gib}").open("wb") as file:
                file.truncate(gib * GIB)
            (folder / "served" / f"{gib}").chmod(0o644)
        with StockServer(folder / "served") as stock, own_server(folder / "served") as own:
            courses = Courses(folder, stock, own)
            return {
                "slopes": {way: _slopes(courses, way, options.rounds) for way in ("up", "down")},
                "wall_s": {way: _walls_s(courses, way, options.rounds) for way in ("up", "down")},
            }


def _slopes(courses: Courses, way: str, rounds: int) -> dict[str, list[dict[str, float]]]:
    entrants = (OURS, THEIRS, BOTH_OURS)
    found: dict[str, list[dict[str, float]]] = {entrant: [] for entrant in entrants}
    for turn in range(rounds + 1):
        for entrant in (*entrants[turn % 3 :], *entrants[: turn % 3]):
            small, large = (courses.copy(entrant, gib, STREAMS, up=way == "up") for gib in (SMALL, LARGE))
            if turn:  # the first one warms the caches
                found[entrant].append(slope(small, large))
    print(f"\n{way}, {STREAMS} streams\n\n| | client, CPU s/GiB | server, CPU s/GiB |\n|---|---|---|")
    for entrant, runs in found.items():
        columns = [Spread([each[key] for each in runs]) for key in ("client_s", "server_s")]
        print(f"| {entrant} | {columns[0]:.3f} | {columns[1]:.3f} |", flush=True)
    return found


def _walls_s(courses: Courses, way: str, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {OURS: [], THEIRS: []}
    for _ in range(rounds):
        for entrant, walls_s in found.items():
            walls_s.append(courses.copy(entrant, LARGE, MANY, up=way == "up").wall_s)
    shown = ", ".join(f"{entrant} {Spread(walls_s):.2f} s" for entrant, walls_s in found.items())
    print(f"\n{way}, {MANY} streams, {LARGE} GiB: {shown}", flush=True)
    return found


if __name__ == "__main__":
    parser = own_network_command(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    run(parser, measure, judge)
