"""Copies between two Globus servers that send to each other, beside the two-party copies over the same path.

    mpx lab simulate python bench/third_party.py

60 ms and 200 Mbit/s unless said. The file is at one end of the path and goes to the other: sent by mpx there
(up), fetched by mpx at the other end (down), and sent by one stock server to another (third party). The last
one is told to by mpx at the end of the source, which is a round trip of 60 ms away from the other server, and
at a third place that is 60 ms away from both.

Goal: between servers at least 0.9 of the goodput of the worse of both two-party copies.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import harness
from figures import Spread, Verdict
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.shape import Direction
from mpx_lab.stock_server import stock_server
from mpx_lab.topology import Topology, wan

RATE_BPS, RTT_S = 200_000_000, 0.060
LEAST = 0.9
UP, DOWN, BESIDE, FAR = "up", "down", "third party", "third party, from elsewhere"
TURNS = {"quick": 1, "full": 3}
# In simulated time files belong to root, whoever makes them, and several sessions are to open one.
AS_ROOT = ("-anonymous-user", "root", "-allow-root")
COPY = [sys.executable, "-m", "mpx", "copy", "-q"]


@dataclass(frozen=True)
class PathOfCopies:
    """A path, and how much goes over it."""

    size_bytes: int = 600_000_000
    loss: float = 0.0
    window_bytes: int | None = None


CASES: Mapping[str, PathOfCopies] = MappingProxyType(
    {
        "clean": PathOfCopies(),
        "clean, 100 MB": PathOfCopies(100_000_000),
        "windows of 64 KiB": PathOfCopies(window_bytes=65535),
        "0.1 % loss": PathOfCopies(loss=0.001),
    }
)


@dataclass(frozen=True)
class TimedCopy:
    """One copy: of which case, how, and its seconds from the start of mpx to its end."""

    case: str
    how: str
    took_s: float

    @property
    def goodput_bps(self) -> float:
        """What the whole program carried."""
        return CASES[self.case].size_bytes * 8 / self.took_s


class ThirdParty(harness.Row[Sequence[TimedCopy]]):
    """See the head of this file."""

    name = "third-party"
    folder = "reports/third-party"

    def results(self, options: argparse.Namespace) -> Sequence[TimedCopy]:
        """Copy in each way over every path, and print the table."""
        harness.require_root()
        found: list[TimedCopy] = []
        for case, conditions in CASES.items():
            for turn in range(TURNS[options.effort]):
                with tempfile.TemporaryDirectory() as folder:
                    found += _measure(case, conditions, Path(folder), f"third-party-{turn}")
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Sequence[TimedCopy]) -> Sequence[str]:
        """Mbit/s of the whole program, by case and way."""
        ways = (UP, DOWN, BESIDE, FAR)
        lines = [f"| path | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]
        for case in CASES:
            runs = [
                [run.goodput_bps / 1e6 for run in results if (run.case, run.how) == (case, way)]
                for way in ways
            ]
            lines.append(f"| {case} | {' | '.join(f'{Spread(each):.1f}' for each in runs)} |")
        return lines

    def measured(self, results: Sequence[TimedCopy]) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [asdict(run) for run in results]

    def draw(self, results: Sequence[TimedCopy], axes: Any) -> None:
        """Goodput by case and way."""
        axes.plot(
            [run.goodput_bps / 1e6 for run in results], [f"{run.case}, {run.how}" for run in results], "o"
        )
        axes.set_xlabel("Mbit/s")


def _measure(case: str, conditions: PathOfCopies, folder: Path, name: str) -> list[TimedCopy]:
    folder.chmod(0o755)
    served = folder / "served"
    served.mkdir()
    served.chmod(0o777)
    with (folder / "file").open("wb") as file:
        file.truncate(conditions.size_bytes)
    # Half of the round trip and of the queue is on each half of a path.
    links = tuple(
        wan(host, "middle", rate_bps=RATE_BPS, rtt_s=RTT_S / 2, bdp=2.0, name=f"{host}-middle")
        for host in ("desk", "src", "dst")
    )
    found: list[TimedCopy] = []
    with Lab.up(
        Topology("third-party", ("desk", "src"), ("dst",), switches=("middle",), links=links), name
    ) as lab:
        desk, source, destination = (lab.host(each) for each in ("desk", "src", "dst"))
        if conditions.loss:
            lab.link("src-middle").change(Direction.A_TO_B, loss=conditions.loss, seed=1)
        for host in (source, destination):
            host.set_route(congestion="cubic", window_bytes=conditions.window_bytes)
        with (
            stock_server(source, folder, AS_ROOT) as from_url,
            stock_server(destination, served, AS_ROOT) as to_url,
        ):
            there, here = f"{from_url}{folder}/file", f"{folder}/file"
            for how, host, names in (
                (UP, source, (here, f"{to_url}{served}/up")),
                (DOWN, destination, (there, f"{served}/down")),
                (BESIDE, source, (there, f"{to_url}{served}/beside")),
                (FAR, desk, (there, f"{to_url}{served}/far")),
            ):
                took_s = _timed(host, folder / how.replace(" ", "-"), names)
                found.append(TimedCopy(case, how, took_s))
                sys.stderr.write(f"{found[-1]}\n")
    return found


def _timed(host: LabHost, state: Path, names: tuple[str, str]) -> float:
    between = ["--third-party", "only"] if all("://" in name for name in names) else []
    began_s = time.monotonic()
    host.run(
        ["env", f"MPX_STATE_DIR={state}", *COPY, *between, *names],
        stdout=subprocess.DEVNULL,
        env=dict(os.environ),
        check=True,
    )
    return time.monotonic() - began_s


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached."""
    runs = [TimedCopy(**each) for each in stored]
    for case in CASES:
        medians = {
            how: Spread([run.goodput_bps for run in runs if (run.case, run.how) == (case, how)]).median
            for how in (UP, DOWN, BESIDE, FAR)
        }
        for how in (BESIDE, FAR):
            share = medians[how] / min(medians[UP], medians[DOWN])
            yield Verdict(f"{case}, {how}: at least {LEAST:g} of two-party", f"{share:.2f}", share >= LEAST)


if __name__ == "__main__":
    harness.run_row(ThirdParty(), judge)
