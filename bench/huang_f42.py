"""HUANG-F4.2 and F4.3: time over latency and number of streams, on one path of 50 Mbit/s. Needs root.

    .venv/3.11/bin/python bench/huang_f42.py --effort full

globus-url-copy to globus-gridftp-server, no controller; a queue of 1000 packets, as tc gives a link that is
told of none, and windows as the kernel tunes them. What the row should show: the number of streams that is
best grows with the latency; one stream is the slowest at 40 ms and more, but only by some per cent (3 to 4
with the 2 GB of the thesis; the fewer bytes, the more, as what one stream loses it loses at its beginning).
"""

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from figures import Verdict
from huang.cell import Cell
from huang.rates import seconds
from huang.row import Results, Row, main, repeated
from mpx_lab.topology import Link, Topology

RATE_BPS = 50_000_000
QUEUE_PACKETS = 1000
LATENCIES_MS = {"quick": (0, 40, 100), "full": (0, 20, 40, 60, 80, 100)}
STREAMS = {"quick": (1, 2, 4, 7), "full": tuple(range(1, 9))}
NOISE = 0.001  # of the best: so much is as good
SLOWEST_FROM_MS = 40


def path_of(latency_ms: int) -> Topology:
    """Return two hosts with that latency between them, there and back together."""
    wan = Link("src", "dst", "wan", rate_bps=RATE_BPS, delay_s=latency_ms / 2e3, queue_packets=QUEUE_PACKETS)
    return Topology(f"v-{latency_ms}ms", ("src",), ("dst",), (wan,))


class F42(Row):
    """See the head of this file."""

    name = "huang-f42"
    doc = __doc__ or ""
    sizes_bytes = {"quick": 100_000_000, "full": 2_000_000_000}

    def topologies(self) -> Sequence[Topology]:
        """One for each latency."""
        return [path_of(latency) for latency in LATENCIES_MS["full"]]

    def cells(self, effort: str, size_bytes: int) -> Sequence[Cell]:
        """Each number of streams at each latency."""
        cells = [
            Cell(path_of(latency).name, 0, streams, size_bytes)
            for latency in LATENCIES_MS[effort]
            for streams in STREAMS[effort]
        ]
        return repeated(cells, 1 if effort == "quick" else 10)

    def table(self, results: Results) -> Sequence[str]:
        """Times, as in the thesis; the best of each latency and those that are as good in bold."""
        streams = sorted({cell.streams for cell in results})
        lines = [f"| latency, ms | {' | '.join(map(str, streams))} |", f"|---|{'---|' * len(streams)}"]
        for latency, times in _times(results).items():
            good = _as_good(times)
            cells = [f"**{times[n]:.2f}**" if n in good else f"{times[n]:.2f}" for n in streams]
            lines.append(f"| {latency} | {' | '.join(cells)} |")
        return lines

    def verdicts(self, results: Results) -> Sequence[Verdict]:
        """The best number grows; one stream is slowest, by little."""
        times = _times(results)
        best = {latency: min(_as_good(each)) for latency, each in times.items()}
        grows = all(a <= b for a, b in itertools.pairwise(best.values())) and len(set(best.values())) > 1
        said = [Verdict("the fewest streams that are best grow with the latency", f"{best}", grows)]
        for latency, each in times.items():
            if latency >= SLOWEST_FROM_MS:
                behind = each[1] / min(each.values()) - 1
                slowest = max(each, key=lambda n: each[n])
                said.append(
                    Verdict(f"{latency} ms: one stream is the slowest", f"by {behind:.1%}", slowest == 1)
                )
        return said

    def draw(self, results: Results, axes: Any) -> None:
        """A line for each latency."""
        for latency, times in _times(results).items():
            axes.plot(list(times), list(times.values()), marker="o", label=f"{latency} ms")
        axes.set(xlabel="streams", ylabel="seconds")
        axes.legend(fontsize="small")


def _times(results: Results) -> dict[int, dict[int, float]]:
    """Return the median time by latency and by number of streams."""
    found: dict[int, dict[int, float]] = {}
    for cell, runs in results.items():
        latency = int(cell.topology.removeprefix("v-").removesuffix("ms"))
        found.setdefault(latency, {})[cell.streams] = seconds(runs).median
    return dict(sorted(found.items()))


def _as_good(times: dict[int, float]) -> list[int]:
    """Return the numbers of streams within the noise of the best."""
    least = min(times.values())
    return [n for n, each in times.items() if each <= least * (1 + NOISE)]


if __name__ == "__main__":
    main(F42())
