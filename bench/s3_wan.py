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
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
import s3_tools
from figures import Verdict, machine
from mpx_lab.lab_host import LabHost
from s3_tools import AWS, AWS_16, MPX, RCLONE, RCLONE_16
from wan_runs import DOWN, TIE, UP, WanRow, WanRun, ends, lose, medians, wan_path

TOOLS = (MPX, RCLONE_16, RCLONE, AWS_16, AWS)


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


class S3Wan(WanRow):
    """See the head of this file."""

    name = "s3-wan"
    folder = "reports/s3-wan"
    cases, tools = CASES, TOOLS

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add sizes."""
        super().arguments(parser)
        parser.add_argument("--down-mib", type=int, default=400)
        parser.add_argument("--up-mib", type=int, default=1024)

    def results(self, options: argparse.Namespace) -> Sequence[WanRun]:
        """Copy with each tool over each path, and print the table."""
        harness.require_root()
        print(machine())
        tools = s3_tools.installed(options.tools)
        sizes = {DOWN: options.down_mib << 20, UP: options.up_mib << 20}
        found: list[WanRun] = []
        for case in options.cases:
            for way in options.ways:
                for seed in options.seeds if CASES[case].loss else options.seeds[:1]:
                    with harness.work_folder("s3-wan", "/tmp", 0o755) as folder:
                        found += _measure(case, way, seed, sizes[way], tools, folder)
        print("\n".join(self.table(found)))
        return found


def _measure(
    case: str, way: str, seed: int, size_bytes: int, tools: Sequence[str], folder: Path
) -> list[WanRun]:
    source, got = folder / "source", folder / "got"
    with source.open("wb") as file:
        file.truncate(size_bytes)
    condition, found = CASES[case], []
    with (
        wan_path("s3-wan", condition.rate_bps, condition.rtt_s) as lab,
        s3_tools.seaweedfs(lab.host("far"), folder) as url,
    ):
        far, near = ends(lab)
        if way == DOWN:
            _copy(far, RCLONE, str(source), ":source", url, folder)
        for number, tool in enumerate(tools):
            lose(lab, way, condition.loss, seed)
            stored = f":got{number}"
            state = folder / f"state{number}"
            state.mkdir()
            places = (":source", str(got)) if way == DOWN else (str(source), stored)
            took_s = _copy(near, tool, *places, url, state)
            found.append(WanRun(case, way, tool, seed, size_bytes, took_s))
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
    for (case, way), median in medians(stored).items():
        ours = median.pop(MPX)
        if median:
            share = ours / max(median.values())
            yield Verdict(f"{case}, {way}: as fast as the best", f"{share:.3f}", share >= 1 / TIE)


if __name__ == "__main__":
    harness.run_row(S3Wan(), judge)
