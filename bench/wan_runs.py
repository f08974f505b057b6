"""Whole commands across a wide-area path: what web_wan, s3_wan and root_wan have in common."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import harness
from figures import Spread
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.shape import Direction
from mpx_lab.topology import Topology, wan

DOWN, UP = "down", "up"
TIE = 1.02


@dataclass(frozen=True)
class WanRun:
    """One command and how long it took."""

    case: str
    way: str
    tool: str
    seed: int
    size_bytes: int
    took_s: float
    server: str = ""

    @property
    def goodput_bps(self) -> float:
        """What the whole command carried."""
        return self.size_bytes * 8 / self.took_s


class WanRow(harness.Row[Sequence[WanRun]]):
    """A row of such runs: `cases` by their names, `tools` in the order of the columns."""

    cases: Mapping[str, object]
    tools: Sequence[str]

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add which paths, directions, tools and seeds."""
        super().arguments(parser)
        parser.add_argument("--cases", nargs="+", choices=self.cases, default=list(self.cases))
        parser.add_argument("--ways", nargs="+", choices=(DOWN, UP), default=[DOWN, UP])
        parser.add_argument("--tools", nargs="+", choices=self.tools, default=list(self.tools))
        parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])

    def table(self, results: Sequence[WanRun]) -> Sequence[str]:
        """Mbit/s of the whole command, by path and tool."""
        lines = [f"| path | way | MB | {' | '.join(self.tools)} |", "|---" * (len(self.tools) + 3) + "|"]
        for case, way, size_bytes in dict.fromkeys((run.case, run.way, run.size_bytes) for run in results):
            row = []
            for tool in self.tools:
                alike = [run for run in results if (run.case, run.way, run.tool) == (case, way, tool)]
                row.append(f"{Spread([run.goodput_bps / 1e6 for run in alike]):.1f}" if alike else "")
            lines.append(f"| {case} | {way} | {size_bytes / 1e6:.0f} | {' | '.join(row)} |")
        return lines

    def measured(self, results: Sequence[WanRun]) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [asdict(run) for run in results]

    def draw(self, results: Sequence[WanRun], axes: Any) -> None:
        """Goodput by path, direction and tool."""
        axes.plot(
            [run.goodput_bps / 1e6 for run in results],
            [f"{run.case}, {run.way}: {run.tool}" for run in results],
            "o",
        )
        axes.set_xlabel("Mbit/s")


def medians(stored: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, float]]:
    """Return the median goodput (bit/s) of each tool, by path and direction, of what `measured` returned."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in (WanRun(**each) for each in stored):
        found.setdefault((run.case, run.way), {}).setdefault(run.tool, []).append(run.goodput_bps)
    return {
        key: {tool: Spread(values).median for tool, values in by_tool.items()}
        for key, by_tool in found.items()
    }


@contextmanager
def wan_path(name: str, rate_bps: int, rtt_s: float) -> Iterator[Lab]:
    """A lab of two hosts, `far` and `near`, that send with CUBIC; the queue is one BDP."""
    link = wan("far", "near", rate_bps=rate_bps, rtt_s=rtt_s, bdp=1.0, name="wan")
    with Lab.up(Topology(name, ("far",), ("near",), links=(link,)), name) as lab:
        for host in ends(lab):
            host.set_route(congestion="cubic")
        yield lab


def ends(lab: Lab) -> tuple[LabHost, LabHost]:
    """Return the host with the server, and the one with the client."""
    return lab.host("far"), lab.host("near")


def lose(lab: Lab, way: str, loss: float, seed: int) -> None:
    """Have frames of data be lost at random from now on, where `loss` is not 0: the same with each seed."""
    if loss:
        lab.link("wan").change(Direction.A_TO_B if way == DOWN else Direction.B_TO_A, loss=loss, seed=seed)
