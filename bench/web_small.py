"""Many small files over WebDAV across a wide-area network: mpx beside rclone.

    mpx lab simulate python bench/web_small.py [--files 10000] [--tools ...]    (needs root, nginx and rclone)

Files of 10 kB from and to nginx, 200 Mbit/s and 60 ms; rclone with its defaults (4 transfers) and with
32. Whole commands count, from start to end, and trees are compared.
Goals: at least 2 times as fast as rclone with its defaults, and no slower than with 32.
"""

import argparse
import os
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
import web_tools
from figures import Spread, Verdict, machine
from mpx_lab.lab import Lab
from mpx_lab.topology import Topology, wan
from web_tools import MPX, RCLONE, RCLONE_32

RATE_BPS, RTT_S = 200_000_000, 0.060
FILE_BYTES, IN_A_FOLDER = 10_000, 500
DOWN, UP = "down", "up"
TOOLS = (MPX, RCLONE, RCLONE_32)
MUCH = 2.0
RUNS = {"quick": 1, "full": 3}

SmallResults = Mapping[tuple[str, str], Sequence[float]]  # seconds, by tool and direction


class WebSmall(harness.Row[SmallResults]):
    """See the head of this file."""

    name = "web-small"
    folder = "reports/web-small"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add how many files there are, which tools run and which way, as each takes long."""
        super().arguments(parser)
        parser.add_argument("--files", type=int, default=10_000)
        parser.add_argument("--ways", nargs="+", choices=(DOWN, UP), default=[DOWN, UP])
        parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))

    def results(self, options: argparse.Namespace) -> SmallResults:
        """Copy with each tool in both directions, and print the table."""
        harness.require_root()
        print(machine())
        found: dict[tuple[str, str], list[float]] = {}
        link = wan("far", "near", rate_bps=RATE_BPS, rtt_s=RTT_S, name="wan")
        topology = Topology("web-small", ("far",), ("near",), links=(link,))
        with harness.work_folder("web-small", "/tmp", 0o755) as folder, Lab.up(topology, "web-small") as lab:
            served, source = folder / "served", folder / "source"
            served.mkdir()
            fill(source, options.files)
            shutil.copytree(source, served / "source")
            with web_tools.nginx(lab.host("far"), folder, served) as url:
                for _ in range(RUNS[options.effort]):
                    for tool in options.tools:
                        for way in options.ways:
                            target = (folder if way == DOWN else served) / "target"
                            ends = (":source", str(target)) if way == DOWN else (str(source), ":target")
                            state = folder / "state"
                            state.mkdir()
                            words = web_tools.tree(tool, url, ends, state)
                            began_s = time.monotonic()
                            lab.host("near").run(
                                words, stdout=subprocess.DEVNULL, env=web_tools.environment(), check=True
                            )
                            found.setdefault((tool, way), []).append(time.monotonic() - began_s)
                            subprocess.run(["diff", "-r", source, target], check=True)
                            shutil.rmtree(target)
                            shutil.rmtree(state)
                            sys.stderr.write(f"{tool}, {way}: {found[tool, way][-1]:.2f} s\n")
        print("\n".join(self.table(found)))
        return found

    def table(self, results: SmallResults) -> Sequence[str]:
        """Each tool, in seconds."""
        lines = ["| tool | direction | s |", "|---|---|---|"]
        return lines + [f"| {' | '.join(case)} | {Spread(took_s):.2f} |" for case, took_s in results.items()]

    def measured(self, results: SmallResults) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [
            {"tool": tool, "direction": way, "seconds": list(took_s)}
            for (tool, way), took_s in results.items()
        ]

    def draw(self, results: SmallResults, axes: Any) -> None:
        """A bar for each tool and direction."""
        axes.barh([", ".join(case) for case in results], [Spread(each).median for each in results.values()])
        axes.set_xlabel("seconds")


def fill(folder: Path, files: int) -> None:
    """Make a tree of so many files."""
    for number in range(files):
        file = folder / f"d{number // IN_A_FOLDER:03}" / f"f{number:06}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(FILE_BYTES))


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say which goals are reached: by medians."""
    medians = {(each["tool"], each["direction"]): Spread(each["seconds"]).median for each in stored}
    for way in (DOWN, UP):
        for rival, least in ((RCLONE, MUCH), (RCLONE_32, 1.0)):
            if (rival, way) not in medians:
                continue  # not installed, or not asked for
            ratio = medians[rival, way] / medians[MPX, way]
            yield Verdict(f"{way}: at least {least:g} of {rival}", f"{ratio:.2f}", ratio >= least)


if __name__ == "__main__":
    harness.run_row(WebSmall(), judge)
