"""Many small files to and from S3 across a wide-area network: mpx beside rclone.

    mpx lab simulate python bench/s3_small.py [--files 10000] [--tools ...]   (needs root, weed and rclone)

Files of 10 kB from and to SeaweedFS, 200 Mbit/s and 60 ms; rclone with its defaults (4 transfers) and with
32. Whole commands count, from start to end, and trees are compared.
Goals: at least 2 times as fast as rclone with its defaults, and no slower than with 32.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
import s3_tools
import web_small
from figures import Verdict, machine
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.topology import Topology, wan
from s3_tools import RCLONE_32
from web_small import DOWN, RUNS, UP, SmallResults

RATE_BPS, RTT_S = 200_000_000, 0.060


class S3Small(web_small.WebSmall):
    """See the head of this file."""

    name = "s3-small"
    folder = "reports/s3-small"

    def results(self, options: argparse.Namespace) -> SmallResults:
        """Copy with each tool in both directions, and print the table."""
        harness.require_root()
        print(machine())
        tools = s3_tools.installed(options.tools)
        found: dict[tuple[str, str], list[float]] = {}
        link = wan("far", "near", rate_bps=RATE_BPS, rtt_s=RTT_S, name="wan")
        topology = Topology("s3-small", ("far",), ("near",), links=(link,))
        with harness.work_folder("s3-small", "/tmp", 0o755) as folder, Lab.up(topology, "s3-small") as lab:
            source = folder / "source"
            web_small.fill(source, options.files)
            with s3_tools.seaweedfs(lab.host("far"), folder) as url:
                if DOWN in options.ways:
                    _there(lab.host("far"), url, folder, str(source), ":source")
                for number in range(RUNS[options.effort]):
                    for tool in tools:
                        for way in options.ways:
                            took_s = _timed(lab, url, folder, source, way, tool, number)
                            found.setdefault((tool, way), []).append(took_s)
                            sys.stderr.write(f"{tool}, {way}: {took_s:.2f} s\n")
        print("\n".join(self.table(found)))
        return found


def _timed(lab: Lab, url: str, folder: Path, source: Path, way: str, tool: str, number: int) -> float:
    """Copy the tree, compare it, and return how long that took; none meets what another one has stored."""
    target, stored = folder / "target", f":{tool.replace(' ', '')}{number}"
    ends = (":source", str(target)) if way == DOWN else (str(source), stored)
    state = folder / "state"
    state.mkdir()
    words, environment = s3_tools.tree(tool, *ends, state), s3_tools.environment(url, state, tool)
    began_s = time.monotonic()
    lab.host("near").run(words, stdout=subprocess.DEVNULL, env=environment, check=True)
    took_s = time.monotonic() - began_s
    if way == UP:
        _there(lab.host("far"), url, folder, stored, str(target))
    subprocess.run(["diff", "-r", source, target], check=True)
    shutil.rmtree(target)
    shutil.rmtree(state)
    return took_s


def _there(far: LabHost, url: str, folder: Path, *ends: str) -> None:
    """Copy a tree on the server's host, where it takes no time."""
    words = s3_tools.tree(RCLONE_32, *ends, folder)
    far.run(words, env=s3_tools.environment(url, folder), check=True)


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached: by medians."""
    return web_small.judge(stored)


if __name__ == "__main__":
    harness.run_row(S3Small(), judge)
