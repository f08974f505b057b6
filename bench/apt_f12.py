"""APT-F12: four transfers that join one after another, and how fairly they share.

What the row should show of the paper's tuner: fair with two (Jain 0.85 or more), clearly less so with four
(below 0.9), each transfer's share following its share of all streams. Beside it four mpx with our tuner,
and four plain CUBIC flows that join the same way: ours should be no less fair per transfer at any time from
30 s after a join. Once with the paper's windows of 64 KB, once with windows as the kernel tunes them. Half
of F5's rate and product of bandwidth and delay (100 Mbit/s, 50 ms, 250 packets), since four transfers and
two switches take the processor.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from apt.cell import Cell, Link
from apt.row import Results, Row, main, repeated, spread
from apt.store import Result
from apt.tools import fixed
from figures import Verdict
from mpx_lab.series import goodput_bps, jain

TRANSFERS = 4
LINKS = {
    "64 KB": Link(rate_bps=100_000_000, queue_packets=250),
    "as tuned": Link(rate_bps=100_000_000, queue_packets=250, window_bytes=None),
}
PLAIN = fixed(1)
TOOLS = ("auto", "paper", PLAIN)
EVERY_S = {"quick": 5.0, "full": 100.0}
LAST_S = {"quick": 60.0, "full": 100.0}
SETTLED_S = 30.0  # after a join
WINDOW_S = 10.0  # over which shares are compared


class F12(Row):
    """See the head of this file."""

    name = "f12"
    doc = __doc__ or ""

    def cells(self, effort: str) -> Sequence[Cell]:
        """Four transfers of each kind, on both kinds of windows."""
        return repeated(
            lambda turn: [
                Cell(link, tool, LAST_S[effort], turn, TRANSFERS, EVERY_S[effort])
                for link in LINKS.values()
                for tool in TOOLS
            ],
            3,
        )

    def table(self, results: Results) -> Sequence[str]:
        """Jain's index with 2, 3 and 4 transfers, per transfer and per stream, and the sum of goodput."""
        lines = [
            "| windows | tool | transfers | Jain per transfer, from 30 s after the join | Jain per stream "
            "| together Mbit/s | streams |",
            "|---|---|---|---|---|---|---|",
        ]
        for windows, link in LINKS.items():
            for tool in TOOLS:
                runs = results[link, tool]
                lines += [_line(windows, tool, count, runs) for count in _counts(runs)]
        return lines

    def verdicts(self, results: Results) -> Sequence[Verdict]:
        """The paper's, then ours."""
        paper = results[LINKS["64 KB"], "paper"]
        four = statistics.median(_fairness(run, 4) for run in paper)
        follows = statistics.median(_share_follows(run) for run in paper)
        said = [
            Verdict("paper, 64 KB: Jain of four below 0.9", f"{four:.2f}", four < 0.9),
            Verdict(
                "paper, 64 KB: shares follow N_i / sum N (within 0.1)",
                f"off by {follows:.2f}",
                follows <= 0.1,
            ),
        ]
        if 2 in _counts(paper):
            two = statistics.median(_fairness(run, 2) for run in paper)
            said.append(Verdict("paper, 64 KB: Jain of two at 0.85 or more", f"{two:.2f}", two >= 0.85))
        for windows, link in LINKS.items():
            for count in _counts(results[link, "auto"]):
                ours = statistics.median(_least(run, count) for run in results[link, "auto"])
                plain = statistics.median(_least(run, count) for run in results[link, PLAIN])
                said.append(
                    Verdict(
                        f"{windows}, {count} transfers: never less fair than plain CUBIC ({plain:.2f})",
                        f"{ours:.2f}",
                        ours >= plain,
                    )
                )
        return said

    def draw(self, results: Results, axes: Any) -> None:
        """Goodput of the four transfers of our tuner with tuned windows, first repetition."""
        for number, transfer in enumerate(results[LINKS["as tuned"], "auto"][0].transfers, 1):
            points = transfer.goodput.rates_bps()
            axes.plot(
                [transfer.began_s + t for t, _ in points],
                [bps / 1e6 for _, bps in points],
                label=f"mpx {number}",
            )
        axes.set(xlabel="seconds", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def _line(windows: str, tool: str, count: int, runs: Sequence[Result]) -> str:
    per_transfer = spread([_fairness(run, count) for run in runs], ".2f")
    per_stream = spread([_stream_fairness(run, count) for run in runs], ".2f")
    together = spread([sum(_shares(run, count, *_settled(run, count))) / 1e6 for run in runs])
    streams = [
        [
            transfer.streams_at(_settled(run, count)[1] - transfer.began_s)
            for transfer in run.transfers[:count]
        ]
        for run in runs
    ]
    return f"| {windows} | {tool} | {count} | {per_transfer} | {per_stream} | {together} | {streams} |"


def _counts(runs: Sequence[Result]) -> list[int]:
    """Return with how many transfers there was time enough between two joins."""
    return [
        count
        for count in range(2, TRANSFERS + 1)
        if all(to_s - from_s >= WINDOW_S for from_s, to_s in (_settled(run, count) for run in runs))
    ]


def _settled(run: Result, count: int) -> tuple[float, float]:
    """Return from 30 s after a join to the next one, in the run's time."""
    begins = [transfer.began_s for transfer in run.transfers]
    ends = [*begins[1:], begins[-1] + run.transfers[-1].goodput.end_s]
    return begins[count - 1] + SETTLED_S, ends[count - 1]


def _shares(run: Result, count: int, from_s: float, to_s: float) -> list[float]:
    return [
        transfer.goodput.mean_bps(from_s - transfer.began_s, to_s - transfer.began_s)
        for transfer in run.transfers[:count]
    ]


def _fairness(run: Result, count: int) -> float:
    return jain(_shares(run, count, *_settled(run, count)))


def _least(run: Result, count: int) -> float:
    """Return the least fairness of any ten seconds from 30 s after the join."""
    from_s, to_s = _settled(run, count)
    starts = [from_s + step for step in range(max(1, int(to_s - from_s - WINDOW_S) + 1))]
    return min(jain(_shares(run, count, start, min(to_s, start + WINDOW_S))) for start in starts)


def _stream_fairness(run: Result, count: int) -> float:
    """Return Jain's index over all streams that carried data to the end of the interval."""
    from_s, to_s = _settled(run, count)
    shares = []
    for number in range(1, count + 1):
        for samples in run.run.streams(f"transfer-{number}").values():
            if samples[0].t_s <= from_s and samples[-1].t_s >= to_s - 1:
                shares.append(goodput_bps(samples, from_s, to_s))
    carrying = [share for share in shares if share > 10_000]  # control connections say little
    return jain(carrying) if carrying else 1.0


def _share_follows(run: Result) -> float:
    """Return how far on average the share of goodput is from the share of streams, with four."""
    from_s, to_s = _settled(run, TRANSFERS)
    shares = _shares(run, TRANSFERS, from_s, to_s)
    streams = [transfer.streams_at(to_s - transfer.began_s) or 0 for transfer in run.transfers]
    return statistics.mean(
        abs(share / sum(shares) - count / sum(streams)) for share, count in zip(shares, streams, strict=True)
    )


if __name__ == "__main__":
    main(F12())
