"""OPS-T2, T3, F20 and F21: a CUBIC stream, and what starts beside it ten seconds later.

Nobody, one CUBIC stream, GridFTP with 16 streams, or UDT, with a queue of 0.75 (T2, F21a) and 0.375 (T3,
F21b) products of bandwidth and delay. What the rows should show: alone a stream has 90 % of the link; beside
one other they share evenly (Jain 0.95); beside 16 streams it has less than a fifth of the link from 40 s on
(Jain of the two 0.54 to 0.75; equal shares for each stream would be 0.56). F20: under load the round-trip
time grows by what the queue holds, within 10 %.

100 Mbit/s, 128 ms. UDT is libudt (mpx_lab.traffic.udt), as the stock client goes on over TCP when it is asked
for it; beside it the stream is to have less than a fifth, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from apt.cell import PAYLOAD_SHARE, Cell, Link
from apt.row import Read, Results, ToolRow, by_link_and_tool
from apt.store import Result
from figures import Spread, Verdict, median
from harness import run_row
from neighbours import FULL_FRAME_BYTES, fairness, mbps, read, theirs_bps, tool_bps, wan

QUEUES = {"T2": 0.75, "T3": 0.375}
SIXTEEN = "gridftp(streams=16, congestion=cubic)"
SIXTEEN_STREAMS = "GridFTP, 16 streams"
BESIDE = {
    "nobody": "",
    "one CUBIC stream": "tcp-square(congestion=cubic, on=1000s, off=1s, after=10s)",
    SIXTEEN_STREAMS: SIXTEEN,
    "UDT": "udt",
}
SECONDS = {"quick": 100.0, "full": 300.0}
TURNS = {"quick": 1, "full": 5}
TOOL = "plain-cubic"
FROM_S = 60.0
_ours_bps = partial(tool_bps, from_s=FROM_S)
_theirs_bps = partial(theirs_bps, from_s=FROM_S)
_jain = partial(fairness, from_s=FROM_S)
ALONE, EVEN, STARVED, UNEVEN, GROWS = 0.9, 0.95, 0.2, (0.54, 0.75), 0.10


def link_of(row: str, beside: str) -> Link:
    """Return the link with that beside."""
    return wan(100_000_000, 0.128, QUEUES[row], BESIDE[beside])


class T2(ToolRow):
    """See the head of this file."""

    name = "ops-t2-f21"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Each neighbour on each queue."""
        return [
            Cell(link_of(row, beside), TOOL, SECONDS[effort], turn, waits=False)
            for turn in range(1, TURNS[effort] + 1)
            for row in QUEUES
            for beside in BESIDE
        ]

    def table(self, results: Results) -> Sequence[str]:
        """Both sides over the overlap, and the round-trip times."""
        lines = [
            "| row | beside | stream, Mbit/s | neighbour | Jain | RTT least, most, ms |",
            "|---|---|---|---|---|---|",
        ]
        for row in QUEUES:
            for beside in BESIDE:
                runs = results.get((link_of(row, beside), TOOL), [])
                if not runs:
                    continue
                shared = bool(BESIDE[beside])
                least, most = zip(*(_rtts(run) for run in runs), strict=True)
                cells = [
                    row,
                    beside,
                    mbps(runs, _ours_bps),
                    mbps(runs, _theirs_bps) if shared else "-",
                    f"{Spread([_jain(run) for run in runs]):.2f}" if shared else "-",
                    f"{1e3 * min(least):.1f}, {1e3 * max(most):.1f}",
                ]
                lines.append(f"| {' | '.join(cells)} |")
        return lines

    def read(self, run: Result) -> Any:
        """What both sides had in the end, and by how much the round-trip time grew."""
        least_s, most_s = _rtts(run)
        return {**read(run, FROM_S), "grew_s": most_s - least_s}

    def draw(self, results: Results, axes: Any) -> None:
        """F21a: the stream over time beside each."""
        for beside in BESIDE:
            run = results[link_of("T2", beside), TOOL][0]
            points = run.goodput.rates_bps()
            axes.plot([t for t, _ in points], [bps / 1e6 for _, bps in points], label=f"beside {beside}")
        axes.set(xlabel="seconds", ylabel="goodput of a CUBIC stream, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge T2 and F21a, T3 and F21b, F20."""
    found = by_link_and_tool(stored)
    for row in QUEUES:

        def had(beside: str, key: str, row: str = row) -> float:
            return median(found[link_of(row, beside), TOOL], key)

        alone = had("nobody", "ours_bps") / (1e8 * PAYLOAD_SHARE)
        yield Verdict(f"{row}: alone {ALONE:.0%} of the link", f"{alone:.1%}", alone >= ALONE)
        even = had("one CUBIC stream", "jain")
        yield Verdict(f"{row}: one beside one: Jain {EVEN}", f"{even:.2f}", even >= EVEN)
        starved, uneven = had(SIXTEEN_STREAMS, "ours_bps") / 1e8, had(SIXTEEN_STREAMS, "jain")
        limit = f"{row}: beside 16 streams less than {STARVED:.0%}"
        yield Verdict(limit, f"{starved:.1%}", starved < STARVED)
        low, high = UNEVEN
        limit = f"{row}: beside 16 streams Jain {low} to {high}"
        yield Verdict(limit, f"{uneven:.2f}", low <= uneven <= high)
        yield from _beside_udt(row, found)
        link = link_of(row, "one CUBIC stream")
        queue_s = link.queue_packets * FULL_FRAME_BYTES * 8 / link.rate_bps
        grew = had("one CUBIC stream", "grew_s") / queue_s
        limit = f"F20, queue of {row}: RTT grows by what it holds, within {GROWS:.0%}"
        yield Verdict(limit, f"{grew:.0%} of it", abs(grew - 1) <= GROWS)


def _beside_udt(row: str, found: Read) -> Iterable[Verdict]:
    if runs := found.get((link_of(row, "UDT"), TOOL), []):
        starved = median(runs, "ours_bps") / 1e8
        yield Verdict(f"{row}: beside UDT less than {STARVED:.0%}", f"{starved:.1%}", starved < STARVED)


def _rtts(run: Result) -> tuple[float, float]:
    """Return the least and the largest round-trip time."""
    rtts = [
        probe.rtt_s - (probe.noise_s or 0.0) for probe in run.run.probes("wan") if probe.rtt_s is not None
    ]
    return min(rtts), max(rtts)


if __name__ == "__main__":
    run_row(T2(), judge)
