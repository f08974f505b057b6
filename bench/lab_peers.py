"""Goodput of today's tools over the lab's standard links, and what they leave to other traffic.

Twenty seconds from the start of the program, cold, as a user meets them: mpx and globus-url-copy up and down,
curl and aria2 down, from and to a stock GridFTP server. Windows as the kernel tunes them, CUBIC by route. A
neighbour has filled the link before the tool is started. What it should show, in the median of the runs: mpx
has at least 0.97 of the best of the others on each link, each way.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.row import Results, ToolRow, by_link_and_tool, repeated
from apt.store import Result
from apt.tools import DOWN
from figures import Spread, Verdict, median
from harness import run_row
from mpx_lab.series import goodput_bps

OVER_S = 20.0  # from the start of the program
SECONDS = 21.5  # with the ending, which is not looked at
OF_THE_BEST = 0.97  # of the others: so much is as good
CLEAN = Link(rtt_s=0.060, queue_packets=1000, window_bytes=None)
LINKS = {
    "clean": CLEAN,
    "beside CUBIC": Link(rtt_s=0.060, queue_packets=1000, window_bytes=None, beside="tcp(congestion=cubic)"),
    "beside BBR": Link(rtt_s=0.060, queue_packets=1000, window_bytes=None, beside="tcp(congestion=bbr)"),
    "loss 0.05 %": Link(rtt_s=0.060, queue_packets=1000, window_bytes=None, loss=0.0005),
    "300 Mbit/s, 20 ms": Link(300_000_000, rtt_s=0.020, queue_packets=250, window_bytes=None),
}
UP = ("auto", "guc", "guc-p4", "guc-p16")
TOOLS = (*UP, *(f"{name}{DOWN}" for name in ("auto", "guc", "guc-p4", "curl", "aria2")))
REPETITIONS = {"quick": 3, "full": 5}


class Peers(ToolRow):
    """See the head of this file."""

    name = "peers"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Every tool on every link."""
        return repeated(
            lambda turn: [Cell(link, tool, SECONDS, turn) for link in LINKS.values() for tool in TOOLS],
            REPETITIONS[effort],
        )

    def table(self, results: Results) -> Sequence[str]:
        """Goodput, and what a neighbour kept of what it could have."""
        lines = [f"| Mbit/s | {' | '.join(LINKS)} |", f"|---|{'---|' * len(LINKS)}"]
        for tool in TOOLS:
            cells = [_described(results.get((link, tool), ())) for link in LINKS.values()]
            lines.append(f"| {tool} | {' | '.join(cells)} |")
        return lines

    def read(self, run: Result) -> Any:
        """Goodput from the start of the program."""
        return {"bps": _goodput_bps(run)}

    def draw(self, results: Results, axes: Any) -> None:
        """Medians, a group of bars for each link."""
        width = 0.9 / len(TOOLS)
        for i, tool in enumerate(TOOLS):
            bars = [_median(results[link, tool]) / 1e6 for link in LINKS.values()]
            axes.bar([x + i * width for x in range(len(LINKS))], bars, width, label=tool)
        axes.set(ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.set_xticks([x + 0.45 for x in range(len(LINKS))], list(LINKS))
        axes.legend(fontsize="small", ncols=3)


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Hold ours against the best of the others on every link, each way."""
    found = by_link_and_tool(stored)
    for name, link in LINKS.items():
        for way, ours in ((UP, "auto"), (TOOLS[len(UP) :], f"auto{DOWN}")):
            bps = {tool: median(found[link, tool], "bps") for tool in way}
            mine = bps.pop(ours)
            best = max(bps, key=bps.__getitem__)
            limit = f"{name}, {ours}: at least {OF_THE_BEST:.0%} of the best of the others"
            told = f"{mine / bps[best]:.1%} ({mine / 1e6:.1f} Mbit/s) of {best}"
            yield Verdict(limit, told, mine >= OF_THE_BEST * bps[best])


def _started_s(run: Result) -> float:
    """Return when the program was started, in the run's time."""
    started_s = run.transfers[0].started_s
    assert started_s is not None
    return started_s


def _goodput_bps(run: Result) -> float:
    """Return the goodput over the time from the start of the program, in which nothing came at first."""
    from_s = _started_s(run) - run.transfers[0].began_s
    return run.goodput.mean_bps(from_s, from_s + OVER_S)


def _median(runs: Sequence[Result]) -> float:
    return statistics.median(map(_goodput_bps, runs))


def _described(runs: Sequence[Result]) -> str:
    if not runs:
        return "-"
    goodput = f"{Spread([_goodput_bps(run) for run in runs]).times(1e-6):.1f}"
    if "beside" not in runs[0].run.flows():
        return goodput
    left = statistics.median(_beside_bps(run) for run in runs)
    return f"{goodput}; neighbour {left / 1e6:.1f}"


def _beside_bps(run: Result) -> float:
    """Return what the neighbour had meanwhile."""
    from_s = _started_s(run)
    return goodput_bps(run.run.goodput("beside"), from_s, from_s + OVER_S)


if __name__ == "__main__":
    run_row(Peers(), judge)
