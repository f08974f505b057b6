"""One file of 1 MB up and down over 60 ms: how many round trips the whole program takes, and its rival's.

    mpx lab simulate python bench/small_copy.py

In simulated time a processor takes none, so only round trips and the rate count. mpx copies from and to a
server that it meets for the first time, and once more. Goals: with each server an upload takes 10 round trips
at most and a download 8, and neither more than globus-url-copy.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import harness
from figures import Spread, Verdict
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.mpx_server import mpx_server
from mpx_lab.stock_server import stock_server
from mpx_lab.topology import Topology, wan

SIZE_BYTES, RATE_BPS, RTT_S = 1_000_000, 200_000_000, 0.060
RUNS = {"quick": 1, "full": 3}
STOCK, OURS = "Globus server", "mpx serve"
MPX, AGAIN, GLOBUS = "mpx copy", "mpx copy, known server", "globus-url-copy"
COPY = [sys.executable, "-m", "mpx", "copy", "-q"]
COMMANDS = {MPX: COPY, AGAIN: COPY, GLOBUS: ["globus-url-copy"]}
MOST = {"up": 10.0, "down": 8.0}  # round trips

Results = Mapping[tuple[str, str, str], Sequence[float]]  # round trips, by tool, server and direction


class SmallCopy(harness.Row[Results]):
    """See the head of this file."""

    name = "small-copy"
    folder = "reports/small-copy"

    def results(self, options: argparse.Namespace) -> Results:
        """Copy with each tool in both directions, and print the table."""
        harness.require_root()
        found: dict[tuple[str, str, str], list[float]] = {}
        for turn in range(RUNS[options.effort]):
            with tempfile.TemporaryDirectory() as folder:
                for case, took_s in _copies(Path(folder), f"small-copy-{turn}"):
                    found.setdefault(case, []).append(took_s / RTT_S)
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Results) -> Sequence[str]:
        """Each copy, in round trips."""
        lines = ["| tool | server | direction | round trips |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(case)} | {Spread(trips):.1f} |" for case, trips in results.items()]
        return lines

    def measured(self, results: Results) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [
            {"tool": tool, "server": server, "direction": direction, "round_trips": list(trips)}
            for (tool, server, direction), trips in results.items()
        ]

    def draw(self, results: Results, axes: Any) -> None:
        """A bar for each copy."""
        names = [", ".join(case) for case in results]
        axes.barh(names, [Spread(trips).median for trips in results.values()])
        axes.set_xlabel("round trips")


def _copies(folder: Path, name: str) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Yield which copy it was, and how long it took, in seconds."""
    folder.chmod(0o755)
    served, here = folder / "served", folder / "here"
    for each in (served, here):
        each.mkdir()
        each.chmod(0o777)
        (each / "file").write_bytes(os.urandom(SIZE_BYTES))
        (each / "file").chmod(0o644)
    link = wan("src", "dst", rate_bps=RATE_BPS, rtt_s=RTT_S, bdp=1.0)
    with Lab.up(Topology("small-copy", ("src",), ("dst",), links=(link,)), name) as lab:
        client, host = lab.host("src"), lab.host("dst")
        with stock_server(host, served) as url:
            for tool in (MPX, AGAIN, GLOBUS):
                yield from _both(client, STOCK, tool, here, f"{url}{served}")
        with mpx_server(host, served) as url:
            for tool in (MPX, AGAIN):
                yield from _both(client, OURS, tool, here, url)


def _both(
    client: LabHost, server: str, tool: str, here: Path, url: str
) -> Iterator[tuple[tuple[str, str, str], float]]:
    new = re.sub("[ ,]+", "-", f"{tool}-{server}")
    known = here.parent / "known"
    for direction, source, target in (
        ("up", f"file://{here}/file", f"{url}/{new}"),
        ("down", f"{url}/file", f"file://{here}/{new}"),
    ):
        state = known if tool == AGAIN else here.parent / f"{new}-{direction}"
        command = ["env", f"MPX_STATE_DIR={state}", *COMMANDS[tool]]
        if tool == AGAIN:
            client.run([*command, source, f"{target}-first"], stdout=subprocess.DEVNULL, check=True)
        began_s = time.monotonic()
        client.run([*command, source, target], stdout=subprocess.DEVNULL, check=True)
        yield (tool, server, direction), time.monotonic() - began_s


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached."""
    trips = {
        (each["tool"], each["server"], each["direction"]): Spread(each["round_trips"]).median
        for each in stored
    }
    for (tool, server, direction), median in trips.items():
        if tool != GLOBUS:
            limit = f"{tool}, {direction}, {server}: at most {MOST[direction]:g} round trips"
            yield Verdict(limit, f"{median:.1f}", median <= MOST[direction])
    for direction in MOST:
        ours, other = trips[MPX, STOCK, direction], trips[GLOBUS, STOCK, direction]
        yield Verdict(
            f"{direction}, {STOCK}: no more than {GLOBUS}", f"{ours:.1f}, {other:.1f}", ours <= other
        )


if __name__ == "__main__":
    harness.run_row(SmallCopy(), judge)
