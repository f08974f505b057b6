"""APT-F5 and APT-F6: goodput and streams over time, GridFTP-APT against fixed numbers of streams.

One link with the paper's bandwidth-delay product, windows and queue: 200 Mbit/s, 50 ms, 64 KB, 500 packets,
drop-tail. What the rows should show: fixed N gives min(N W / R, C) within 15 % up to N = 16; APT is steady
at 0.9 of the best fixed N and 0.85 of the link or more, having begun 4, 8, 16, 32, 64 and settled inside
(16, 64) after 12 to 16 chunks, within a factor of 2 of the best fixed N.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.claims import claims_of, steady_bps
from apt.row import Results, Row, main, repeated, spread
from apt.store import Result
from apt.tools import FIXED, fixed
from figures import Verdict

LINK = Link()
NUMBERS = (1, 4, 8, 16, 32, 64)
TUNED = ("auto", "paper")
STOCK = ("guc", "guc-p4")
BEGINS = [4, 8, 16, 32, 64]
SETTLED_AFTER_S = 48.0  # sixteen chunks of 3 s


class F5F6(Row):
    """See the head of this file."""

    name = "f5-f6"
    doc = __doc__ or ""

    def cells(self, effort: str) -> Sequence[Cell]:
        """Quick: as long as the search takes; full: 2 GB at the rate of the link."""
        tuned_s, fixed_s = (62.0, 15.0) if effort == "quick" else (82.0, 82.0)
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
            "| tool | steady Mbit/s, median (min to max) | first 15 s | streams at the end |",
            "|---|---|---|---|",
        ]
        for (_, tool), runs in results.items():
            ends = [run.streams_at(run.goodput.end_s) for run in runs]
            told = ", ".join(str(count) for count in ends) if all(ends) else "-"
            steady = spread([steady_bps(run) / 1e6 for run in runs])
            early = spread([run.goodput.mean_bps(0, 15) / 1e6 for run in runs])
            lines.append(f"| {tool} | {steady} | {early} | {told} |")
        return lines

    def verdicts(self, results: Results) -> Sequence[Verdict]:
        """The paper's, then ours."""
        link = LINK
        by_tool = {tool: runs for (_, tool), runs in results.items()}
        said = []
        for n in (n for n in NUMBERS if n <= 16):
            expected = min(n * 65535 * 8 / link.rtt_s, link.ceiling_bps)
            measured = statistics.median(steady_bps(run) for run in by_tool[fixed(n)])
            said.append(
                Verdict(
                    f"{n} streams: min(N W/R, C) = {expected / 1e6:.0f} Mbit/s within 15 %",
                    f"{measured / 1e6:.1f} Mbit/s",
                    abs(measured / expected - 1) <= 0.15,
                )
            )
        best = max(NUMBERS, key=lambda n: statistics.median(map(steady_bps, by_tool[fixed(n)])))
        best_bps = statistics.median(map(steady_bps, by_tool[fixed(best)]))
        paper = by_tool["paper"]
        steady = statistics.median(map(steady_bps, paper))
        ends = [run.streams_at(run.goodput.end_s) or 0 for run in paper]
        begins = [_distinct(run)[: len(BEGINS)] for run in paper]
        said += [
            Verdict(
                "APT steady: 0.9 of the best fixed N",
                f"{steady / best_bps:.2f} (N = {best})",
                steady >= 0.9 * best_bps,
            ),
            Verdict(
                "APT steady: 0.85 of the link",
                f"{steady / link.rate_bps:.2f}",
                steady >= 0.85 * link.rate_bps,
            ),
            Verdict("APT begins 4, 8, 16, 32, 64", f"{begins}", all(each == BEGINS for each in begins)),
            Verdict("APT ends inside (16, 64)", f"{ends}", all(16 < n < 64 for n in ends)),
            Verdict(
                f"APT ends within a factor of 2 of {best}",
                f"{ends}",
                all(best / 2 <= n <= 2 * best for n in ends),
            ),
            Verdict(
                "APT settles after 12 to 16 chunks",
                f"{[_chunks(run) for run in paper]}",
                all(12 <= _chunks(run) <= 16 for run in paper),
            ),
        ]
        return [*said, *claims_of(link, by_tool)]

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


def _distinct(run: Result) -> list[int]:
    return [n for _, n in run.streams]


def _chunks(run: Result) -> int:
    """Return how many chunks it took until the number of streams stayed."""
    last = run.streams[-1][1]
    for index in range(len(run.streams) - 1, -1, -1):
        if run.streams[index][1] != last:
            return index + 1
    return 0


if __name__ == "__main__":
    main(F5F6())
