"""How soon a copy notices that its background changes from one CUBIC stream to one BBR stream to none.

One stream of mpx with --policy fair for five minutes on 100 Mbit/s, 60 ms, a queue of one product of
bandwidth and delay. After 100 s the CUBIC stream ends and BBR begins, after 200 s that ends, too. What the
row should show: it turns to BBR when BBR has come, and back to CUBIC when it has gone, once each; how long
each takes is printed, not judged.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell
from apt.row import Results, ToolRow, by_link_and_tool
from apt.store import Result
from figures import Spread, Verdict
from harness import run_row
from neighbours import wan

TURNS = {"quick": 3, "full": 10}
STAYS_S, SECONDS = 100.0, 300.0
SQUARES = " + ".join(
    f"tcp-square(congestion={name}, on={STAYS_S:g}s, off=1000s, after={after_s:g}s)"
    for name, after_s in (("cubic", 0.0), ("bbr", STAYS_S))
)
LINK = wan(100_000_000, 0.060, 1.0, SQUARES)
TOOL = "mpx-fair-1"
NEVER_S = float("inf")


class Notice(ToolRow):
    """See the head of this file."""

    name = "ops-notice"

    def cells(self, effort: str) -> Sequence[Cell]:
        """The same again and again."""
        return [Cell(LINK, TOOL, SECONDS, turn, waits=False) for turn in range(1, TURNS[effort] + 1)]

    def table(self, results: Results) -> Sequence[str]:
        """When it switched, in each run."""
        lines = ["| run | switches (seconds: to) |", "|---|---|"]
        for number, run in enumerate(results[LINK, TOOL], 1):
            switches = ", ".join(f"{t_s:.0f}: {name}" for t_s, name in _switches(run))
            lines.append(f"| {number} | {switches or '-'} |")
        return lines

    def read(self, run: Result) -> Any:
        """When it switched, and to what."""
        return {"switches": _switches(run)}

    def draw(self, results: Results, axes: Any) -> None:
        """Goodput of the first run, and its switches."""
        run = results[LINK, TOOL][0]
        began_s = run.transfers[0].began_s
        points = run.goodput.rates_bps()
        axes.plot([began_s + t for t, _ in points], [bps / 1e6 for _, bps in points])
        for t_s, name in _switches(run):
            axes.axvline(t_s, color="C1")
            axes.text(t_s, 1, f" {name}", color="C1")
        axes.set(xlabel="seconds", ylabel="goodput, Mbit/s", ylim=(0, None))


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether it notices both, and nothing else."""
    runs = [run["switches"] for run in by_link_and_tool(stored)[LINK, TOOL]]
    came = Spread([_noticed_s(switches, STAYS_S, "bbr") for switches in runs])
    gone = Spread([_noticed_s(switches, 2 * STAYS_S, "cubic") for switches in runs])
    more = Spread([float(len(switches)) for switches in runs])
    yield Verdict("BBR has come: noticed", f"after {came:.0f} s", came.worst < STAYS_S)
    yield Verdict("BBR has gone: noticed", f"after {gone:.0f} s", gone.worst < STAYS_S)
    yield Verdict("two switches, no more", f"{more:.0f}", more.worst <= 2)


def _switches(run: Result) -> list[tuple[float, str]]:
    """Return (time of the run, congestion control) of each switch."""
    timeline = json.loads((run.run.folder / "report-1.json").read_text())["timeline"]
    began_s = run.transfers[0].began_s
    return [
        (began_s + event["t_s"], event["congestion"])
        for event in timeline
        if str(event["reason"]).startswith("switched to ")
    ]


def _noticed_s(switches: Sequence[tuple[float, str]], changed_s: float, name: str) -> float:
    """Return how long after a change it switched to that, before the next change."""
    later = (t_s - changed_s for t_s, to in switches if to == name and t_s > changed_s)
    return next((after_s for after_s in later if after_s < STAYS_S), NEVER_S)


if __name__ == "__main__":
    run_row(Notice(), judge)
