"""One object from and to S3 across a wide-area network: mpx beside rclone and the AWS command line.

    mpx lab simulate python bench/s3_wan.py [--cases clean ...] [--seeds 1 2 3] [--up-mib 1024]
                                                                   (needs root, weed, rclone and aws)

SeaweedFS across a link with a queue of one product of bandwidth and delay: 200 Mbit/s and 60 ms, clean and
with random losses, and 500 Mbit/s and 30 ms. Down what rclone has stored in parts, where the server's kernel
sends; up in parts, where ours does. Whole commands count, from start to end, and each object is compared.
Goals: nobody is faster, but for a tie (2 %).
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
import s3_tools
from figures import Spread, Verdict, machine
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.shape import Direction
from mpx_lab.topology import Topology, wan
from s3_tools import AWS, AWS_16, MPX, RCLONE, RCLONE_16

DOWN, UP = "down", "up"
TOOLS = (MPX, RCLONE_16, RCLONE, AWS_16, AWS)
TIE = 1.02


@dataclass(frozen=True)
class S3Path:
    """What a path is like."""

    loss: float = 0.0
    rate_bps: int = 200_000_000
    rtt_s: float = 0.060


CASES: Mapping[str, S3Path] = MappingProxyType(
    {
        "clean": S3Path(),
        "0.05 % loss": S3Path(loss=0.0005),
        "0.5 % loss": S3Path(loss=0.005),
        "500 Mbit/s, 30 ms": S3Path(rate_bps=500_000_000, rtt_s=0.030),
    }
)


@dataclass(frozen=True)
class S3Run:
    """One command and how long it took."""

    case: str
    way: str
    tool: str
    seed: int
    size_bytes: int
    took_s: float

    @property
    def goodput_bps(self) -> float:
        """What the whole command carried."""
        return self.size_bytes * 8 / self.took_s


class S3Wan(harness.Row[Sequence[S3Run]]):
    """See the head of this file."""

    name = "s3-wan"
    folder = "reports/s3-wan"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add which paths, directions, tools, seeds and sizes."""
        super().arguments(parser)
        parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
        parser.add_argument("--ways", nargs="+", choices=(DOWN, UP), default=[DOWN, UP])
        parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
        parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
        parser.add_argument("--down-mib", type=int, default=400)
        parser.add_argument("--up-mib", type=int, default=1024)

    def results(self, options: argparse.Namespace) -> Sequence[S3Run]:
        """Copy with each tool over each path, and print the table."""
        harness.require_root()
        print(machine())
        tools = s3_tools.installed(options.tools)
        sizes = {DOWN: options.down_mib << 20, UP: options.up_mib << 20}
        found: list[S3Run] = []
        for case in options.cases:
            for way in options.ways:
                for seed in options.seeds if CASES[case].loss else options.seeds[:1]:
                    with harness.work_folder("s3-wan", "/tmp", 0o755) as folder:
                        found += _measure(case, way, seed, sizes[way], tools, folder)
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Sequence[S3Run]) -> Sequence[str]:
        """Mbit/s of the whole command, by path and tool."""
        lines = [f"| path | way | MiB | {' | '.join(TOOLS)} |", "|---" * (len(TOOLS) + 3) + "|"]
        for case, way, size_bytes in dict.fromkeys((run.case, run.way, run.size_bytes) for run in results):
            row = []
            for tool in TOOLS:
                runs = [run.goodput_bps / 1e6 for run in results if _key(run) == (case, way, tool)]
                row.append(f"{Spread(runs):.1f}" if runs else "")
            lines.append(f"| {case} | {way} | {size_bytes >> 20} | {' | '.join(row)} |")
        return lines

    def measured(self, results: Sequence[S3Run]) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [asdict(run) for run in results]

    def draw(self, results: Sequence[S3Run], axes: Any) -> None:
        """Goodput by path, direction and tool."""
        axes.plot(
            [run.goodput_bps / 1e6 for run in results],
            [f"{run.case}, {run.way}: {run.tool}" for run in results],
            "o",
        )
        axes.set_xlabel("Mbit/s")


def _key(run: S3Run) -> tuple[str, str, str]:
    return run.case, run.way, run.tool


def _measure(
    case: str, way: str, seed: int, size_bytes: int, tools: Sequence[str], folder: Path
) -> list[S3Run]:
    source, got = folder / "source", folder / "got"
    with source.open("wb") as file:
        file.truncate(size_bytes)
    condition, found = CASES[case], []
    link = wan("far", "near", rate_bps=condition.rate_bps, rtt_s=condition.rtt_s, bdp=1.0, name="wan")
    topology = Topology("s3-wan", ("far",), ("near",), links=(link,))
    with Lab.up(topology, "s3-wan") as lab, s3_tools.seaweedfs(lab.host("far"), folder) as url:
        far, near = lab.host("far"), lab.host("near")
        for host in (far, near):
            host.set_route(congestion="cubic")
        if way == DOWN:
            _copy(far, RCLONE, str(source), ":source", url, folder)
        for number, tool in enumerate(tools):
            if condition.loss:
                direction = Direction.A_TO_B if way == DOWN else Direction.B_TO_A
                lab.link("wan").change(direction, loss=condition.loss, seed=seed)
            stored = f":got{number}"
            state = folder / f"state{number}"
            state.mkdir()
            ends = (":source", str(got)) if way == DOWN else (str(source), stored)
            took_s = _copy(near, tool, *ends, url, state)
            found.append(S3Run(case, way, tool, seed, size_bytes, took_s))
            sys.stderr.write(f"{found[-1]}\n")
            if way == UP:
                _copy(far, RCLONE, stored, str(got), url, folder)
            subprocess.run(["cmp", source, got], check=True)
            got.unlink()
    return found


def _copy(host: LabHost, tool: str, source: str, target: str, url: str, state: Path) -> float:
    """Copy one object; return how long that took, in seconds."""
    words, environment = s3_tools.file(tool, source, target, state), s3_tools.environment(url, state, tool)
    began_s = time.monotonic()
    host.run(words, stdout=subprocess.DEVNULL, env=environment, check=True)
    return time.monotonic() - began_s


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached: by medians."""
    runs = [S3Run(**each) for each in stored]
    for case, way in dict.fromkeys((run.case, run.way) for run in runs):
        here = [run for run in runs if (run.case, run.way) == (case, way)]
        medians = {
            tool: Spread([run.goodput_bps for run in here if run.tool == tool]).median
            for tool in dict.fromkeys(run.tool for run in here)
        }
        ours = medians.pop(MPX)
        if medians:
            share = ours / max(medians.values())
            yield Verdict(f"{case}, {way}: as fast as the best", f"{share:.3f}", share >= 1 / TIE)


if __name__ == "__main__":
    harness.run_row(S3Wan(), judge)
