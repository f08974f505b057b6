"""HUANG-F6.3, F6.4 and T6.1: two and four disjoint paths of 100 Mbit/s, a stream on each. Needs root.

    .venv/3.11/bin/python bench/huang_f63_f64.py --effort full

1 GB by globus-url-copy to globus-gridftp-server, over as many paths as streams and over one. What the rows
should show: 1.85 times and 3.6 times as fast as over one path with as many streams (the thesis: 47.5 s
against 92.1 s, 23.4 s against 90.5 s); each stream has 0.9 of its link, and varies by less than 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import Spread, Verdict, median
from harness import run_row
from huang.cell import CopyCell
from huang.rates import middle_bps, rates_of, seconds, variation
from huang.row import CopyResult, CopyRow, Results, by_cell, repeated
from mpx_lab.topologies import THESIS_A

RATE_BPS = 100_000_000
SPEED_UP = {2: 1.85, 4: 3.6}
THESIS = {2: (47.486, 92.108), 4: (23.404, 90.533)}
SHARE, VARIATION = 0.9, 0.05


class F63F64(CopyRow):
    """See the head of this file."""

    name = "huang-f63-f64"
    sizes_bytes = {"quick": 300_000_000, "full": 1_000_000_000}
    topologies = (THESIS_A,)

    def cells(self, effort: str, size_bytes: int) -> Sequence[CopyCell]:
        """Each number of streams over as many paths, and over one."""
        cells = [CopyCell(THESIS_A.name, paths, n, size_bytes) for n in SPEED_UP for paths in (n, 1)]
        return repeated(cells, 1 if effort == "quick" else 5)

    def table(self, results: Results) -> Sequence[str]:
        """Times, as in table 6.1."""
        lines = ["| streams | multipath, s | single path, s | speed-up | thesis |", "|---|---|---|---|---|"]
        for n in SPEED_UP:
            many, one = (seconds(runs) for runs in _both(results, n))
            told = THESIS[n][1] / THESIS[n][0]
            lines.append(f"| {n} | {many:.1f} | {one:.1f} | {one.median / many.median:.2f} | {told:.2f} |")
        return lines

    def read(self, result: CopyResult) -> Any:
        """How long it took, and what each stream had of its link, on which path."""
        rate_bps = RATE_BPS * result.cell.scale
        streams = [
            {"path": path, "share": middle_bps(stream) / rate_bps, "variation": variation(stream)}
            for path, stream in zip(result.copy.paths, result.copy.streams, strict=True)
        ]
        return {"seconds": result.copy.seconds, "streams": streams}

    def draw(self, results: Results, axes: Any) -> None:
        """The rate of each stream over time."""
        for n, style in ((2, "--"), (4, "-")):
            for number, stream in enumerate(_both(results, n)[0][0].copy.streams, 1):
                rates = [rate / 1e6 for rate in rates_of(stream)]
                axes.plot(range(1, len(rates) + 1), rates, style, label=f"{n} paths, stream {number}")
        axes.set(xlabel="seconds since the first byte", ylabel="goodput, Mbit/s", ylim=(0, None))
        axes.legend(fontsize="small", ncols=2)


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge the speed-up, and how each stream has its path."""
    found = by_cell(stored)
    for n, limit in SPEED_UP.items():
        of = {cell.paths: runs for cell, runs in found.items() if cell.streams == n}
        times = median(of[1], "seconds") / median(of[n], "seconds")
        yield Verdict(f"{n} paths: {limit} times as fast as one", f"{times:.2f}", times >= limit)
        used = [{stream["path"] for stream in run["streams"]} - {None} for run in of[n]]
        each = all(len(paths) == n for paths in used)
        yield Verdict(f"{n} paths: a stream on each", f"on the paths {used}", each)
        shares, varied = (
            Spread([stream[key] for run in of[n] for stream in run["streams"]])
            for key in ("share", "variation")
        )
        yield Verdict(f"{n} paths: each stream {SHARE} of its link", f"{shares:.3f}", shares.least >= SHARE)
        limit_text = f"{n} paths: each stream varies by less than {VARIATION:.0%}"
        yield Verdict(limit_text, f"{varied.worst:.1%} at most", varied.worst < VARIATION)


def _both(results: Results, streams: int) -> tuple[Any, Any]:
    """Return the runs over many paths, and over one."""
    of = {cell.paths: runs for cell, runs in results.items() if cell.streams == streams}
    return of[streams], of[1]


if __name__ == "__main__":
    run_row(F63F64(), judge)
