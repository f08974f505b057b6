"""OPS-F13 and F14: GridFTP with 8 and 16 streams, and one stream, beside what comes and goes.

Squares of ten seconds: CUBIC, UDP at the link's rate, UDP at half of it. Bursts of UDP at the link's rate:
one second in every two, five, ten. With a queue of 0.75 (F13) and 0.375 (F14) products of bandwidth and
delay. What the rows should show: 16 streams keep at least 0.8 of what they have alone beside CUBIC, and less
than 0.6 of the link beside squares of UDP at its rate; the more often the bursts, the less; beside a burst
every other second a quarter of the link or less (where modern loss recovery keeps it higher, that is the
finding).

100 Mbit/s, 128 ms. UDT is libudt (mpx_lab.traffic.udt), as the stock client goes on over TCP when it is asked
for it; it is to have 1.3 times what 16 streams have beside squares of UDP, and more than they beside bursts.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from apt.cell import Cell, Link
from apt.row import Read, Results, ToolRow, by_link_and_tool
from apt.store import Result
from apt.tools import UDT
from figures import Verdict, median
from harness import run_row
from neighbours import mbps, median_of, read, tool_bps, wan

QUEUES = {"F13": 0.75, "F14": 0.375}
RATE_BPS = 100_000_000
BESIDE = {
    "none": "",
    "TCP constant": "tcp(congestion=cubic)",
    "TCP square": "tcp-square(congestion=cubic, on=10s, off=10s)",
    "UDP square, half": "udp-square(rate=50Mbit/s, on=10s, off=10s)",
    "UDP square, full": "udp-square(rate=100Mbit/s, on=10s, off=10s)",
    "UDP (1, 10)": "udp-bursty(rate=100Mbit/s, period=10s)",
    "UDP (1, 5)": "udp-bursty(rate=100Mbit/s, period=5s)",
    "UDP (1, 2)": "udp-bursty(rate=100Mbit/s, period=2s)",
}
BURSTS = ("UDP (1, 2)", "UDP (1, 5)", "UDP (1, 10)", "none")
TOOLS = ("plain-cubic", "guc-p8", "guc-p16", UDT)
TURNS = {"quick": 1, "full": 3}
SECONDS, FROM_S = 90.0, 20.0
_bps = partial(tool_bps, from_s=FROM_S)
KEEPS, LOSES, LITTLE, AHEAD = 0.8, 0.6, 0.25, 1.3


def link_of(row: str, beside: str) -> Link:
    """Return the link with that beside."""
    return wan(RATE_BPS, 0.128, QUEUES[row], BESIDE[beside])


class F13(ToolRow):
    """See the head of this file."""

    name = "ops-f13"

    def cells(self, effort: str) -> Sequence[Cell]:
        """F13; F14 too if full."""
        rows = ("F13",) if effort == "quick" else tuple(QUEUES)
        return [
            Cell(link_of(row, beside), tool, SECONDS, turn, waits=False)
            for turn in range(1, TURNS[effort] + 1)
            for row in rows
            for beside in BESIDE
            for tool in TOOLS
        ]

    def table(self, results: Results) -> Sequence[str]:
        """Goodput of each tool beside each."""
        lines = [f"| row | beside | {' | '.join(TOOLS)} |", "|---|---|" + "---|" * len(TOOLS)]
        for row in QUEUES:
            for beside in BESIDE:
                found = [results.get((link_of(row, beside), tool), []) for tool in TOOLS]
                if any(found):
                    rates = [mbps(runs, _bps) if runs else "-" for runs in found]
                    lines.append(f"| {row} | {beside} | {' | '.join(rates)} |")
        return lines

    def read(self, run: Result) -> Any:
        """What both sides had, once it was steady."""
        return read(run, FROM_S)

    def draw(self, results: Results, axes: Any) -> None:
        """F13: bars."""
        width = 1 / (len(TOOLS) + 1)
        for number, tool in enumerate(TOOLS):
            rates = [median_of(results[link_of("F13", beside), tool], _bps) / 1e6 for beside in BESIDE]
            axes.bar([at + number * width for at in range(len(BESIDE))], rates, width, label=tool)
        axes.set_xticks(range(len(BESIDE)), list(BESIDE), rotation=30, ha="right", fontsize="small")
        axes.set_ylabel("goodput, Mbit/s")
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say what 16 streams keep of what they have alone, and what UDT has beside them."""
    found = by_link_and_tool(stored)
    for row in QUEUES:
        runs = {beside: found.get((link_of(row, beside), "guc-p16"), []) for beside in BESIDE}
        if not all(runs.values()):
            continue
        had = {beside: median(each, "ours_bps") for beside, each in runs.items()}
        kept, lost = had["TCP constant"] / had["none"], had["UDP square, full"] / RATE_BPS
        bursts = [had[name] / 1e6 for name in BURSTS]
        little = had["UDP (1, 2)"] / RATE_BPS
        yield Verdict(f"{row}: beside TCP {KEEPS:.0%} of what it has alone", f"{kept:.0%}", kept >= KEEPS)
        limit = f"{row}: beside UDP squares less than {LOSES:.0%} of the link"
        yield Verdict(limit, f"{lost:.0%}", lost < LOSES)
        limit = f"{row}: the more often the bursts, the less"
        yield Verdict(limit, " < ".join(f"{mbps:.1f}" for mbps in bursts), bursts == sorted(bursts))
        limit = f"{row}: a burst every other second leaves {LITTLE:.0%} at most"
        yield Verdict(limit, f"{little:.0%}", little <= LITTLE)
        yield from _udt(row, had, found)


def _udt(row: str, had: Mapping[str, float], found: Read) -> Iterable[Verdict]:
    """Say what UDT has, where it was measured."""
    for beside in ("UDP square, full", "UDP square, half", *BURSTS[:-1]):
        runs = found.get((link_of(row, beside), UDT), [])
        if runs:
            wanted = AHEAD if "square" in beside else 1.0
            times = median(runs, "ours_bps") / had[beside]
            limit = f"{row}: UDT has more than {wanted:g} times as much beside {beside}"
            yield Verdict(limit, f"{times:.2f}", times > wanted)


if __name__ == "__main__":
    run_row(F13(), judge)
