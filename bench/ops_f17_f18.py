"""OPS-F17 and F18: CUBIC against BBR, one stream against 1 to 16, constant and in squares of ten seconds.

What the rows should show, with a queue of 0.75 products of bandwidth and delay (F17): one against one BBR
has at least three times what CUBIC has, whichever was there first, and two of a kind share evenly (Jain
0.9). With half of that queue (F18) BBR takes no less. And, not in the paper: with four products CUBIC wins
back.

100 Mbit/s, 128 ms, a minute and a half each, the last minute counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.row import Results, ToolRow, by_link_and_tool
from apt.store import Result
from figures import Spread, Verdict, median
from harness import run_row
from neighbours import fairness, mbps, median_of, neighbours_bps, read, tool_bps, wan

QUEUES = {"F17": 0.75, "F18": 0.375, "deep": 4.0}
STREAMS = {"quick": (1, 4, 16), "full": (1, 2, 4, 8, 16)}
TURNS = {"quick": 1, "full": 3}
SECONDS, FROM_S = 90.0, 30.0
KINDS = ("cubic", "bbr")
TIMES, EVEN = 3.0, 0.9


def link_of(row: str, kind: str, streams: int, *, square: bool = False) -> Link:
    """Return the link with so many streams of the background."""
    spec = f"congestion={kind}, streams={streams}"
    beside = f"tcp-square({spec}, on=10s, off=10s)" if square else f"tcp({spec})"
    return wan(100_000_000, 0.128, QUEUES[row], beside)


def tool_of(kind: str) -> str:
    """Return one stream of that kind."""
    return f"plain-{kind}"


class F17F18(ToolRow):
    """See the head of this file."""

    name = "ops-f17-f18"

    def cells(self, effort: str) -> Sequence[Cell]:
        """Each kind beside each; squares on F17 only."""
        links = [link_of(row, kind, n) for row in ("F17", "F18") for kind in KINDS for n in STREAMS[effort]]
        links += [link_of("deep", kind, 1) for kind in KINDS]
        links += [link_of("F17", kind, n, square=True) for kind in KINDS for n in STREAMS[effort]]
        return [
            Cell(link, tool_of(kind), SECONDS, turn)
            for turn in range(1, TURNS[effort] + 1)
            for link in links
            for kind in KINDS
        ]

    def table(self, results: Results) -> Sequence[str]:
        """Both sides, and Jain's index of the two (not of all streams)."""
        lines = [
            "| queue, packets | background | foreground | foreground, Mbit/s | background | Jain |",
            "|---|---|---|---|---|---|",
        ]
        for (link, tool), runs in results.items():
            cells = [
                str(link.queue_packets),
                link.beside,
                tool,
                mbps(runs, lambda run: tool_bps(run, FROM_S)),
                mbps(runs, lambda run: neighbours_bps(run, FROM_S)[0]),
                f"{Spread([fairness(run, FROM_S) for run in runs]):.2f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
        return lines

    def read(self, run: Result) -> Any:
        """What both sides had, once it was steady."""
        return read(run, FROM_S)

    def draw(self, results: Results, axes: Any) -> None:
        """Goodput of the foreground over the number of streams beside it, F17."""
        counts = sorted(
            {n for n in STREAMS["full"] if (link_of("F17", "bbr", n), tool_of("cubic")) in results}
        )
        for kind in KINDS:
            for beside in KINDS:
                rates = [
                    median_of(
                        results[link_of("F17", beside, n), tool_of(kind)],
                        lambda run: tool_bps(run, FROM_S),
                    )
                    for n in counts
                ]
                axes.plot(counts, [bps / 1e6 for bps in rates], marker="o", label=f"{kind} beside {beside}")
        axes.set(xlabel="streams in the background", ylabel="goodput of one stream, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge one against one."""
    found = by_link_and_tool(stored)

    def ratio(row: str) -> list[float]:
        """Of BBR to CUBIC, BBR in front and behind."""
        front, behind = (
            [median(found[link_of(row, beside, 1), tool_of(kind)], key) for key in ("ours_bps", "theirs_bps")]
            for beside, kind in (("cubic", "bbr"), ("bbr", "cubic"))
        )
        return [front[0] / front[1], behind[1] / behind[0]]

    f17, f18, deep = ratio("F17"), ratio("F18"), ratio("deep")
    limit = f"F17, one against one: BBR has {TIMES:g} times as much, both ways"
    yield Verdict(limit, _times(f17), min(f17) >= TIMES)
    limit = "F18: no less than in F17 (the mean of both ways)"
    yield Verdict(limit, _times(f18), sum(f18) >= sum(f17))
    yield Verdict("four products: CUBIC has more", _times(deep), max(deep) < 1)
    for kind in KINDS:
        even = median(found[link_of("F17", kind, 1), tool_of(kind)], "jain")
        yield Verdict(f"F17, two {kind} streams: Jain {EVEN} at least", f"{even:.2f}", even >= EVEN)


def _times(ratios: Sequence[float]) -> str:
    return " and ".join(f"{ratio:.1f}" for ratio in ratios)


if __name__ == "__main__":
    run_row(F17F18(), judge)
