"""HUANG-F6.10 to F6.12: a global network at a fifth of its rates, one path against several. Needs root.

    .venv/3.11/bin/python bench/huang_f610.py --effort full

PRAGMA-4 behind a card of 200 Mbit/s; a = 0.000065 of the thesis, times 5 as the rates are divided by 5, so
that the numbers of streams stay: 10, 10 and 2 on the three paths that the controller takes. The thesis has
8, 2, 10 and 2 on four; the fourth adds nothing to the other three. A stream has a window of 384 kB, which is
what that a stands for. What the rows should show: one path is best with few streams, several from 16 on; at
the best number by prediction is 1.25 times one path and 1.05 times in turn, and has 0.95 of the card.

What the lab cannot show: the best path has 166 of the card's 200 Mbit/s here, so that 1.25 times one path is
more than the card carries (1.20). In the thesis, too: 728 of 1000 were measured on it, which is 1.37.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import Verdict
from harness import run_row
from huang.cell import CopyCell
from huang.rates import mean_bps, read_rates, steady_bps
from huang.row import CopyResult, CopyRow, Results, by_cell, repeated
from mpx_lab.topologies import PRAGMA_4

A = 0.000065 * 5
WINDOW_BYTES = 384_000
CARD_BPS = 200_000_000
PAYLOAD = 1448 / 1514
WAYS = {"single": (1, False), "in turn": (3, True), "by prediction": (3, False)}
STREAMS = {"quick": (4, 8, 12, 16, 22), "full": (4, 8, 12, 16, 20, 22, 24, 28)}
MANY_FROM = 16


class F610(CopyRow):
    """See the head of this file."""

    name = "huang-f610"
    sizes_bytes = {"quick": 300_000_000, "full": 1_200_000_000}
    topologies = (PRAGMA_4,)

    def cells(self, effort: str, size_bytes: int) -> Sequence[CopyCell]:
        """Each number of streams each way."""
        cells = [
            CopyCell(PRAGMA_4.name, paths, n, size_bytes, in_turn=in_turn, a=A, window_bytes=WINDOW_BYTES)
            for n in STREAMS[effort]
            for paths, in_turn in WAYS.values()
        ]
        return repeated(cells, 1 if effort == "quick" else 3)

    def table(self, results: Results) -> Sequence[str]:
        """Goodput of whole copies, and of their middle."""
        lines = [f"| streams | {' | '.join(WAYS)} |, Mbit/s, whole (steady)", f"|---|{'---|' * len(WAYS)}"]
        for n in sorted({cell.streams for cell in results}):
            runs = {cell.way: each for cell, each in results.items() if cell.streams == n}
            cells = [f"{mean_bps(runs[way]) / 1e6:.1f} ({steady_bps(runs[way]) / 1e6:.1f})" for way in WAYS]
            lines.append(f"| {n} | {' | '.join(cells)} |")
        return lines

    def read(self, result: CopyResult) -> Any:
        """Goodput of the whole copy, and of its middle."""
        return read_rates(result)

    def draw(self, results: Results, axes: Any) -> None:
        """Goodput of whole copies over streams."""
        for way in WAYS:
            rates = {cell.streams: mean_bps(runs) for cell, runs in results.items() if cell.way == way}
            axes.plot(list(rates), [rate / 1e6 for rate in rates.values()], marker="o", label=way)
        axes.set(xlabel="streams", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge what the thesis says of its figures 6.10 to 6.12."""
    found = by_cell(stored)

    def rates(way: str, key: str) -> dict[int, float]:
        return {
            cell.streams: statistics.mean(run[key] for run in runs)
            for cell, runs in found.items()
            if cell.way == way
        }

    ours, one = (rates(way, "whole_bps") for way in ("by prediction", "single"))
    few = [n for n in ours if n < MANY_FROM and one[n] >= ours[n]]
    many = [n for n in ours if n >= MANY_FROM and ours[n] > one[n]]
    peak = {way: max(rates(way, "steady_bps").values()) for way in WAYS}
    times, turns = peak["by prediction"] / peak["single"], peak["by prediction"] / peak["in turn"]
    card = peak["by prediction"] / (CARD_BPS * PAYLOAD * next(iter(found)).scale)
    below, above = [n for n in ours if n < MANY_FROM], [n for n in ours if n >= MANY_FROM]
    yield Verdict(f"one path is best below {MANY_FROM} streams", f"at {few} of {below}", few == below)
    yield Verdict(f"several are best from {MANY_FROM} on", f"at {many} of {above}", many == above)
    yield Verdict("at its best 1.25 times one path", f"{times:.2f}", times >= 1.25)
    yield Verdict("at its best 1.05 times in turn", f"{turns:.2f}", turns >= 1.05)
    yield Verdict("at its best 0.95 of what the card carries", f"{card:.3f}", card >= 0.95)


if __name__ == "__main__":
    run_row(F610(), judge)
