"""APT-F12: four transfers that join one after another, and how fairly they share.

What the row should show of the paper's tuner: fair with two (Jain 0.85 or more), clearly less so with four
(below 0.9), each transfer's share following its share of all streams. Beside it four mpx with our tuner,
and four plain CUBIC flows, the lab's own and not mpx, that join the same way: ours should be no less fair per
transfer in any ten seconds from 30 s after a join (0.02 is a tie), in the median run and in the worst. The
paper's windows of 64 KB are for its own claims; against plain flows the windows are as the kernel tunes them,
since four flows of 64 KB do not even fill the link.

Half of F5's rate and product of bandwidth and delay (100 Mbit/s, 50 ms, 250 packets), since four transfers
and two switches take the processor; the paper's part at half of that clock (50 Mbit/s, 100 ms), as its
searches open 64 streams each. The paper's tuner searches for 45 s and more, so that with a join every minute
(quick) its shares are those of a search that has just ended, or has not.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.row import Results, ToolRow, by_link_and_tool
from apt.sharing import fairness, least_fairness, mean_streams, settled, shares, stream_fairness, unexplained
from apt.store import Result
from apt.tools import PAPER, PLAIN, fixed
from figures import Spread, Verdict, median
from harness import run_row

TRANSFERS = 4
SMALL = Link(rate_bps=50_000_000, rtt_s=0.100, queue_packets=250)
TUNED = Link(rate_bps=100_000_000, queue_packets=250, window_bytes=None)
ALL = ("auto", PAPER, fixed(1), fixed(4), "guc", "guc-p4")
TOOLS = {
    "quick": {SMALL: {"auto": 3, PAPER: 3}, TUNED: {"auto": 3, PLAIN: 3, "guc-p4": 1}},
    "full": {SMALL: dict.fromkeys(ALL, 5), TUNED: dict.fromkeys((*ALL, PLAIN), 10)},
}  # and how often
EVERY_S = {"quick": {SMALL: 60.0, TUNED: 45.0}, "full": {SMALL: 100.0, TUNED: 100.0}}
TIE = 0.02


class F12(ToolRow):
    """See the head of this file."""

    name = "f12"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Four transfers of each kind."""
        return [
            Cell(link, tool, every_s, turn, TRANSFERS, every_s)
            for link, every_s in EVERY_S[effort].items()
            for tool, turns in TOOLS[effort][link].items()
            for turn in range(1, turns + 1)
        ]

    def table(self, results: Results) -> Sequence[str]:
        """Jain's index with 2, 3 and 4 transfers, per transfer and per stream, and the sum of goodput."""
        lines = [
            "| windows | tool | transfers | Jain per transfer | least of 10 s | Jain per stream "
            "| together Mbit/s | streams of each |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for (link, tool), runs in results.items():
            windows = "64 KB" if link == SMALL else "tuned"
            lines += [_line(windows, tool, count, runs) for count in range(2, TRANSFERS + 1)]
        return lines

    def read(self, run: Result) -> Any:
        """How even 2, 3 and 4 transfers are, and what explains shares where streams are known."""
        known = all(transfer.streams for transfer in run.transfers)
        by_streams, by_heads = unexplained(run) if known else (None, None)
        counts = range(2, TRANSFERS + 1)
        return {
            "jain": [fairness(run, count) for count in counts],
            "least": [least_fairness(run, count) for count in counts],
            "by_streams": by_streams,
            "by_heads": by_heads,
        }

    def draw(self, results: Results, axes: Any) -> None:
        """Goodput of the four transfers with tuned windows: ours, and plain flows dotted, once."""
        for tool, style in (("auto", "-"), (PLAIN, ":")):
            for number, transfer in enumerate(results[TUNED, tool][0].transfers, 1):
                points = transfer.goodput.rates_bps()
                times = [transfer.began_s + t for t, _ in points]
                rates = [bps / 1e6 for _, bps in points]
                axes.plot(times, rates, style, color=f"C{number}", label=f"{tool} {number}")
        axes.set(xlabel="seconds", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small", ncols=2)


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether F12 shows what it should, the paper's, then ours."""
    found = by_link_and_tool(stored)
    paper = found[SMALL, PAPER]
    two, four = (statistics.median(run["jain"][count - 2] for run in paper) for count in (2, 4))
    by_streams, by_heads = (median(paper, key) for key in ("by_streams", "by_heads"))
    yield Verdict("paper, 64 KB: Jain of two at 0.85 or more", f"{two:.2f}", two >= 0.85)
    yield Verdict("paper, 64 KB: Jain of four below 0.9", f"{four:.2f}", four < 0.9)
    yield Verdict("paper, 64 KB: Jain of four 0.05 less than of two", f"{two - four:.2f}", four <= two - 0.05)
    yield Verdict(
        "paper, 64 KB: shares of four follow N_i / sum N twice as closely as equal shares",
        f"off by {by_streams:.3f} against {by_heads:.3f}",
        by_streams <= by_heads / 2,
    )
    for count in range(2, TRANSFERS + 1):
        ours, plain = ([run["least"][count - 2] for run in found[TUNED, tool]] for tool in ("auto", PLAIN))
        for name, pick in (("median", statistics.median), ("worst", min)):
            limit = f"tuned windows, {count} transfers, {name} run: any 10 s as fair as plain CUBIC"
            told = f"{pick(ours):.2f} against {pick(plain):.2f}"
            yield Verdict(limit, told, pick(ours) >= pick(plain) - TIE)


def _line(windows: str, tool: str, count: int, runs: Sequence[Result]) -> str:
    by_stream = [index for run in runs if (index := stream_fairness(run, count)) is not None]
    cells = [
        windows,
        tool,
        str(count),
        f"{Spread([fairness(run, count) for run in runs]):.2f}",
        f"{Spread([least_fairness(run, count) for run in runs]):.2f}",
        f"{Spread(by_stream):.2f}" if len(by_stream) == len(runs) else "-",
        f"{Spread([sum(shares(run, count, *settled(run, count))) / 1e6 for run in runs]):.1f}",
        "/".join(f"{number:.0f}" for number in mean_streams(runs, count)) or "-",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    run_row(F12(), judge)
