"""OPS-F29: one stream of mpx for three minutes beside one CUBIC or one BBR stream: fixed and adaptive.

Adaptive are a copy that watches while it sends, and OPS' own loop: it probes for 10 s, classifies by nearest
neighbours, chooses, and then sends (and goes on watching).

What the row should show: beside CUBIC an adaptive copy ends with CUBIC in each run, and beside BBR with BBR.
In both it has at least 95 % of what the fixed copy with that choice had, and Jain's index is at least 0.95
in the median run; beside BBR it has at least three times what CUBIC got, and beside CUBIC it is fairer than
BBR. All of that is after the first minute. Beside CUBIC, where it is right from the start, watching costs at
most 2 % of the whole run.

100 Mbit/s, 128 ms, a queue of 0.75 of the product of bandwidth and delay.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell
from apt.row import Results, ToolRow, by_link_and_tool
from apt.store import Result
from figures import Spread, Verdict, median
from harness import run_row
from neighbours import fairness, mbps, neighbours_bps, read, tool_bps, wan

SECONDS = {"quick": 180.0, "full": 600.0}
TURNS = {"quick": 3, "full": 5}
NOTICED_S = 60.0
BESIDE = {name: wan(100_000_000, 0.128, 0.75, f"tcp(congestion={name})") for name in ("cubic", "bbr")}
WATCHING, LOOP = "mpx-fair-1", "mpx-ops-1"
ADAPTIVE = (WATCHING, LOOP)
FIXED = {"cubic": "mpx-cubic-1", "bbr": "mpx-bbr-1"}
NEAR, FAIR, TIMES, COST = 0.95, 0.95, 3.0, 0.98


class F29(ToolRow):
    """See the head of this file."""

    name = "ops-f29"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Each choice beside each neighbour."""
        return [
            Cell(link, tool, SECONDS[effort], turn)
            for turn in range(1, TURNS[effort] + 1)
            for link in BESIDE.values()
            for tool in (*FIXED.values(), *ADAPTIVE)
        ]

    def table(self, results: Results) -> Sequence[str]:
        """Goodput of both, and how fair it was."""
        lines = [
            "| beside | mpx | Mbit/s after the first minute | the neighbour | Jain | whole run, Mbit/s |",
            "|---|---|---|---|---|---|",
        ]
        for (link, tool), runs in results.items():
            end_s = min(run.goodput.end_s for run in runs)
            cells = [
                link.beside,
                tool,
                mbps(runs, lambda run, end_s=end_s: tool_bps(run, NOTICED_S, end_s)),
                mbps(runs, lambda run, end_s=end_s: neighbours_bps(run, NOTICED_S, end_s)[0]),
                f"{Spread([fairness(run, NOTICED_S, end_s) for run in runs]):.3f}",
                mbps(runs, lambda run, end_s=end_s: tool_bps(run, 0.0, end_s)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
        return lines

    def read(self, run: Result) -> Any:
        """What both sides had after the first minute, ours of the whole run, and what it ended with."""
        end_s = run.goodput.end_s
        last = json.loads((run.run.folder / "report-1.json").read_text())["timeline"][-1]["congestion"]
        return {**read(run, NOTICED_S, end_s), "whole_bps": tool_bps(run, 0.0, end_s), "ends_with": last}

    def draw(self, results: Results, axes: Any) -> None:
        """The adaptive copy beside BBR, and what the fixed ones had there."""
        for number, tool in enumerate((*FIXED.values(), *ADAPTIVE)):
            run = results[BESIDE["bbr"], tool][0]
            points = run.goodput.rates_bps()
            axes.plot(
                [t for t, _ in points], [bps / 1e6 for _, bps in points], color=f"C{number}", label=tool
            )
        axes.set(xlabel="seconds", ylabel="goodput beside one BBR stream, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether to adapt is as good as to know."""
    found = by_link_and_tool(stored)
    for (name, link), adaptive in itertools.product(BESIDE.items(), ADAPTIVE):
        if (link, adaptive) in found:
            yield from _beside(
                name, adaptive, {tool: found[link, tool] for tool in (*FIXED.values(), adaptive)}
            )


def _beside(name: str, adaptive: str, runs: Mapping[str, Sequence[Any]]) -> Iterable[Verdict]:
    """Say how an adaptive copy did beside a neighbour."""
    had, fair = ({tool: median(runs[tool], key) for tool in runs} for key in ("ours_bps", "jain"))
    right, where = FIXED[name], f"{adaptive} beside {name}"
    ends = [run["ends_with"] for run in runs[adaptive]]
    yield Verdict(f"{where}: ends with {name} in each run", ", ".join(ends), set(ends) == {name})
    share, times = (had[adaptive] / had[other] for other in (right, FIXED["cubic"]))
    yield Verdict(f"{where}: {NEAR:.0%} of {right} at least", f"{share:.1%}", share >= NEAR)
    yield Verdict(f"{where}: Jain {FAIR} at least", f"{fair[adaptive]:.3f}", fair[adaptive] >= FAIR)
    if name == "bbr":
        yield Verdict(f"{where}: {TIMES:g} times what CUBIC got", f"{times:.1f}", times >= TIMES)
        return
    if adaptive == WATCHING:  # the other one sends nothing for 10 s
        ours, others = (median(runs[tool], "whole_bps") for tool in (adaptive, right))
        whole = ours / others
        yield Verdict(f"{where}: watching costs 2 % at most", f"{1 - whole:.1%}", whole >= COST)
    wrong = fair[FIXED["bbr"]]
    told = f"{fair[adaptive]:.3f}, {wrong:.3f}"
    yield Verdict(f"{where}: fairer than BBR", told, fair[adaptive] > wrong)


if __name__ == "__main__":
    run_row(F29(), judge)
