"""Goodput of a copy over several paths, as a share of the maximum flow: `mpx copy --controller`, up.

    sudo .venv/3.11/bin/mpx lab simulate .venv/3.11/bin/python bench/controller_copy.py [--effort quick|full]
    sudo .venv/3.11/bin/python bench/controller_copy.py [--effort quick|full] [--scale 0.2]     # in real time

What the network could carry is the maximum flow between the two hosts, less what headers take of full frames.
*Steady* is the middle half of the copy, *whole* the file's size over the time that the command takes from its
start to its end: asking the controller, login and verifying are in it. Exits 1 if in the median of the runs
less than 98 % (thesis-a), 97 % (switched-uneven) or 90 % (thesis-b) of that is carried when it is steady, or
less than 90 % by the whole copy. In real time this machine's processors carry every frame several times: the
last column says how late the links were. Of a run that does not count (docs/lab-format.md) no verdict is
made, and the bench fails.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import Spread, Verdict, machine
from harness import command, run
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.own_controller import OWN
from mpx_lab.record import Run
from mpx_lab.simulated import is_simulated
from mpx_lab.topologies import named
from multipath_copy import copying

PAYLOAD_SHARE = 1448 / 1514
SIZES = {"quick": 200_000_000, "full": 1_000_000_000}
RUNS = {"quick": 1, "full": 5}
STEADY = {"thesis-a": 0.98, "switched-uneven": 0.97, "thesis-b": 0.90}
MAX_FLOW_BPS = {"thesis-a": 400e6, "switched-uneven": 150e6, "thesis-b": 200e6}
WHOLE = 0.90


@dataclass(frozen=True)
class Copied:
    """One copy: its shares of what the maximum flow allows, how late links were, why it does not count."""

    steady: float
    whole: float
    paths: int
    late_s: float
    reasons: Sequence[str]


def measure(options: argparse.Namespace) -> dict[str, list[Copied]]:
    """Copy over each network and print a table."""
    effort, scale = options.effort, options.scale
    print(machine())
    print(f"\n{'network':<18} {'paths':>5}  {'steady':<24} {'whole':<24} late, P99 ms")
    measured: dict[str, list[Copied]] = {}
    times = 1 if is_simulated() else RUNS[effort]  # where all runs would be the same
    for network in STEADY:
        runs = measured[network] = [
            copied(network, scale, round(SIZES[effort] * scale)) for _ in range(times)
        ]
        steady, whole = Spread([run.steady for run in runs]), Spread([run.whole for run in runs])
        late = max(run.late_s for run in runs) * 1e3
        line = f"{network:<18} {runs[0].paths:>5}  {f'{steady:.3f}':<24} {f'{whole:.3f}':<24} {late:.1f}"
        print(line, flush=True)
    return measured


def judge(measured: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[Verdict]:
    """Hold both shares against what they should be on each network, in the median of the runs."""
    for network, runs in measured.items():
        reasons = [reason for run in runs for reason in run["reasons"]]
        yield Verdict(f"{network}: every run counts", "; ".join(reasons) or f"{len(runs)} runs", not reasons)
        if reasons:
            continue
        for key, name, least in (
            ("steady", "steady", STEADY[network]),
            ("whole", "the whole copy", WHOLE),
        ):
            found = Spread([run[key] for run in runs])
            limit = f"{network}, {name}: at least {least:.0%} of what max-flow allows"
            yield Verdict(limit, f"{found:.1%}", found.median >= least)


def copied(network: str, scale: float, size_bytes: int) -> Copied:
    """Build the network, copy a file over it, and return what came of it; raises RuntimeError."""
    with (
        tempfile.TemporaryDirectory(prefix="mpx-bench-") as name,
        Lab.up(named(network), "bench-copy", scale=scale, controller=OWN) as lab,
    ):
        folder = Path(name)
        (folder / "served").mkdir()
        with (folder / "file").open("wb") as file:
            block = os.urandom(1 << 20)
            for _ in range(size_bytes >> 20):
                file.write(block)
        size_bytes = (folder / "file").stat().st_size
        sink = lab.host(lab.topology.sinks[0])
        with mpx_server(sink, folder / "served", ["--congestion", "cubic"]) as url:
            run = Run(folder / "run", network, {}, routes=lab.routes(), scale=scale)
            with run, judged(lab, run):
                began_s = time.monotonic()
                process = copying(lab, folder, [str(folder / "file"), f"{url}/file"])
                told = process.communicate()[1].decode()
                took_s = time.monotonic() - began_s
        if process.returncode:
            raise RuntimeError(told)
        rows = progress(told)
        report = json.loads((folder / "report.json").read_text())
        late = [
            max(each.late.quantile_s(0.99) for each in (stats.a_to_b, stats.b_to_a))
            for link in lab.topology.links
            if lab.topology.emulated(link)
            for stats in [lab.link(link.name).stats()]
        ]
    allowed_bps = MAX_FLOW_BPS[network] * scale * PAYLOAD_SHARE
    return Copied(
        steady_bps(rows, size_bytes) / allowed_bps,
        size_bytes * 8 / took_s / allowed_bps,
        len(report["decisions"]["paths"]),
        max(late),
        run.validity.reasons if run.validity else ["it was not judged"],
    )


def progress(told: str) -> list[tuple[float, int]]:
    """Return when how many bytes had arrived, from what `--progress json` has printed."""
    rows = []
    for line in told.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            rows.append((float(row["elapsed_s"]), int(row["bytes_done"])))
    return rows


def steady_bps(rows: list[tuple[float, int]], size_bytes: int) -> float:
    """Return the goodput of the middle half."""
    middle = [row for row in rows if size_bytes / 4 <= row[1] <= 3 * size_bytes / 4]
    (since_s, before), (until_s, after) = middle[0], middle[-1]
    return (after - before) * 8 / (until_s - since_s)


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--effort", choices=("quick", "full"), default="quick")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all rates, and of the file")
    run(parser, measure, judge)
