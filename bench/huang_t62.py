"""HUANG-F6.6 and T6.2: three paths of 100 Mbit/s, of which two share a link. Needs root.

    .venv/3.11/bin/python bench/huang_t62.py --effort full

1 GB over three streams, on the three paths that the thesis' algorithm finds, and on one. What the row should
show: 1.8 to 2.0 times as fast (the thesis: 46.6 s against 90.5 s); the stream that is alone has 0.9 of a
link, the other two together 0.85 of one, each of them 0.35 to 0.65. Beside it two streams on the two paths
that the controller chooses by itself, since the third adds nothing.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import Verdict, median
from harness import run_row
from huang.cell import CopyCell
from huang.rates import by_path, middle_bps, rates_of, seconds
from huang.row import CopyResult, CopyRow, Results, by_cell, repeated
from mpx_lab.topologies import THESIS_B

RATE_BPS = 100_000_000
THESIS = "breadth-first"
OURS = "widest-apart"


class T62(CopyRow):
    """See the head of this file."""

    name = "huang-t62"
    sizes_bytes = {"quick": 300_000_000, "full": 1_000_000_000}
    topologies = (THESIS_B,)

    def cells(self, effort: str, size_bytes: int) -> Sequence[CopyCell]:
        """Three streams on three paths and on one; two on two."""
        name = THESIS_B.name
        cells = [CopyCell(name, paths, 3, size_bytes, selection=THESIS) for paths in (3, 1)]
        return repeated(
            [*cells, CopyCell(name, 2, 2, size_bytes, selection=OURS)], 1 if effort == "quick" else 5
        )

    def table(self, results: Results) -> Sequence[str]:
        """Times, as in table 6.2."""
        lines = ["| paths | streams | chosen | s |", "|---|---|---|---|"]
        return lines + [
            f"| {cell.paths} | {cell.streams} | {cell.selection} | {seconds(runs):.1f} |"
            for cell, runs in results.items()
        ]

    def read(self, result: CopyResult) -> Any:
        """How long it took, and what each path that was used has of a link."""
        return {"seconds": result.copy.seconds, "shares": _shares(result)}

    def draw(self, results: Results, axes: Any) -> None:
        """The rate of each stream over time."""
        runs = next(runs for cell, runs in results.items() if cell.paths == 3)
        for path, streams in by_path(runs[0].copy).items():
            for stream in streams:
                rates = [rate / 1e6 for rate in rates_of(stream)]
                axes.plot(range(1, len(rates) + 1), rates, label=f"path {path + 1}")
        axes.set(xlabel="seconds since the first byte", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge the speed-up, and what each path has."""
    of = {cell.paths: runs for cell, runs in by_cell(stored).items()}
    times, ours = (median(of[1], "seconds") / median(of[paths], "seconds") for paths in (3, 2))
    shares = [run["shares"] for run in of[3]]
    used = all(len(share) == 3 for share in shares)
    told = "; ".join(" ".join(f"{each:.2f}" for each in share) or "none seen" for share in shares)
    yield Verdict("a stream on each of three paths", told, used)
    yield Verdict("three paths: 1.8 to 2.0 times as fast as one", f"{times:.2f}", 1.8 <= times <= 2.0)
    yield Verdict("two paths are as fast as three (0.97)", f"{ours / times:.2f}", ours >= 0.97 * times)
    if used:
        alone, second, third = (statistics.mean(share[path] for share in shares) for path in range(3))
        both, each = second + third, f"{second:.2f} and {third:.2f}"
        yield Verdict("the stream that is alone: 0.9 of a link", f"{alone:.3f}", alone >= 0.9)
        yield Verdict("the other two together: 0.85 of a link", f"{both:.3f}", both >= 0.85)
        yield Verdict("each of them 0.35 to 0.65", each, all(0.35 <= s <= 0.65 for s in (second, third)))


def _shares(result: CopyResult) -> list[float]:
    """Return what the streams on each path have of a link, in the order of the paths."""
    rate_bps = RATE_BPS * result.cell.scale
    return [sum(map(middle_bps, streams)) / rate_bps for streams in by_path(result.copy).values()]


if __name__ == "__main__":
    run_row(T62(), judge)
