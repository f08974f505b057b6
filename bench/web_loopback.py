"""One file from nginx over loopback inside TLS: wall and processor time of mpx beside aria2.

    nice -n -15 .venv/3.11/bin/python bench/web_loopback.py [--pairs 7]

Needs nginx and aria2c; root: runs in a network namespace of its own, with `--congestion` on all of loopback.
1 GiB, 4 streams, tmpfs, both ends on this machine, pairs in turning order; one before them warms the caches.
Whole commands count, from start to end, and each file is compared with its source. Both tools check the
certificate of the server; mpx syncs what it has brought, which costs nothing on tmpfs.
Goals, of the medians over pairs of mpx / aria2: wall time at most 1, processor time at most 1.5.
"""

import argparse
import os
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
from figures import Spread, Verdict
from race_loopback import GIB, add_own_network, in_own_network, make
from web.servers.nginx import nginx_site

MPX, ARIA2 = "mpx", "aria2c"
STREAMS = 4
GOALS = MappingProxyType({"wall_s": 1.0, "cpu_s": 1.5})
NAMES = MappingProxyType({"wall_s": "wall time", "cpu_s": "processor time of the client"})


@dataclass(frozen=True)
class CostOfFetch:
    """One command: seconds from start to end, and of its processor time."""

    tool: str
    wall_s: float
    cpu_s: float


class WebLoopback(harness.Row[Sequence[CostOfFetch]]):
    """See the head of this file."""

    name = "web-loopback"
    folder = "reports/web-loopback"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add how many pairs there are, and in which network."""
        super().arguments(parser)
        parser.add_argument("--pairs", type=int, default=7)
        add_own_network(parser)

    def results(self, options: argparse.Namespace) -> Sequence[CostOfFetch]:
        """Fetch with both in turn, and print the table."""
        in_own_network(options)
        found: list[CostOfFetch] = []
        with harness.work_folder("web-loopback") as folder:
            served, target = folder / "served", folder / "target"
            served.mkdir()
            make(served / "file", GIB)
            with nginx_site(served, tls=True, dav=False) as site:
                # aria2c finds no localhost where no other network is.
                url = f"https://127.0.0.1:{site.port}/file"
                tools = _tools(url, str(site.ca), target)
                for pair in range(options.pairs + 1):
                    order = list(tools.items())
                    for tool, words in order if pair % 2 else reversed(order):
                        run = _run(tool, words, folder)
                        subprocess.run(["cmp", served / "file", target], check=True)
                        target.unlink()
                        found += [run] if pair else []
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Sequence[CostOfFetch]) -> Sequence[str]:
        """Seconds of each, and their ratios."""
        lines = ["| | wall, s | processor, s |", "|---|---|---|"]
        for tool in (MPX, ARIA2):
            ran = [run for run in results if run.tool == tool]
            lines.append(f"| {tool} | {Spread([r.wall_s for r in ran])} | {Spread([r.cpu_s for r in ran])} |")
        ratios = " | ".join(str(_ratios(results, key)) for key in GOALS)
        return [*lines, f"| {MPX} / {ARIA2} | {ratios} |"]

    def measured(self, results: Sequence[CostOfFetch]) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [asdict(run) for run in results]

    def draw(self, results: Sequence[CostOfFetch], axes: Any) -> None:
        """A dot for each run."""
        for key, name in NAMES.items():
            axes.plot([getattr(run, key) for run in results], [run.tool for run in results], "o", label=name)
        axes.set_xlabel("seconds")
        axes.legend()


def _tools(url: str, ca: str, target: Path) -> Mapping[str, Sequence[str]]:
    place = ("-d", str(target.parent), "-o", target.name)
    several = (f"-x{STREAMS}", f"-s{STREAMS}", "-k1M")
    mpx = str(Path(sys.executable).with_name("mpx"))
    return {
        MPX: [mpx, "copy", "-q", "--streams", str(STREAMS), "--ca", ca, url, str(target)],
        ARIA2: ["aria2c", "-q", *several, "--file-allocation=none", f"--ca-certificate={ca}", *place, url],
    }


def _run(tool: str, words: Sequence[str], folder: Path) -> CostOfFetch:
    environment = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    environment["MPX_STATE_DIR"] = str(folder / "state")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is compiled is kept, as it is for users
    began_s = time.perf_counter()
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{tool} failed: exit code {process.returncode}")
    return CostOfFetch(tool, wall_s, used.ru_utime + used.ru_stime)


def _ratios(runs: Iterable[CostOfFetch], key: str) -> Spread:
    """Return mpx / aria2, pair by pair."""
    by_tool: dict[str, list[float]] = {MPX: [], ARIA2: []}
    for run in runs:
        by_tool[run.tool].append(getattr(run, key))
    return Spread([ours / theirs for ours, theirs in zip(by_tool[MPX], by_tool[ARIA2], strict=True)])


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Hold the medians of the ratios against the goals."""
    runs = [CostOfFetch(**each) for each in stored]
    for key, goal in GOALS.items():
        ratio = _ratios(runs, key)
        yield Verdict(f"{NAMES[key]}: at most {goal:g} times {ARIA2}", str(ratio), ratio.median <= goal)


if __name__ == "__main__":
    harness.run_row(WebLoopback(), judge)
