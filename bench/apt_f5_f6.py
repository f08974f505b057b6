"""APT-F5 and APT-F6: goodput and streams over time, GridFTP-APT against fixed numbers of streams.

One link with the paper's bandwidth-delay product, windows and queue: 200 Mbit/s, 50 ms, 64 KB, 500 packets,
drop-tail. What the rows should show: fixed N gives min(N W / R, C) within 15 % up to N = 16; APT is steady
at 0.9 of the best fixed N and 0.85 of the link or more, having begun 4, 8, 16, 32, 64 and settled inside
(16, 64) after 12 to 16 chunks, within a factor of 2 of the best fixed N.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.claims import best_fixed, claims_of, read, steady_bps
from apt.row import Results, ToolRow, bps_of, by_link_and_tool, repeated
from apt.store import Result
from apt.tools import FIXED, fixed
from figures import Verdict, median
from harness import run_row

LINK = Link()
NUMBERS = (1, 4, 8, 16, 32, 64)
TUNED = ("auto", "paper")
STOCK = ("guc", "guc-p4")
BEGINS = [4, 8, 16, 32, 64]


class F5F6(ToolRow):
    """See the head of this file."""

    name = "f5-f6"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Quick: as long as the search takes; full: 2 GB at the rate of the link."""
        tuned_s, fixed_s = (82.0, 16.0) if effort == "quick" else (82.0, 82.0)
        plain = (*(fixed(n) for n in NUMBERS), *STOCK)
        return repeated(
            lambda repetition: [
                *(Cell(LINK, tool, tuned_s, repetition) for tool in TUNED),
                *(Cell(LINK, tool, fixed_s, repetition) for tool in plain),
            ],
            3,
        )

    def table(self, results: Results) -> Sequence[str]:
        """Goodput of every tool, and streams where they are known."""
        lines = [
            "| tool | steady Mbit/s: median (min to max), mean and 95 % | first 10 s | streams, last third |",
            "|---|---|---|---|",
        ]
        for (_, tool), runs in results.items():
            counts = [run.late_streams() for run in runs]
            found = ", ".join(f"{count:.0f}" for count in counts if count is not None) or "-"
            early = bps_of([run.goodput.mean_bps(0, 10) for run in runs])
            lines.append(f"| {tool} | {bps_of(list(map(steady_bps, runs)))} | {early} | {found} |")
        return lines

    def read(self, run: Result) -> Any:
        """With all numbers of streams, one after the other."""
        return {**read(run), "trace": [n for _, n in run.streams]}

    def draw(self, results: Results, axes: Any) -> None:
        """Goodput over time of the first repetition, streams of the tuned ones beside it."""
        other = axes.twinx()
        for (_, tool), runs in results.items():
            points = runs[0].goodput.rates_bps()
            axes.plot(
                [t for t, _ in points],
                [rate / 1e6 for _, rate in points],
                label=tool,
                linewidth=0.8 if tool.startswith(FIXED) else 1.8,
            )
            if tool in TUNED:
                times = [t for t, _ in runs[0].streams]
                other.step(
                    times, [n for _, n in runs[0].streams], where="post", linestyle=":", label=f"{tool}: N"
                )
        axes.set(xlabel="seconds since the first byte", ylabel="goodput, Mbit/s", ylim=(0, None))
        other.set(ylabel="streams (dotted)", ylim=(0, None))
        axes.legend(fontsize="small", ncols=2)


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether F5 and F6 show what they should, the paper's, then ours."""
    by_tool = {tool: runs for (_, tool), runs in by_link_and_tool(stored).items()}
    for n in (n for n in NUMBERS if n <= 16):
        expected = min(n * 65535 * 8 / LINK.rtt_s, LINK.ceiling_bps)
        steady = median(by_tool[fixed(n)], "steady_bps")
        yield Verdict(
            f"{n} streams: min(N W/R, C) = {expected / 1e6:.0f} Mbit/s within 15 %",
            f"{steady / 1e6:.1f} Mbit/s",
            abs(steady / expected - 1) <= 0.15,
        )
    yield from _of_the_paper(by_tool["paper"], *best_fixed(by_tool))
    yield from claims_of(LINK, by_tool)


def _of_the_paper(runs: Sequence[Mapping[str, Any]], best: int, best_bps: float) -> list[Verdict]:
    steady = median(runs, "steady_bps")
    traces = [run["trace"] for run in runs]
    begins = [trace[: len(BEGINS)] for trace in traces]
    later = sorted({n for trace in traces for n in trace[len(BEGINS) :]})
    ends = [trace[-1] for trace in traces]
    chunks = list(map(_chunks, traces))
    near = all(best / 2 <= n <= 2 * best for n in ends)
    return [
        Verdict(
            "APT steady: 0.9 of the best fixed N",
            f"{steady / best_bps:.2f} of that of {best}",
            steady >= 0.9 * best_bps,
        ),
        Verdict(
            "APT steady: 0.85 of the link", f"{steady / LINK.rate_bps:.2f}", steady >= 0.85 * LINK.rate_bps
        ),
        Verdict("APT begins 4, 8, 16, 32, 64", f"{begins}", all(each == BEGINS for each in begins)),
        Verdict("APT then stays inside (16, 64)", f"{later}", all(16 < n < 64 for n in later)),
        Verdict("APT ends within a factor of 2 of the best fixed N", f"{ends}, {best}", near),
        Verdict("APT settles after 12 to 16 chunks", f"{chunks}", all(12 <= count <= 16 for count in chunks)),
    ]


def _chunks(trace: Sequence[int]) -> int:
    """Return how many chunks it took until the number of streams stayed."""
    return max((place for place, n in enumerate(trace, 1) if n != trace[-1]), default=0)


if __name__ == "__main__":
    run_row(F5F6(), judge)
