"""HUANG-F6.8: goodput over streams on three unequal paths, by prediction or in turn. Needs root.

    .venv/3.11/bin/python bench/huang_f68.py --effort full

Topology C: 100 Mbit/s with 120 ms, and two of 50 Mbit/s with 30 ms; the controller is taught the a of the
thesis (0.001495), with which it predicts 18, 2 and 2 streams. A stream has a window of 84 kB, which is what
that a stands for; full measures it with windows as the kernel tunes them, too. What the row should show: by
prediction (9:1:1) is as fast as in turn (to 1 %) or faster at 10 of 13 numbers of streams, has 95 % of its
best at 24 streams or fewer, and with fewer streams than in turn.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import Verdict
from harness import run_row
from huang.cell import CopyCell
from huang.rates import mean_bps, read_rates, steady_bps
from huang.row import CopyResult, CopyRow, Results, by_cell, repeated
from mpx_lab.topologies import THESIS_C

A = 0.001495
PATHS = 3
WINDOW_BYTES = 84_000
STREAMS = tuple(range(3, 40, 3))  # as in the thesis; fewer would not show where either is ahead
WINDOWS = {"quick": (WINDOW_BYTES,), "full": (WINDOW_BYTES, None)}
TOLERANCE = 0.01  # so much less is as fast
ENOUGH, AT_MOST = 0.95, 24
OFTEN, OF = 10, 13


class F68(CopyRow):
    """See the head of this file."""

    name = "huang-f68"
    sizes_bytes = {"quick": 200_000_000, "full": 2_000_000_000}
    topologies = (THESIS_C,)

    def cells(self, effort: str, size_bytes: int) -> Sequence[CopyCell]:
        """Each number of streams, both ways."""
        cells = [
            CopyCell(THESIS_C.name, PATHS, n, size_bytes, in_turn=in_turn, a=A, window_bytes=window)
            for window in WINDOWS[effort]
            for n in STREAMS
            for in_turn in (False, True)
        ]
        return repeated(cells, 1 if effort == "quick" else 3)

    def table(self, results: Results) -> Sequence[str]:
        """Goodput of copies but for their edges, and of whole ones."""
        lines = [
            "| window | way | streams | steady, Mbit/s | whole copy, Mbit/s |",
            "|---|---|---|---|---|",
        ]
        return lines + [
            f"| {cell.window_bytes or 'tuned'} | {cell.way} | {cell.streams} | {steady_bps(runs) / 1e6:.1f} "
            f"| {mean_bps(runs) / 1e6:.1f} |"
            for cell, runs in results.items()
        ]

    def read(self, result: CopyResult) -> Any:
        """Goodput of the whole copy, and of its middle."""
        return read_rates(result)

    def draw(self, results: Results, axes: Any) -> None:
        """A line for each way and window."""
        for window, ways in _goodput(results).items():
            for in_turn, rates in ways.items():
                label = f"{'in turn' if in_turn else 'by prediction'}, window {window or 'tuned'}"
                axes.plot(list(rates), [rate / 1e6 for rate in rates.values()], marker="o", label=label)
        axes.set(xlabel="streams", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge what the thesis says of figure 6.8."""
    found = by_cell(stored)
    steady = {cell: statistics.mean(run["steady_bps"] for run in runs) for cell, runs in found.items()}
    for window, ways in _by_window(steady).items():
        ours, turns = ways[False], ways[True]
        where = f"window {window or 'tuned'}"
        ahead = sum(ours[n] >= turns[n] * (1 - TOLERANCE) for n in ours)
        limit = f"{where}: by prediction is as fast, to {TOLERANCE:.0%}, at {OFTEN} of {OF} numbers"
        yield Verdict(limit, f"{ahead} of {len(ours)}", ahead * OF >= OFTEN * len(ours))
        first, other = _enough(ours), _enough(turns)
        limit = f"{where}: by prediction {ENOUGH:.0%} of its best at {AT_MOST} streams or fewer"
        yield Verdict(limit, f"{first}", first <= AT_MOST)
        limit = f"{where}: and with fewer streams than in turn"
        yield Verdict(limit, f"{first} against {other}", first < other)


def _goodput(results: Results) -> dict[int | None, dict[bool, dict[int, float]]]:
    """Return the steady goodput by window, whether streams were put on paths in turn, and their number.

    Whole copies of quick are too short: a slow stream still has a block of 1 MiB when all others are done.
    """
    return _by_window({cell: steady_bps(runs) for cell, runs in results.items()})


def _by_window(steady: Mapping[CopyCell, float]) -> dict[int | None, dict[bool, dict[int, float]]]:
    found: dict[int | None, dict[bool, dict[int, float]]] = {}
    for cell, bps in steady.items():
        found.setdefault(cell.window_bytes, {}).setdefault(cell.in_turn, {})[cell.streams] = bps
    return found


def _enough(rates: dict[int, float]) -> int:
    """Return the fewest streams with which nearly the best is reached."""
    return min(n for n, rate in rates.items() if rate >= ENOUGH * max(rates.values()))


if __name__ == "__main__":
    run_row(F68(), judge)
